/* For the supervisor: what /proc says of all processes and their threads, for tables of tasks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "daemon/base/error.h"
#include "daemon/model/task-scan.h"

/*
 * Every process that can be looked at; one that ends meanwhile is left out, as are threads. clock: of the stream.
 * cgroups: where the hierarchy is mounted whose paths are meant (cgroup.h), for their ids; NULL: they have none.
 * REFUSED_UNSUPPORTED, REFUSED_EXHAUSTED, REFUSED_DENIED: /proc cannot be read. REFUSED_CANCELLED. -ENOMEM.
 */
int process_scan(clockid_t clock, const char *cgroups, TaskScan **ret, Explanation *e);

/* Of /proc/PID/stat, where the comm in brackets may hold anything, brackets too: who made it, and when, in ticks. Pure. */
bool process_parse_stat(const char *text, uint32_t *ret_parent, uint64_t *ret_ticks);
/* Of /proc/PID/status its real uid. Pure. */
bool process_parse_uid(const char *text, uint32_t *ret_uid);

/* The real uid that the process has now; false: it is gone. Any thread; no allocation. */
bool process_read_uid(uint32_t pid, uint32_t *ret);

/*
 * Of the text of /proc/PID/cgroup the path in the hierarchy that perf events use: that of the v1 controller perf_event,
 * where there is one, else v2. Not terminated, NULL if there is none. Pure.
 */
const char *process_cgroup_path(const char *text, size_t *ret_length);
/* Where the process is now; NULL: it is gone, or that is not to be known. -ENOMEM. Any thread. */
int process_read_cgroup(const char *cgroups, uint32_t pid, char **ret_path, uint64_t *ret_id);
