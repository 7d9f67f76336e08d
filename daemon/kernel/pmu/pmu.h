/*
 * For the supervisor: PMUs as sysfs describes them. Main thread only. The root is a path, so that a test can lay out
 * its own: ROOT/NAME/type, format/, events/, cpumask, cpus, caps/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/event-name/event-name.h"
#include "daemon/base/error.h"

#define PMU_ROOT "/sys/bus/event_source/devices"

/* What one event of one PMU asks of perf_event_open(2). */
typedef struct PmuEvent {
        char *pmu; /* its name */
        uint32_t type;
        uint64_t config, config1, config2, config3;
        char *cpus; /* CPU list that it must be opened on (cpumask of uncore, cpus of a hybrid core PMU); NULL: any */
        bool is_uncore; /* counts only for a CPU, never for a task */
        uint64_t period, frequency; /* terms period= and freq=; 0 if absent */
        char *name; /* term name=, or NULL */
        double scale;   /* of the events/NAME.scale file; 1 if absent */
        char *unit;     /* events/NAME.unit, or NULL */
} PmuEvent;

void pmu_event_deinit(PmuEvent *p);

/*
 * The PMUs that `name` means, one PmuEvent each: an exact name; else, as in perf, every PMU called name_N or
 * uncore_name_N or that matches it as a glob; "cpu" where none is called so: the core PMUs. Those that lack the event
 * or have no CPU online are left out as long as one is left (else REFUSED_UNSUPPORTED "no-cpus"). Terms: a name of
 * events/ (expanded, its own terms may be overridden), a name of format/ (bits spread over several ranges of config to
 * config3, LSB first), config, config1, config2, config3, period, freq, name; a format's term without value is 1.
 * REFUSED_NOT_FOUND "unknown-pmu"/"unknown-term" with near names; REFUSED_INVALID "bad-term" for values out of range,
 * with bits and range; e->position from EventTerm.position.
 */
int pmu_resolve(const char *root, const EventName *name, PmuEvent **ret, size_t *ret_n, Explanation *e);
void pmu_events_free(PmuEvent *events, size_t n);

/*
 * The core PMUs: "cpu" (or armv8_..., one with the raw type) alone, or on a hybrid machine each of them. n is 0 where
 * the machine has none. For hardware, cache and raw events: on a hybrid machine config's extended type (config |= type
 * << 32; a raw event has the PMU's own type instead) and cpus are filled; else type and config as they are.
 */
int pmu_core(const char *root, const EventName *name, PmuEvent **ret, size_t *ret_n, Explanation *e);

/* For lists: every PMU and every event of its events/ folder: "pmu/event/", sorted. unit may be "". */
typedef struct PmuListed {
        char *event;
        char *unit;
        char *help; /* its terms: "event=0x3c" */
} PmuListed;
int pmu_list(const char *root, PmuListed **ret, size_t *ret_n);
void pmu_listed_free(PmuListed *list, size_t n);
/* The PMU's type by name ("kprobe", "uprobe"). REFUSED_UNSUPPORTED "no-pmu". */
int pmu_type(const char *root, const char *name, uint32_t *ret, Explanation *e);
/* The bit of its format `term` in config ("retprobe"); REFUSED_UNSUPPORTED if there is none. */
int pmu_format_bit(const char *root, const char *pmu, const char *term, unsigned *ret_bit, Explanation *e);
