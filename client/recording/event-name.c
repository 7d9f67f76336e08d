/*
 * What an event is called by its numbers alone, where the recording has no name for it: as perf list has it, in a form that perfd takes as
 * the name of an event, too. What has no such name keeps its numbers.
 */
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "client/recording/event-name.h"

#define WORDS 6
#define ALONE 1 /* of the words of an operation: the one without a result behind it */

typedef struct NamedNumber {
        const char *name, *unit;
} NamedNumber;

static const NamedNumber software[PERF_COUNT_SW_MAX] = {
#define SOFTWARE_EVENT(name, alias, number, unit, help) [number] = { name, unit },
#include "proto/event-numbers.def"
};

static const NamedNumber hardware[PERF_COUNT_HW_MAX] = {
#define HARDWARE_EVENT(name, alias, number, unit, help) [number] = { name, unit },
#include "proto/event-numbers.def"
};

static const char *const caches[PERF_COUNT_HW_CACHE_MAX][WORDS] = {
#define CACHE(number, operations, ...) [number] = { __VA_ARGS__ },
#include "proto/event-numbers.def"
};

static const char *const operations[PERF_COUNT_HW_CACHE_OP_MAX][WORDS] = {
#define CACHE_OP(number, ...) [number] = { __VA_ARGS__ },
#include "proto/event-numbers.def"
};

static const char *const results[PERF_COUNT_HW_CACHE_RESULT_MAX][WORDS] = {
#define CACHE_RESULT(number, ...) [number] = { __VA_ARGS__ },
#include "proto/event-numbers.def"
};

static const NamedNumber *find(const NamedNumber *table, size_t n, uint64_t number) {
        return number < n && table[number].name ? &table[number] : NULL;
}

static const NamedNumber *find_numbered(const perfd_recorded_event *e) {
        if (e->type == PERF_TYPE_SOFTWARE)
                return find(software, PERF_COUNT_SW_MAX, e->config);
        return e->type == PERF_TYPE_HARDWARE ? find(hardware, PERF_COUNT_HW_MAX, e->config) : NULL;
}

const char *event_unit(const perfd_recorded_event *e) {
        const NamedNumber *n = find_numbered(e);

        return n ? n->unit : "events";
}

/* perf_event_open(2): the cache, the operation and the result are a byte each. */
static bool put_cache(uint64_t config, char to[static EVENT_NAME_SIZE]) {
        const uint64_t cache = config & 0xff, operation = config >> 8 & 0xff, result = config >> 16;

        if (cache >= PERF_COUNT_HW_CACHE_MAX || operation >= PERF_COUNT_HW_CACHE_OP_MAX || result >= PERF_COUNT_HW_CACHE_RESULT_MAX)
                return false;
        if (result == PERF_COUNT_HW_CACHE_RESULT_ACCESS)
                (void)snprintf(to, EVENT_NAME_SIZE, "%s-%s", caches[cache][0], operations[operation][ALONE]);
        else
                (void)snprintf(to, EVENT_NAME_SIZE, "%s-%s-%s", caches[cache][0], operations[operation][0], results[result][0]);
        return true;
}

/* "mem:0x1000/4:rw": with its length, which an access for execution has none of. */
static bool put_breakpoint(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]) {
        const uint32_t access = e->bp_type & (HW_BREAKPOINT_RW | HW_BREAKPOINT_X);

        if (access == 0 || access != e->bp_type)
                return false;
        if (access == HW_BREAKPOINT_X)
                (void)snprintf(to, EVENT_NAME_SIZE, "mem:0x%" PRIx64 ":x", e->config1);
        else
                (void)snprintf(to, EVENT_NAME_SIZE, "mem:0x%" PRIx64 "/%" PRIu64 ":%s%s", e->config1, e->config2,
                               access & HW_BREAKPOINT_R ? "r" : "", access & HW_BREAKPOINT_W ? "w" : "");
        return true;
}

void event_name_of(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]) {
        const NamedNumber *n = find_numbered(e);
        bool is_named = n != NULL;

        if (n)
                (void)snprintf(to, EVENT_NAME_SIZE, "%s", n->name);
        else if (e->type == PERF_TYPE_HW_CACHE)
                is_named = put_cache(e->config, to);
        else if (e->type == PERF_TYPE_BREAKPOINT)
                is_named = put_breakpoint(e, to);
        else if (e->type == PERF_TYPE_RAW) {
                (void)snprintf(to, EVENT_NAME_SIZE, "r%" PRIx64, e->config);
                is_named = true;
        }
        if (!is_named)
                (void)snprintf(to, EVENT_NAME_SIZE, "type=%" PRIu32 ",config=0x%" PRIx64, e->type, e->config);
}

void event_name_in_perf(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]) {
        const char *name = NULL;

        if (e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_CPU_CYCLES)
                name = "cycles";
        else if (e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_BRANCH_INSTRUCTIONS)
                name = "branches";
        else if (e->type == PERF_TYPE_SOFTWARE && e->config == PERF_COUNT_SW_BPF_OUTPUT) /* which nobody samples but a BPF program */
                name = "bpf-output";
        if (name)
                (void)snprintf(to, EVENT_NAME_SIZE, "%s", name);
        else
                event_name_of(e, to);
}
