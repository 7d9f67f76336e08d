/*
 * For the supervisor: kernel and user probes. Where nothing has to be named in tracefs (no fetch args, no maxactive) a
 * probe is an attr of the kprobe or uprobe PMU and leaves nothing behind; otherwise it is a dynamic event in tracefs,
 * whose definition lives as long as the Probe and is removed after the last fd on it was closed. Main thread only, but
 * probe_free(), which the closer calls.
 *
 * Names in tracefs are GROUP = "perfd_<boot-unique identity>": 16 hex digits of pid, start time of the process (field 22
 * of /proc/PID/stat) and pid namespace, so that they survive the reuse of a pid; the event is "<id of perfd's event>_<symbol>".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/event-name.h"
#include "daemon/base/error.h"
#include "daemon/kernel/tracing.h"

typedef struct Probe Probe;

typedef struct ProbeRequest {
        const EventName *name;  /* KPROBE, UPROBE or USDT */
        const char *args;       /* fetch args in the kernel's syntax, white space normalised here; NULL: none */
        unsigned maxactive;     /* kretprobe; 0: the kernel's default */
        uint32_t id;            /* perfd's event id: for the name in tracefs */
} ProbeRequest;

/*
 * Resolves symbols (alternates: the first one that resolves; kernel symbols by kallsyms where it is readable, else by
 * trying) and defines the probe. Nothing is left behind on failure. Explanations: REFUSED_NOT_FOUND "unknown-symbol" with
 * near names, REFUSED_INVALID "bad-args" with the kernel's own text and position from tracefs error_log (only the entry that
 * our own write caused), REFUSED_UNSUPPORTED "no-kprobes", "ifunc", REFUSED_DENIED.
 */
int probe_define(const Tracing *t, const ProbeRequest *q, Probe **ret, Explanation *e);
/* Removes the definition, of which no fd is open any more. Accepts NULL. Any thread. Says on the log what can not be removed. */
Probe *probe_free(Probe *p);

/* What to open: for the PMU ones everything is in attr terms; strings live as long as the Probe. */
typedef struct ProbeAttr {
        uint32_t type;
        uint64_t config, config1, config2; /* PMU: config1 points at the symbol or path */
        bool is_dynamic; /* a tracepoint of tracefs: group and name; its format gives the Plan */
        const char *group, *name;
} ProbeAttr;
/* A USDT probe can have several sites: one attr for each. */
size_t probe_n_attrs(const Probe *p);
ProbeAttr probe_attr(const Probe *p, size_t i);
/* "vfs_read+0x10", "/usr/bin/nginx:ngx_http_process_request (build id 3f5a...)": for lists. */
const char *probe_text(const Probe *p);

/* kprobe_profile / uprobe_profile: false if the kernel does not count it for this kind (PMU probes). */
bool probe_read_profile(const Tracing *t, const Probe *p, uint64_t *ret_hits, uint64_t *ret_missed);

/*
 * At start: definitions whose group says that a perfd that does not live any more (its pid is gone, or has another start
 * time) made them are removed; all others, also of other living perfds and of foreign tools, are never touched. Gives how
 * many; what could not be removed is in the explanation. `rN:` prefixes of return probes (maxactive) are parsed.
 */
int probe_remove_leftovers(const Tracing *t, size_t *ret_n, Explanation *e);
