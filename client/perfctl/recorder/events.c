/* The attr that a reader of a recording needs to know an event by: what perf list calls it says its type and config. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/recorder/recorder.h"

/* In perfd_recorded_event.flags, as in perf_event.h. */
#define PINNED (UINT64_C(1) << 2)
#define EXCLUSIVE (UINT64_C(1) << 3)
#define EXCLUDE_USER (UINT64_C(1) << 4)
#define EXCLUDE_KERNEL (UINT64_C(1) << 5)
#define EXCLUDE_HV (UINT64_C(1) << 6)
#define PRECISE_IP (UINT64_C(1) << 15) /* one of two bits' four steps */

#define CACHE_EVENT(cache, operation, result)                                                                                  \
        ((uint64_t)PERF_COUNT_HW_CACHE_##cache | (uint64_t)PERF_COUNT_HW_CACHE_OP_##operation << 8 |                             \
         (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##result << 16)

typedef struct KnownEvent {
        const char *name;
        uint32_t type;
        uint64_t config;
} KnownEvent;

static const KnownEvent known_events[] = {
        { "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
        { "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
        { "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
        { "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
        { "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
        { "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
        { "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
        { "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
        { "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
        { "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
        { "alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS },
        { "emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS },
        { "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
        { "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
        { "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
        { "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
        { "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
        { "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
        { "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
        { "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
        { "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES },
        { "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
        { "stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
        { "stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
        { "L1-dcache-loads", PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, READ, ACCESS) },
        { "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, READ, MISS) },
        { "LLC-loads", PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, READ, ACCESS) },
        { "LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, READ, MISS) },
        { "dTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE_EVENT(DTLB, READ, MISS) },
        { "iTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE_EVENT(ITLB, READ, MISS) },
};

/* SYSTEM:NAME, by its number in tracefs. */
static bool find_tracepoint(const char *event, perfd_recorded_event *ret) {
        const char *colon = strchr(event, ':');
        char *path = NULL;
        unsigned long long id = 0;
        FILE *f;

        if (!colon || colon == event || strchr(event, '/') || strchr(colon + 1, ':') || strstr(event, ".."))
                return false;
        if (asprintf(&path, "/sys/kernel/tracing/events/%.*s/%s/id", (int)(colon - event), event, colon + 1) < 0)
                path = must_have(NULL);
        f = fopen(path, "re");
        free(path);
        if (!f)
                return false;
        if (fscanf(f, "%llu", &id) != 1)
                id = 0;
        (void)fclose(f);
        ret->type = PERF_TYPE_TRACEPOINT;
        ret->config = id;
        ret->sample_type = PERF_SAMPLE_RAW;
        return id > 0;
}

/* ":u", ":k", ":pp" and others behind a name, as perf-list(1) has them, without what has no bit in flags; also behind the terms of a PMU,
 * "cpu/config=0x3c/u". The length of the name. */
static size_t read_modifiers(const char *event, perfd_recorded_event *ret) {
        const char *colon = strrchr(event, ':'), *slash = strchr(event, '/') ? strrchr(event, '/') : NULL;
        uint64_t counted = 0;

        if (slash && slash > strchr(event, '/') && (!colon || colon < slash))
                colon = slash;
        if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "ukhpDe")] != '\0')
                return strlen(event);
        for (const char *m = colon + 1; *m; m++) {
                counted |= *m == 'u' ? EXCLUDE_USER : *m == 'k' ? EXCLUDE_KERNEL : *m == 'h' ? EXCLUDE_HV : 0;
                if (*m == 'p')
                        ret->flags += PRECISE_IP;
                ret->flags |= *m == 'D' ? PINNED : *m == 'e' ? EXCLUSIVE : 0;
        }
        if (counted != 0)
                ret->flags |= (EXCLUDE_USER | EXCLUDE_KERNEL | EXCLUDE_HV) & ~counted;
        return (size_t)(colon - event);
}

void recorder_event_modifiers(const char *event, perfd_recorded_event *ret) {
        (void)read_modifiers(event, ret);
}

static bool find_named(const char *event, perfd_recorded_event *ret) {
        char *end;

        for (size_t i = 0; i < sizeof(known_events) / sizeof(known_events[0]); i++)
                if (strcmp(known_events[i].name, event) == 0) {
                        ret->type = known_events[i].type;
                        ret->config = known_events[i].config;
                        return true;
                }
        if (event[0] == 'r' && event[1]) {
                const uint64_t config = strtoull(event + 1, &end, 16);

                if (*end == '\0') {
                        ret->type = PERF_TYPE_RAW;
                        ret->config = config;
                        return true;
                }
        }
        return find_tracepoint(event, ret);
}

bool recorder_event_find(const char *event, perfd_recorded_event *ret) {
        perfd_recorded_event found = *ret;
        const size_t n = read_modifiers(event, &found);
        char *name = must_have(strndup(event, n));
        const bool is_found = find_named(name, &found);

        free(name);
        if (is_found)
                *ret = found;
        return is_found;
}
