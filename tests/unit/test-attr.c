/* What the kernel is asked for, bit by bit: each attr is compared as a whole with one that is written out here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/kernel/event/attr.h"

#define IDENTITY (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define READ_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_LOST)

typedef struct AttrSource {
        uint32_t type;
        uint64_t config;
} AttrSource;

/* which of several software events a sample is of */
#define OWN_ID PERF_SAMPLE_READ
#define OWN_ID_FORMAT (PERF_FORMAT_LOST | PERF_FORMAT_ID) /* each sample has what is read, so no times */

static const AttrBase base = { .clock = CLOCK_MONOTONIC, .has_lost = true, .inherits_reads = true, .watermark = 65536 };

static Event *event_of(EventSpec spec) {
        EventSpec copy;
        Event *e;

        spec.name = (char *)"the-name";
        assert_int_equal(event_spec_copy(&spec, &copy), 0);
        e = event_new(1, &copy, NULL, 1);
        assert_non_null(e);
        return e;
}

/* The plan of one event, or of a group of it and of page-faults. */
static int plan_of(const AttrBase *with, Event *event, AttrSource source, bool is_group, struct perf_event_attr attrs[2],
                   AttrPlan *ret, Explanation *e) {
        EventModifiers none = { .user = false };

        attrs[0] = attr_of_source(source.type, source.config, &none);
        if (source.type == PERF_TYPE_BREAKPOINT)
                attrs[0] = attr_of_breakpoint(&(EventName){ .address = 0x1000, .length = 4, .access = 3 });
        attrs[1] = attr_of_source(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, &none);
        *ret = (AttrPlan){ .attrs = attrs, .n_attrs = is_group ? 2 : 1, .is_group = is_group };
        return attr_plan(with, event, ret, true, e);
}

typedef struct Case {
        EventSpec spec;
        AttrSource source;
        bool for_task;
        struct perf_event_attr attr; /* what is not the same for all */
        uint64_t period;
        bool exact, in_ns;
        nsec_t interval;
} Case;

static const Case cases[] = {
        /* a tracepoint: each occurrence */
        { .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_RAW } },
        { .spec = { .filter = (char *)"a == 1" }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_RAW } },
        { .spec = { .period = 100 }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 100,
          .attr = { .sample_period = 100, .sample_type = IDENTITY | PERF_SAMPLE_RAW } },
        { .spec = { .frequency = 50 }, .source = { PERF_TYPE_TRACEPOINT, 123 },
          .attr = { .freq = 1, .sample_freq = 50, .sample_type = IDENTITY | PERF_SAMPLE_RAW | PERF_SAMPLE_PERIOD } },
        /* of a task: its children too, unless that is not wanted */
        { .source = { PERF_TYPE_TRACEPOINT, 123 }, .for_task = true, .period = 1, .exact = true,
          .attr = { .inherit = 1, .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_RAW } },
        { .spec = { .no_inherit = true }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .for_task = true, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_RAW } },
        { .spec = { .no_inherit = true }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_RAW } },
        /* software events */
        { .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_IP | OWN_ID } },
        { .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES }, .for_task = true, .period = 1, .exact = true,
          .attr = { .inherit = 1, .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_IP | OWN_ID } },
        { .spec = { .period = 1000 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS }, .period = 1000,
          .attr = { .sample_period = 1000, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | OWN_ID } },
        { .spec = { .period = INT64_MAX }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ }, .period = INT64_MAX,
          .attr = { .sample_period = INT64_MAX, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | OWN_ID } },
        { .spec = { .frequency = 7 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
          .attr = { .freq = 1, .sample_freq = 7,
                    .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | OWN_ID } },
        /* clocks: 99 Hz unless something else is asked for, and their count is time */
        { .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK }, .in_ns = true,
          .attr = { .freq = 1, .sample_freq = 99, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD } },
        { .spec = { .frequency = 1000 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK }, .in_ns = true, .for_task = true,
          .attr = { .inherit = 1, .freq = 1, .sample_freq = 1000, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD } },
        { .spec = { .period = 1000000 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK }, .in_ns = true,
          .period = 1000000, .attr = { .sample_period = 1000000, .sample_type = IDENTITY | PERF_SAMPLE_IP } },
        { .spec = { .period = 1 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK }, .in_ns = true, .period = 1,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_IP } },
        /* callchains: each half can be left out */
        { .spec = { .callchain = CALLCHAIN_KERNEL | CALLCHAIN_USER }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1,
          .exact = true, .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN } },
        { .spec = { .callchain = CALLCHAIN_KERNEL }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .exclude_callchain_user = 1,
                    .sample_type = IDENTITY | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN } },
        { .spec = { .callchain = CALLCHAIN_USER }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK }, .in_ns = true,
          .attr = { .freq = 1, .sample_freq = 99, .exclude_callchain_kernel = 1,
                    .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN } },
