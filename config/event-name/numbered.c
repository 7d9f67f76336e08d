/*
 * Software and hardware events: one table for each, in the order of perf_event.h, with perf's names and aliases. What
 * perf calls an event of a carrier, "dummy", is here too: it never occurs, and records beside samples need it.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

static const NumberedEvent software_table[] = {
        { "cpu-clock", NULL, PERF_COUNT_SW_CPU_CLOCK, "ns", "time of the CPU" },
        { "task-clock", NULL, PERF_COUNT_SW_TASK_CLOCK, "ns", "time that a task runs" },
        { "page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, "events", "page faults, minor and major" },
        { "context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, "events", "switches to another task" },
        { "cpu-migrations", "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "events", "migrations of a task to another CPU" },
        { "minor-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MIN, "events", "page faults without disk access" },
        { "major-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "events", "page faults with disk access" },
        { "alignment-faults", NULL, PERF_COUNT_SW_ALIGNMENT_FAULTS, "events", "unaligned accesses, mended" },
        { "emulation-faults", NULL, PERF_COUNT_SW_EMULATION_FAULTS, "events", "instructions emulated" },
        { "dummy", NULL, PERF_COUNT_SW_DUMMY, "events", "nothing: it never occurs, and is used for side records" },
        { "cgroup-switches", NULL, PERF_COUNT_SW_CGROUP_SWITCHES, "events", "switches to a task of another cgroup" },
};

static const NumberedEvent hardware_table[] = {
        { "cpu-cycles", "cycles", PERF_COUNT_HW_CPU_CYCLES, "events", "cycles of the CPU at its variable clock" },
        { "instructions", NULL, PERF_COUNT_HW_INSTRUCTIONS, "events", "instructions retired" },
        { "cache-references", NULL, PERF_COUNT_HW_CACHE_REFERENCES, "events", "accesses of the last-level cache, usually" },
        { "cache-misses", NULL, PERF_COUNT_HW_CACHE_MISSES, "events", "misses of the last-level cache, usually" },
        { "branch-instructions", "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "events", "branches retired" },
        { "branch-misses", NULL, PERF_COUNT_HW_BRANCH_MISSES, "events", "mispredicted branches" },
        { "bus-cycles", NULL, PERF_COUNT_HW_BUS_CYCLES, "events", "bus cycles" },
        { "stalled-cycles-frontend", "idle-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "events",
          "cycles in which no instruction could be fetched or decoded" },
        { "stalled-cycles-backend", "idle-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "events",
          "cycles in which no instruction could be executed" },
        { "ref-cycles", NULL, PERF_COUNT_HW_REF_CPU_CYCLES, "events", "cycles at a constant clock" },
};

static const NumberedEvent *numbered_find(const NumberedEvent *table, size_t n, const char *text, size_t length) {
        for (size_t i = 0; i < n; i++) {
                const char *names[] = { table[i].name, table[i].alias };

                for (size_t k = 0; k < ARRAY_SIZE(names); k++)
                        if (names[k] && strncmp(names[k], text, length) == 0 && names[k][length] == '\0')
                                return &table[i];
        }
        return NULL;
}

bool event_claims_numbered(const char *text) {
        size_t n = strcspn(text, ":");

        return numbered_find(software_table, ARRAY_SIZE(software_table), text, n) ||
               numbered_find(hardware_table, ARRAY_SIZE(hardware_table), text, n);
}

int event_parse_numbered(const char *text, EventName *ret, Explanation *e) {
        size_t n = strcspn(text, ":");

        ret->kind = EVENT_NAME_SOFTWARE;
        ret->numbered = numbered_find(software_table, ARRAY_SIZE(software_table), text, n);
        if (!ret->numbered) {
                ret->kind = EVENT_NAME_HARDWARE;
                ret->numbered = numbered_find(hardware_table, ARRAY_SIZE(hardware_table), text, n);
        }
        assert(ret->numbered); /* claimed */
        ret->config = ret->numbered->config;
        return text[n] ? event_modifiers_parse(text, n + 1, &ret->modifiers, e) : 0;
}

static void table_near(const NumberedEvent *table, size_t n, Nearest *near, const char *word) {
        for (size_t i = 0; i < n; i++) {
                nearest_add(near, word, table[i].name);
                if (table[i].alias)
                        nearest_add(near, word, table[i].alias);
        }
}

void event_numbered_near(Nearest *near, const char *word) {
        table_near(hardware_table, ARRAY_SIZE(hardware_table), near, word);
        table_near(software_table, ARRAY_SIZE(software_table), near, word);
}

const NumberedEvent *software_events(size_t *ret_n) {
        *ret_n = ARRAY_SIZE(software_table);
        return software_table;
}

const NumberedEvent *hardware_events(size_t *ret_n) {
        *ret_n = ARRAY_SIZE(hardware_table);
        return hardware_table;
}

const NumberedEvent *software_event_find(const char *name) {
        return numbered_find(software_table, ARRAY_SIZE(software_table), name, strlen(name));
}

const NumberedEvent *hardware_event_find(const char *name) {
        return numbered_find(hardware_table, ARRAY_SIZE(hardware_table), name, strlen(name));
}
