/*
 * For probe.c: definitions in kprobe_events and uprobe_events of tracefs. Others write there too, at any time; so each
 * change is one line by one write(2), in a file opened to append.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

/* Fetch args, one blank between two of them, and where each byte was in what the user wrote. */
typedef struct ProbeArgs {
        char *text;        /* "" for none */
        uint32_t *origins; /* by byte of `text`, and one more for its end; NULL: no user wrote them */
} ProbeArgs;

#define PROBE_ARGS_NULL ((ProbeArgs){ .text = NULL })

/* NULL is "". REFUSED_INVALID "bad-args" for what would not reach the kernel as it stands: '#' begins a comment. */
int probe_args_parse(const char *text, ProbeArgs *ret, Explanation *e);
void probe_args_deinit(ProbeArgs *a);

typedef struct ProbeDefinition {
        const char *root; /* of tracefs */
        bool is_kernel, is_return;
        unsigned maxactive; /* 0: the kernel's default */
        const char *group, *name;
        const char *place; /* "vfs_read+0x10", "/usr/bin/nginx:0x1129(0x4010)": no white space, no '#' */
        const ProbeArgs *args;
        const char *what;  /* for explanations: the place as people know it */
        bool has_semaphore;
} ProbeDefinition;

/*
 * Nothing is defined if it is refused: REFUSED_INVALID "bad-args", with the kernel's text and position in the args;
 * REFUSED_INVALID "bad-probe" for what the kernel has against the rest of it; REFUSED_NOT_FOUND "unknown-symbol" or
 * "no-file"; REFUSED_EXISTS; REFUSED_DENIED "no-permission"; REFUSED_UNSUPPORTED "no-kprobes", "no-uprobes".
 */
int probe_definition_add(const ProbeDefinition *d, Explanation *e);
/* -errno: -EBUSY while a perf fd, or anyone else, uses it. What is not there (any more) is removed. Any thread. */
int probe_definition_remove(const char *root, bool is_kernel, const char *group, const char *name);
/* Whether tracefs has an event of that name. */
bool probe_definition_exists(const char *root, const char *group, const char *name);
/* A path can stand in a definition as it is. */
bool probe_path_is_plain(const char *path);
/* ROOT/kprobe_WHAT or ROOT/uprobe_WHAT, what: "events" or "profile"; malloc'ed, NULL: no memory. */
char *probe_file(const char *root, bool is_kernel, const char *what);

/*
 * What error_log says about our own write: the last entry for exactly this command that was not there before. It is
 * everybody's and holds the last eight entries, so it may be gone already: false. ret_text is into `after`.
 */
typedef struct ProbeComplaint {
        const char *text;
        size_t n_text;
        size_t position; /* of the caret in the command, from 0 */
} ProbeComplaint;

bool probe_complaint_find(const char *before, const char *after, const char *command, ProbeComplaint *ret);