#if defined(__x86_64__)
        /* copies of stacks, as of perf record --call-graph dwarf, and without the kernel's callchain */
        { .spec = { .callchain = CALLCHAIN_DWARF }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .exclude_callchain_user = 1, .mmap_data = 1, .sample_regs_user = 0xff0fff, .sample_stack_user = 8192,
                    .sample_type = IDENTITY | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER } },
        { .spec = { .callchain = CALLCHAIN_DWARF | CALLCHAIN_USER }, .source = { PERF_TYPE_TRACEPOINT, 123 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .mmap_data = 1, .sample_regs_user = 0xff0fff, .sample_stack_user = 8192,
                    .sample_type = IDENTITY | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER } },
#endif
        /* hardware: 99 Hz as clocks, or only counted where an interval is asked for */
        { .source = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
          .attr = { .freq = 1, .sample_freq = 99, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD } },
        { .spec = { .interval = 5 * NSEC_PER_MSEC }, .source = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
          .interval = 5 * NSEC_PER_MSEC, .attr = { .sample_type = IDENTITY | PERF_SAMPLE_IP } },
        { .spec = { .period = 1 }, .source = { PERF_TYPE_RAW, 0x1c2 }, .period = 1,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_IP } },
        { .source = { PERF_TYPE_BREAKPOINT, 0 }, .period = 1, .exact = true,
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR, .bp_type = 3,
                    .bp_addr = 0x1000, .bp_len = 4 } },
        { .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY }, .attr = { .sample_type = IDENTITY | PERF_SAMPLE_IP } },
};

static void test_events(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];
                _cleanup_(event_unrefp) Event *event = event_of(c->spec);
                struct perf_event_attr want = c->attr, attr, attrs[2];
                Explanation e = EXPLANATION_NULL;
                AttrPlan plan;

                want.type = c->source.type;
                want.config = c->source.config;
                want.size = PERF_ATTR_SIZE_VER3; /* up to clockid: every kernel that perfd runs on has it */
                want.read_format = want.sample_type & OWN_ID ? OWN_ID_FORMAT : READ_FORMAT;
                want.disabled = want.sample_id_all = want.use_clockid = want.watermark = 1;
                want.clockid = CLOCK_MONOTONIC;
                want.wakeup_watermark = 65536;
                if (plan_of(&base, event, c->source, false, attrs, &plan, &e) != 0)
                        fail_msg("case %zu: %s", i, e.text);
                attr = attr_for(&plan, 0, c->for_task, c->spec.no_inherit);
                if (memcmp(&attr, &want, sizeof(attr)) != 0 || event->spec.interval != c->interval ||
                    event->period != c->period || event->exact != c->exact || event->in_ns != c->in_ns)
                        fail_msg("case %zu: sample_type %llx, period %llu, freq %u", i, (unsigned long long)attr.sample_type,
                                 (unsigned long long)attr.sample_period, (unsigned)attr.freq);
                /* with a fixed period it makes the kernel write a sample for every occurrence */
                assert_int_equal(attr.freq, (attr.sample_type & PERF_SAMPLE_PERIOD) != 0);
        }
}

/* An event of `spec` planned in `plan`, whose attrs may have been planned before: as a live change of its period does. */
static void plan_again(EventSpec spec, AttrPlan *plan) {
        _cleanup_(event_unrefp) Event *event = event_of(spec);
        Explanation e = EXPLANATION_NULL;

        plan->hides_read = false;
        if (attr_plan(&base, event, plan, true, &e) != 0)
                fail_msg("%s", e.text);
}

static void test_planned_again(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];
                _cleanup_(event_unrefp) Event *event = event_of(c->spec), *sampled = NULL;
                struct perf_event_attr first[2], fresh[2], again[2];
                EventSpec spec = c->spec;
                Explanation e;
                AttrPlan plan;

                assert_int_equal(plan_of(&base, event, c->source, false, first, &plan, &e), 0);
                spec.period = 7;
                spec.frequency = 0;
                spec.interval = event->spec.interval;
                if (plan_of(&base, sampled = event_of(spec), c->source, false, fresh, &plan, &e) != 0)
                        continue; /* a dummy */
                memcpy(again, first, sizeof(again));
                plan.attrs = again;
                plan_again(spec, &plan);
                if (memcmp(again, fresh, sizeof(again[0])) != 0)
                        fail_msg("case %zu is planned otherwise than a new event", i);
                spec.period = event->spec.period;
                spec.frequency = event->spec.frequency;
                plan_again(spec, &plan);
                if (memcmp(again, first, sizeof(again[0])) != 0)
                        fail_msg("case %zu does not come back to what it was", i);
        }
}

