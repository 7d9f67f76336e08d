/* What the kernel is asked for, bit by bit: each attr is compared as a whole with one that is written out here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/kernel/attr.h"

#define IDENTITY (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define TRACEPOINT ((AttrSource){ PERF_TYPE_TRACEPOINT, 123 })

static const AttrBase base = { .clock = CLOCK_MONOTONIC, .has_lost = true, .watermark = 65536 };

static Event *event_of(EventSpec spec) {
        EventSpec copy;
        Event *e;

        spec.name = (char *)"the-name";
        assert_int_equal(event_spec_copy(&spec, &copy), 0);
        e = event_new(1, &copy, NULL, 1);
        assert_non_null(e);
        return e;
}

typedef struct Case {
        EventSpec spec;
        AttrSource source;
        bool for_task;
        struct perf_event_attr attr; /* what is not the same for all */
        uint64_t period;
        bool exact, in_ns;
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
          .attr = { .sample_period = 1, .sample_type = IDENTITY | PERF_SAMPLE_IP } },
        { .spec = { .period = 1000 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS }, .period = 1000,
          .attr = { .sample_period = 1000, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR } },
        { .spec = { .period = INT64_MAX }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ }, .period = INT64_MAX,
          .attr = { .sample_period = INT64_MAX, .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR } },
        { .spec = { .frequency = 7 }, .source = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
          .attr = { .freq = 1, .sample_freq = 7,
                    .sample_type = IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD } },
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
};

static void test_events(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];
                _cleanup_(event_unrefp) Event *event = event_of(c->spec);
                struct perf_event_attr want = c->attr, attr;

                want.type = c->source.type;
                want.config = c->source.config;
                want.size = sizeof(want);
                want.read_format = PERF_FORMAT_LOST;
                want.disabled = want.sample_id_all = want.use_clockid = want.watermark = 1;
                want.clockid = CLOCK_MONOTONIC;
                want.wakeup_watermark = 65536;
                assert_int_equal(attr_plan_event(event, c->source, NULL), 0);
                attr = attr_of_event(&base, event, c->source, c->for_task);
                if (memcmp(&attr, &want, sizeof(attr)) != 0 || event->sample_type != want.sample_type ||
                    event->period != c->period || event->exact != c->exact || event->in_ns != c->in_ns)
                        fail_msg("case %zu: sample_type %llx, period %llu, freq %u", i, (unsigned long long)attr.sample_type,
                                 (unsigned long long)attr.sample_period, (unsigned)attr.freq);
                /* with a fixed period it makes the kernel write a sample for every occurrence */
                assert_int_equal(attr.freq, (attr.sample_type & PERF_SAMPLE_PERIOD) != 0);
        }
}

static void test_base(void **state) {
        const AttrBase old = { .clock = CLOCK_BOOTTIME, .has_lost = false, .watermark = 4096 };
        _cleanup_(event_unrefp) Event *event = event_of(EVENT_SPEC_NULL);
        struct perf_event_attr attr;

        assert_int_equal(attr_plan_event(event, TRACEPOINT, NULL), 0);
        attr = attr_of_event(&old, event, TRACEPOINT, false);
        assert_int_equal(attr.read_format, 0);
        assert_int_equal(attr.clockid, CLOCK_BOOTTIME);
        assert_int_equal(attr.wakeup_watermark, 4096);
}

static void test_carrier(void **state) {
        struct perf_event_attr attr = attr_of_carrier(&base), want = {
                .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .size = sizeof(want), .sample_type = IDENTITY,
                .read_format = PERF_FORMAT_LOST, .disabled = 1, .sample_id_all = 1, .use_clockid = 1, .watermark = 1,
                .clockid = CLOCK_MONOTONIC, .wakeup_watermark = 65536,
                .comm = 1, .comm_exec = 1, .task = 1, .mmap = 1, .mmap2 = 1,
        };

        assert_memory_equal(&attr, &want, sizeof(attr));
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

                assert_int_equal(attr_plan_event(event, refused[i].source, &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-event");
                for (size_t k = 0; k < 3 && refused[i].said[k]; k++)
                        if (!strstr(e.text, refused[i].said[k]))
                                fail_msg("'%s' does not say '%s'", e.text, refused[i].said[k]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_base),
                cmocka_unit_test(test_carrier),
                cmocka_unit_test(test_contradictions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
