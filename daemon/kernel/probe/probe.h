/*
 * For the supervisor: kernel and user probes. A kernel's probe for which nothing has to be named in tracefs (no fetch
 * args, no maxactive), and whose children are not followed, is an attr of the kprobe PMU and leaves nothing behind;
 * every other one is a dynamic event in tracefs, whose definition lives as long as the Probe and is removed after the
 * last fd on it was closed. Where perfd may not write there, a user probe that needs no more is one of the uprobe PMU,
 * which is not exact. Main thread only, but probe_free(), which the closer calls.
 *
 * Names in tracefs are GROUP = "perfd_<boot-unique identity>": 16 hex digits of pid, start time of the process (field
 * 22 of /proc/PID/stat) and pid namespace, so that they survive the reuse of a pid; the event is "p<id of perfd's
 * event>_<symbol>", with r for a return probe (probe/names.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/event-name/event-name.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/credentials.h"
#include "daemon/base/error.h"
#include "daemon/kernel/symbol/kernel-symbol-index.h"
#include "daemon/kernel/tracefs/tracing.h"

typedef struct Probe Probe;

typedef struct ProbeRequest {
        const EventName *name;  /* KPROBE, UPROBE or USDT */
        const char *args;       /* fetch args in the kernel's syntax, and $argN: white space is normalised here; NULL: none,
                                 * and of a static probe its own arguments ("" for none of those either) */
        unsigned maxactive;     /* kretprobe; 0: the kernel's default */
        bool inherits;          /* will be opened with attr.inherit */
        uint32_t id;            /* perfd's event id: for the name in tracefs */
        const Credentials *client; /* who has to be able to read the file, and may not learn of the kernel's addresses; NULL: perfd */
        KernelSymbolIndex *index; /* of the kernel's functions, used and filled; NULL: /proc/kallsyms is read */
        int (*check_sites)(void *userdata, size_t n, Explanation *e); /* before the first of n is defined; NULL: nobody is asked */
        void *userdata;
        size_t sites_max;       /* 0: all are defined; else, for who only tries them: of more, so many with different arguments */
} ProbeRequest;

/*
 * Resolves symbols (alternates: the first one that resolves; kernel symbols by kallsyms where it is readable, else by
 * trying) and defines the probe, with a checkpoint() between two sites. What was defined until then is given on failure too, to
 * be removed, which takes as long; otherwise *ret is untouched then. Explanations: REFUSED_NOT_FOUND "unknown-symbol"
 * with near names, "no-file"; REFUSED_INVALID "bad-args" with the kernel's own text and position from tracefs error_log
 * (only the entry that our own write caused), "bad-probe" for what it has against the place, "ambiguous-symbol",
 * "bad-maxactive"; REFUSED_UNSUPPORTED "no-kprobes", "no-uprobes", "ifunc"; REFUSED_DENIED "no-permission".
 */
int probe_define(const Tracing *t, const ProbeRequest *q, Probe **ret, Explanation *e);
/* Removes the definition, of which no fd is open any more. Accepts NULL. Any thread. Logs what cannot be removed. */
Probe *probe_free(Probe *p);
DEFINE_CLEANUP(Probe *, probe_free)

/*
 * What to open: for the PMU ones everything is in attr terms; strings live as long as the Probe. The path of a uprobe
 * is that of an fd of ours (/proc/self/fd/N), so that a CPU that comes later gets the probe into the same file,
 * whatever the user's path leads to by then.
 */
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
/* In a file: opening it puts a breakpoint into every program that runs it. */
bool probe_is_user(const Probe *p);
/* A place in a file of which perfd cannot say whether an instruction begins there. */
bool probe_is_unchecked(const Probe *p);
/* Each hit is counted once. A user probe of the PMU may count one on two CPUs or on none, if its task is moved then. */
bool probe_is_exact(const Probe *p);

/*
 * kprobe_profile / uprobe_profile, of all sites: false if the kernel does not count it for this kind (PMU probes), or
 * if it cannot be read. A user probe is never busy, so nothing of it is missed.
 */
bool probe_read_profile(const Tracing *t, const Probe *p, uint64_t *ret_hits, uint64_t *ret_missed);

/*
 * At start: definitions whose group says that a perfd that does not live any more (its pid is gone, or has another
 * start time) made them are removed; all others, also of other living perfds and of foreign tools, are never touched.
 * Gives how many. Where one cannot be removed it is still 0, and the explanation says which one and why. Refused if
 * the definitions cannot be read at all. `rN:` prefixes of return probes (maxactive) are parsed.
 */
int probe_remove_leftovers(const Tracing *t, size_t *ret_n, Explanation *e);
