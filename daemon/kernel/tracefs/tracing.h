/*
 * For the supervisor: tracefs, by libtracefs. Main thread only. The root is a path, so that a test can lay out its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"
#include "daemon/model/plan.h"

typedef struct Tracing {
        char *root;   /* "/sys/kernel/tracing"; NULL until opened */
        bool mounted; /* by us */
        char *missing; /* why there was no tracefs there when it was opened; NULL: there was */
} Tracing;

#define PROBE_PREFIX "perfd_" /* of the groups of probes that perfds define, with so many hexadecimal digits behind it */
#define PROBE_DIGITS 16

#define TRACING_NULL ((Tracing){ .root = NULL })

/*
 * Finds tracefs, mounts it if it is not mounted. root NULL: where Linux has it. REFUSED_UNSUPPORTED "no-tracefs"
 * if there is none and it cannot be mounted.
 */
int tracing_open(Tracing *t, const char *root, Explanation *e);
/*
 * Behind such a refusal, whose text it takes: whoever asks for a tracepoint is refused by it, until somebody has mounted
 * tracefs where Linux has it. -ENOMEM
 */
int tracing_open_missing(Tracing *t, const char *why);
/* As of now. */
bool tracing_is_missing(const Tracing *t);
/* REFUSED_UNSUPPORTED "no-tracefs", if it is. */
int tracing_check(const Tracing *t, Explanation *e);
void tracing_close(Tracing *t);

/* The plan of one tracepoint. REFUSED_NOT_FOUND "unknown-event", with near names, or REFUSED_DENIED. */
int tracing_load(const Tracing *t, const char *group, const char *name, Plan **ret, Explanation *e);

/*
 * All tracepoints that match both globs, sorted: "group:name", NULL-terminated, owned by the caller with all strings. Without the
 * probes of perfds, unless the first glob begins with PROBE_PREFIX.
 * REFUSED_NOT_FOUND if none does.
 */
int tracing_match(const Tracing *t, const char *group_glob, const char *name_glob, char ***ret_names, size_t *ret_n,
                  Explanation *e);
void tracing_names_free(char **names);

/*
 * Whether the kernel takes a filter for a dynamic event of ours, which no fd is needed for: it stays there until the event goes.
 * Refused as by tracing_explain_filter(). Negative: memory.
 */
int tracing_try_filter(const Tracing *t, const char *group, const char *name, const char *filter, Explanation *e);
/* What the kernel itself says about a filter that it refused: its text and the position in `filter`. */
void tracing_explain_filter(const Tracing *t, const char *group, const char *name, const char *filter, Explanation *e);