static void test_base(void **state) {
        const AttrBase old = { .clock = CLOCK_BOOTTIME, .has_lost = false, .watermark = 4096 };
        _cleanup_(event_unrefp) Event *event = event_of(EVENT_SPEC_NULL);
        struct perf_event_attr attr, attrs[2];
        AttrPlan plan;

        assert_int_equal(plan_of(&old, event, (AttrSource){ PERF_TYPE_TRACEPOINT, 123 }, false, attrs, &plan, NULL), 0);
        attr = attr_for(&plan, 0, false, false);
        assert_int_equal(attr.read_format, READ_FORMAT & ~PERF_FORMAT_LOST);
        assert_int_equal(attr.clockid, CLOCK_BOOTTIME);
        assert_int_equal(attr.wakeup_watermark, 4096);
}

/*
 * Where inherited samples cannot read, they have no id of their own; and who asks for what was read, gets it. Times are read
 * where somebody needs them.
 */
static void test_own_id(void **state) {
        const AttrBase old = { .clock = CLOCK_MONOTONIC, .has_lost = true };
        char *read[] = { (char *)"sample-type=read" }, *on_exec[] = { (char *)"enable-on-exec=true" };
        uint32_t pid = 1;
        const struct {
                const AttrBase *base;
                EventSpec spec;
                bool reads, hides, inherits, has_times;
        } tries[] = {
                { &base, { .pids = &pid, .n_pids = 1 }, true, true, true, false },
                { &old, { .pids = &pid, .n_pids = 1 }, false, false, true, true },
                { &old, { .tids = &pid, .n_tids = 1 }, false, false, true, true },
                { &old, { .pids = &pid, .n_pids = 1, .no_inherit = true }, true, true, false, false },
                { &old, { .period = 1 }, true, true, true, false },
                { &base, { .attr = { read, 1 } }, true, false, false, true },
                { &base, { .pids = &pid, .n_pids = 1, .attr = { on_exec, 1 } }, true, true, true, true },
                { &base, { .period = 1, .interval = NSEC_PER_SEC }, true, true, true, true },
        };
        const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        AttrSource faults = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS };

        for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
                _cleanup_(event_unrefp) Event *event = event_of(tries[i].spec);
                struct perf_event_attr attrs[2];
                AttrPlan plan;

                assert_int_equal(plan_of(tries[i].base, event, faults, false, attrs, &plan, NULL), 0);
                assert_int_equal((attrs[0].sample_type & PERF_SAMPLE_READ) != 0, tries[i].reads);
                assert_int_equal((attrs[0].read_format & PERF_FORMAT_ID) != 0, tries[i].reads);
                assert_int_equal(attrs[0].read_format & times, tries[i].has_times ? times : 0);
                assert_int_equal(plan.hides_read, tries[i].hides);
                assert_int_equal(attr_for(&plan, 0, true, event->spec.no_inherit).inherit, tries[i].inherits);
        }
}

static void test_carrier(void **state) {
        struct perf_event_attr attr = attr_of_plain_carrier(&base), want = {
                .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .size = PERF_ATTR_SIZE_VER3, .sample_type = IDENTITY,
                .read_format = READ_FORMAT, .disabled = 1, .sample_id_all = 1, .use_clockid = 1, .watermark = 1,
                .clockid = CLOCK_MONOTONIC, .wakeup_watermark = 65536,
                .comm = 1, .comm_exec = 1, .task = 1, .mmap = 1, .mmap2 = 1,
        };

        assert_memory_equal(&attr, &want, sizeof(attr));
        attr = attr_of_carrier(&base);
        want.namespaces = want.cgroup = want.ksymbol = want.bpf_event = 1;
        assert_memory_equal(&attr, &want, sizeof(attr));
}

