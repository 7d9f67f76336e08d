/* For pmu.c: the small files of sysfs below one root. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/strings.h"

/* ROOT/PMU/FILE (FILE may have a folder before it) without the newline at its end; NULL if there is no such file. */
int pmu_sysfs_read(const char *root, const char *pmu, const char *folder, const char *file, char **ret, Explanation *e);
/* Names of what is in ROOT[/PMU/FOLDER], sorted, without hidden ones; nothing if there is no such folder. */
int pmu_sysfs_list(const char *root, const char *pmu, const char *folder, Strings *ret, Explanation *e);
/* The names of events/ that are events, and not their scale or unit. */
int pmu_sysfs_events(const char *root, const char *pmu, Strings *ret, Explanation *e);
/* What is no PMU has no type. REFUSED_UNSUPPORTED "bad-pmu". */
int pmu_sysfs_type(const char *root, const char *pmu, bool *ret_is_pmu, uint32_t *ret, Explanation *e);

/* All PMUs, sorted. */
int pmu_sysfs_pmus(const char *root, Strings *ret, Explanation *e);
/* Of them the core ones: "cpu", the one with the raw type, all that have a file "cpus" (perf's is_pmu_core()). */
int pmu_sysfs_core(const char *root, const Strings *pmus, Strings *ret, Explanation *e);
/* What a user's name means, at least one: pmu_resolve(). */
int pmu_sysfs_find(const char *root, const char *name, Strings *ret, Explanation *e);

static inline void strings_deinitp(Strings *s) {
        strings_deinit(s);
}
