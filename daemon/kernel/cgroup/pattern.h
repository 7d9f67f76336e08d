/* For kernel/cgroup*.c: what a name looks for, as components that are compared one at a time. Pure; any thread. */
#pragma once

#include "daemon/base/glob.h"
#include "daemon/kernel/cgroup/cgroup.h"

#define CGROUP_COMPONENTS_MAX 63

/* A name, taken apart. All three ways of naming are patterns of components: a unit is looked for in any folder. */
typedef struct CgroupPattern {
        CgroupNaming naming;
        char *text; /* the components, each terminated */
        const char *components[CGROUP_COMPONENTS_MAX];
        Pattern *globs[CGROUP_COMPONENTS_MAX]; /* NULL: it is no glob, or "**" */
        size_t n_components;
        Pattern *container; /* of a container: the glob of its name; NULL: it is none */
} CgroupPattern;

#define CGROUP_PATTERN_NULL ((CgroupPattern){ .text = NULL })

/* REFUSED_INVALID "bad-cgroup", "bad-container", "bad-unit", and "bad-name" of a glob. */
int cgroup_pattern_init(CgroupPattern *p, CgroupNaming naming, const char *name, Explanation *e);
void cgroup_pattern_deinit(CgroupPattern *p);
/* "docker://" of a container's id is not part of it. */
const char *cgroup_container_id(const char *name);

/*
 * How far a path has come: bit i says that it fits the first i components. Begins with that of the root; 0: nothing
 * below can match.
 */
uint64_t cgroup_pattern_begin(const CgroupPattern *p);
uint64_t cgroup_pattern_step(const CgroupPattern *p, uint64_t states, const char *name);
/* All steps of a normalised path. */
uint64_t cgroup_pattern_walk(const CgroupPattern *p, const char *path);

static inline bool cgroup_pattern_matches(const CgroupPattern *p, uint64_t states) {
        return states >> p->n_components & 1;
}

/* Whether a match can lie below. */
static inline bool cgroup_pattern_goes_on(const CgroupPattern *p, uint64_t states) {
        return (states & ~(UINT64_C(1) << p->n_components)) != 0;
}