/* The leader is switched, the others are on with it; only samples make it read the others. */
static void test_group(void **state) {
        _cleanup_(event_unrefp) Event *counting = event_of(EVENT_SPEC_NULL);
        _cleanup_(event_unrefp) Event *sampling = event_of((EventSpec){ .period = 1000, .callchain = CALLCHAIN_USER });
        char *stat[] = { (char *)"inherit-stat=true" };
        _cleanup_(event_unrefp) Event *by_thread = event_of((EventSpec){ .attr = { stat, 1 } });
        AttrSource cycles = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES };
        struct perf_event_attr attrs[2];
        AttrPlan plan;

        assert_int_equal(plan_of(&base, counting, cycles, true, attrs, &plan, NULL), 0);
        assert_int_equal(counting->spec.interval, NSEC_PER_SEC);
        assert_false(attr_has_samples(&attrs[0]));
        assert_int_equal(attrs[0].disabled, 1);
        assert_int_equal(attrs[1].disabled, 0);
        assert_int_equal(attrs[0].read_format, READ_FORMAT | PERF_FORMAT_GROUP); /* all are read at one moment */
        assert_int_equal(attrs[1].read_format, READ_FORMAT);
        assert_int_equal(attr_for(&plan, 0, true, false).inherit, 1);

        assert_int_equal(plan_of(&base, by_thread, cycles, true, attrs, &plan, NULL), 0);
        assert_int_equal(attrs[0].inherit_stat, 1);
        assert_int_equal(attrs[0].read_format, READ_FORMAT); /* what is told of a thread that ends is its own count */

        assert_int_equal(plan_of(&base, sampling, cycles, true, attrs, &plan, NULL), 0);
        assert_int_equal(sampling->spec.interval, 0);
        assert_int_equal(attrs[0].sample_period, 1000);
        assert_int_equal(attrs[0].sample_type, IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN);
        assert_int_equal(attrs[0].read_format, READ_FORMAT | PERF_FORMAT_GROUP | PERF_FORMAT_ID);
        assert_int_equal(attrs[1].sample_type, IDENTITY);
        assert_int_equal(attrs[1].sample_period, 0);
        assert_int_equal(attrs[1].read_format, READ_FORMAT);
        assert_int_equal(attr_for(&plan, 0, true, false).inherit, 0); /* the kernel refuses both together */
}

/* What a user sets lies on top of what perfd sets, and what contradicts itself is refused by name. */
static void test_settings(void **state) {
        char *good[] = { (char *)"exclude-kernel=true", (char *)"sample-type=cpu" }, *bad[] = { (char *)"precise-ip=4" };
        AttrSource cycles = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES };
        _cleanup_(event_unrefp) Event *set = event_of((EventSpec){ .attr = { good, 2 }, .period = 7 });
        _cleanup_(event_unrefp) Event *refused = event_of((EventSpec){ .attr = { bad, 1 } });
        Explanation e = EXPLANATION_NULL;
        struct perf_event_attr attrs[2];
        AttrPlan plan;

        assert_int_equal(plan_of(&base, set, cycles, false, attrs, &plan, NULL), 0);
        assert_int_equal(attrs[0].exclude_kernel, 1);
        assert_int_equal(attrs[0].sample_type, IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_CPU);
        assert_int_equal(plan_of(&base, refused, cycles, false, attrs, &plan, &e), REFUSED_INVALID);
        assert_non_null(strstr(e.text, "precise-ip"));
}

static void test_contradictions(void **state) {
        static const struct {
                EventSpec spec;
                AttrSource source;
                const char *said[3];
        } refused[] = {
                { { .period = 5, .frequency = 6 }, { PERF_TYPE_TRACEPOINT, 123 }, { "period (5)", "frequency (6)", "the-name" } },
                { { .period = 5, .frequency = 6 }, { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK }, { "period (5)", "frequency (6)" } },
                { { .period = 1ULL << 63 }, { PERF_TYPE_TRACEPOINT, 123 }, { "period 9223372036854775808", "2^63 - 1" } },
                { { .period = UINT64_MAX }, { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK }, { "period", "the-name" } },
                { { .filter = (char *)"a == 1" }, { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS }, { "filter", "--where", "the-name" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                _cleanup_(event_unrefp) Event *event = event_of(refused[i].spec);
                Explanation e = EXPLANATION_NULL;
                struct perf_event_attr attrs[2];
                AttrPlan plan;

                assert_int_equal(plan_of(&base, event, refused[i].source, false, attrs, &plan, &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-event");
                for (size_t k = 0; k < 3 && refused[i].said[k]; k++)
                        if (!strstr(e.text, refused[i].said[k]))
                                fail_msg("'%s' does not say '%s'", e.text, refused[i].said[k]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_planned_again),
                cmocka_unit_test(test_base),
                cmocka_unit_test(test_own_id),
                cmocka_unit_test(test_carrier),
                cmocka_unit_test(test_group),
                cmocka_unit_test(test_settings),
                cmocka_unit_test(test_contradictions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
