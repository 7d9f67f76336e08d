/*
 * PERF_SAMPLE_PERIOD is only asked for together with a frequency: on software events and tracepoints with a fixed
 * period above 1 it makes the kernel write a sample for every occurrence (perf_swevent_event()), period or not.
 */
#include "daemon/kernel/attr.h"

#define CLOCK_FREQUENCY 99 /* Hz; not 100, so that it does not beat with what runs each 10 ms */

static bool source_is_clock(AttrSource s) {
        return s.type == PERF_TYPE_SOFTWARE &&
               (s.config == PERF_COUNT_SW_CPU_CLOCK || s.config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool source_has_address(AttrSource s) {
        return s.type == PERF_TYPE_SOFTWARE &&
               (s.config == PERF_COUNT_SW_PAGE_FAULTS || s.config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
                s.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

int attr_plan_event(Event *event, AttrSource source, Explanation *e) {
        EventSpec *s = &event->spec;

        if (s->period && s->frequency)
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "%s has both a period (%llu) and a frequency (%llu): give one of them", s->name,
                              (unsigned long long)s->period, (unsigned long long)s->frequency);
        if (s->period >> 63)
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: period %llu is above 2^63 - 1", s->name,
                              (unsigned long long)s->period);
        if (s->filter && source.type != PERF_TYPE_TRACEPOINT)
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "%s: only tracepoints have a filter in the kernel; filter software events by "
                              "`perfctl watch --where`", s->name);
        event->in_ns = source_is_clock(source);
        if (event->in_ns && !s->period && !s->frequency)
                s->frequency = CLOCK_FREQUENCY;
        event->period = s->frequency ? 0 : s->period ? s->period : 1;
        event->exact = event->period == 1 && !event->in_ns;

        event->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        if (source.type == PERF_TYPE_TRACEPOINT)
                event->sample_type |= PERF_SAMPLE_RAW;
        else
                event->sample_type |= PERF_SAMPLE_IP;
        if (source_has_address(source))
                event->sample_type |= PERF_SAMPLE_ADDR;
        if (s->frequency)
                event->sample_type |= PERF_SAMPLE_PERIOD;
        if (s->callchain)
                event->sample_type |= PERF_SAMPLE_CALLCHAIN;
        return 0;
}

static struct perf_event_attr attr_start(const AttrBase *base) {
        return (struct perf_event_attr){
                .size = sizeof(struct perf_event_attr),
                .read_format = base->has_lost ? PERF_FORMAT_LOST : 0,
                .disabled = 1,
                .sample_id_all = 1,
                .use_clockid = 1,
                .clockid = base->clock,
                .watermark = 1,
                .wakeup_watermark = base->watermark,
        };
}

struct perf_event_attr attr_of_event(const AttrBase *base, const Event *event, AttrSource source, bool for_task) {
        const EventSpec *s = &event->spec;
        struct perf_event_attr attr = attr_start(base);

        attr.type = source.type;
        attr.config = source.config;
        attr.sample_type = event->sample_type;
        attr.inherit = for_task && !s->no_inherit;
        attr.freq = s->frequency != 0;
        if (attr.freq)
                attr.sample_freq = s->frequency;
        else
                attr.sample_period = event->period;
        if (s->callchain) {
                attr.exclude_callchain_kernel = !(s->callchain & CALLCHAIN_KERNEL);
                attr.exclude_callchain_user = !(s->callchain & CALLCHAIN_USER);
        }
        return attr;
}

struct perf_event_attr attr_of_carrier(const AttrBase *base) {
        struct perf_event_attr attr = attr_start(base);

        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_DUMMY;
        attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        attr.comm = attr.comm_exec = attr.task = attr.mmap = attr.mmap2 = 1;
        return attr;
}
