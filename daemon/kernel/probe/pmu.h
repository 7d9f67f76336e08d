/* For probe.c: what a probe has inside, and those that the kernel's PMUs of probes do. */
#pragma once

#include "daemon/kernel/probe/names.h"
#include "daemon/kernel/probe/place.h"
#include "daemon/kernel/probe/probe.h"

struct Probe {
        bool is_kernel, is_return, is_dynamic;
        ProbePlaces places;
        char *text; /* for people, where it says more than that of the places; else NULL */

        /* PMU */
        uint32_t type;
        uint64_t *configs; /* by site */
        char *target; /* what config1 points at: a symbol or a path; NULL: config2 is an address */

        /* dynamic */
        char *root; /* of tracefs */
        char group[PROBE_GROUP_SIZE];
        char (*names)[PROBE_NAME_SIZE]; /* by site */
        size_t n_defined;
};

/* Lets the PMU do it, with a config for each site; refused without explanation if it cannot. Negative: no memory. */
int probe_pmu_take(Probe *p);
/* What opens site i, once probe_pmu_set_target() was told of what. */
ProbeAttr probe_pmu_attr(const Probe *p, size_t i);
/* symbol: of the kernel, or NULL: the address. -ENOMEM */
int probe_pmu_set_target(Probe *p, const char *symbol);
/* Whether the kernel knows the symbol, where it does not let us look. */
int probe_pmu_try_symbol(const Probe *p, Explanation *e);
/* Whether user probes are refused by the PMU for want of a privilege. */
bool probe_pmu_is_denied(const Probe *p);
