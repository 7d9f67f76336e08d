/*
 * PERF_SAMPLE_PERIOD is only asked for together with a frequency: on software events and tracepoints with a fixed
 * period above 1 it makes the kernel write a sample for every occurrence (perf_swevent_event()), period or not. Just that is
 * wanted of the tracepoints that count nanoseconds (TP_perf_assign() with __perf_count()): without it one occurrence of 4 ms
 * is 4,000,000 samples.
 *
 * PERF_FORMAT_GROUP lets one read(2) of a leader, or each of its samples, have the counts of all members at one moment. The
 * members themselves are read alone. A leader with inherited children may have it too, but not for samples, and not with
 * inherit_stat: PERF_RECORD_READ is one thread's own count.
 *
 * All software events of one kind that happen on a CPU at one moment share what the kernel prepares for their samples
 * (do_perf_sw_event()), and since Linux 6.3 that includes the stream id: all of them are written with that of the first.
 * What PERF_SAMPLE_READ says is not prepared but read as it is written, so their samples ask for it, and their own id is
 * the one in there. Their callchain stays that of the first. Up to Linux 6.12 inherited events cannot have it; those of
 * one task there are told apart only if they are of different kinds. The times of what was read are not asked for beside the id,
 * unless somebody needs them: they are 16 bytes of each sample, and a look at the clock (calc_timer_values()). Software events
 * are never multiplexed, so they say nothing either, but of what an exec enables, whether it has.
 *
 * What every sample has beside what was asked for, and why: IDENTIFIER, because all events of a CPU share its ring; TID, for the
 * process, its uid and cgroup; TIME, for the order across CPUs, and for the place of records between counts. The CPU is that
 * of the ring. LOST in read_format is the ledger's; it is read(2), and is in samples only where these read.
 */
#include "daemon/kernel/event/attr.h"

#include <string.h>

#include "config/attr/attr-setting.h"

#define DEFAULT_FREQUENCY 99 /* Hz; not 100, so that it does not beat with what runs each 10 ms */
#define DEFAULT_INTERVAL NSEC_PER_SEC /* of what only counts */

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)
#endif

static bool is_clock(const struct perf_event_attr *a) {
        return a->type == PERF_TYPE_SOFTWARE &&
               (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool is_dummy(const struct perf_event_attr *a) {
        return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY;
}

/* Events that happen one by one in software, so that each can be a sample and the count is their number. */
static bool is_occurrence(const AttrPlan *plan) {
        const struct perf_event_attr *a = &plan->attrs[0];

        return plan->is_probe || a->type == PERF_TYPE_TRACEPOINT || a->type == PERF_TYPE_BREAKPOINT ||
               (a->type == PERF_TYPE_SOFTWARE && !is_clock(a) && !is_dummy(a));
}

/* __perf_count() in include/trace/events/sched.h; no format says it. */
static bool counts_time(const Event *event) {
        static const char prefix[] = "sched_stat_";
        const Plan *plan = event->plan;

        return plan && strcmp(plan->group, "sched") == 0 && strncmp(plan->name, prefix, sizeof(prefix) - 1) == 0;
}

static bool has_address(const struct perf_event_attr *a) {
        return a->type == PERF_TYPE_BREAKPOINT ||
               (a->type == PERF_TYPE_SOFTWARE &&
                (a->config == PERF_COUNT_SW_PAGE_FAULTS || a->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
                 a->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ));
}

const char *attr_unit(const struct perf_event_attr *attr) {
        return is_clock(attr) ? "ns" : "events";
}

struct perf_event_attr attr_of_source(uint32_t type, uint64_t config, const EventModifiers *m) {
        struct perf_event_attr attr = { .type = type, .config = config };

        if (m->user || m->kernel || m->hypervisor) {
                attr.exclude_user = !m->user;
                attr.exclude_kernel = !m->kernel;
                attr.exclude_hv = !m->hypervisor;
        }
        if (m->host || m->guest) {
                attr.exclude_host = !m->host;
                attr.exclude_guest = !m->guest;
        }
        attr.exclude_idle = m->no_idle;
        attr.pinned = m->pinned;
        attr.exclusive = m->exclusive;
        attr.precise_ip = m->precise & 3;
        return attr;
}

struct perf_event_attr attr_of_breakpoint(const EventName *name) {
        struct perf_event_attr attr = attr_of_source(PERF_TYPE_BREAKPOINT, 0, &name->modifiers);

        attr.bp_type = name->access;
        attr.bp_addr = name->address;
        attr.bp_len = name->length;
        return attr;
}

static int check_period(const EventSpec *s, const struct perf_event_attr *leader, bool can_sample, Explanation *e) {
        if (s->period && s->frequency)
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "%s has both a period (%llu) and a frequency (%llu): give one of them", s->name,
                              (unsigned long long)s->period, (unsigned long long)s->frequency);
        if (s->period >> 63)
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: period %llu is above 2^63 - 1", s->name,
                              (unsigned long long)s->period);
        if ((s->period || s->frequency) && (!can_sample || is_dummy(leader)))
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "%s cannot be sampled, only counted: give it an interval instead of a period or frequency",
                              s->name);
        return 0;
}

/* What the leader samples by; 0 and 0: it only counts. */
static void plan_period(Event *event, const AttrPlan *plan, bool can_sample) {
        const struct perf_event_attr *leader = &plan->attrs[0];
        EventSpec *s = &event->spec;
        bool only_counts = s->interval || (plan->is_group && !plan->group_sample) || !can_sample || is_dummy(leader);

        event->in_ns = is_clock(leader) || counts_time(event);
        if (!s->period && !s->frequency && !only_counts && !is_occurrence(plan))
                s->frequency = DEFAULT_FREQUENCY;
        event->period = s->frequency ? 0 : s->period ? s->period : only_counts ? 0 : 1;
        if (!event->period && !s->frequency && !s->interval && !is_dummy(leader))
                s->interval = DEFAULT_INTERVAL;
        event->exact = event->period == 1 && is_occurrence(plan) && !counts_time(event);
}

static uint64_t sample_type_of(const Event *event, const struct perf_event_attr *a, const AttrPlan *plan) {
        const EventSpec *s = &event->spec;
        uint64_t type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;

        type |= a->type == PERF_TYPE_TRACEPOINT ? PERF_SAMPLE_RAW : PERF_SAMPLE_IP;
        if (plan->has_ip)
                type |= PERF_SAMPLE_IP;
        if (has_address(a))
                type |= PERF_SAMPLE_ADDR;
        if (s->frequency || (counts_time(event) && event->period == 1))
                type |= PERF_SAMPLE_PERIOD;
        if (event_spec_callchain(s))
                type |= PERF_SAMPLE_CALLCHAIN;
        if (plan->group_sample)
                type |= PERF_SAMPLE_READ;
        return type;
}

static void attr_start(const AttrBase *base, struct perf_event_attr *attr) {
        attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
                            (base->has_lost ? PERF_FORMAT_LOST : 0);
        attr->disabled = 1;
        attr->sample_id_all = 1;
        attr->use_clockid = 1;
        attr->clockid = base->clock;
        attr->watermark = 1;
        attr->wakeup_watermark = base->watermark;
}

static void plan_leader(const AttrBase *base, const Event *event, const AttrPlan *plan, struct perf_event_attr *attr) {
        const EventSpec *s = &event->spec;
        const unsigned chain = event_spec_callchain(s);

        attr_start(base, attr);
        attr->sample_type = sample_type_of(event, attr, plan);
        attr->freq = s->frequency != 0;
        if (attr->freq)
                attr->sample_freq = s->frequency;
        else
                attr->sample_period = event->period;
        if (chain) {
                attr->exclude_callchain_kernel = !(chain & CALLCHAIN_KERNEL);
                attr->exclude_callchain_user = !(chain & CALLCHAIN_USER);
        }
        if (s->callchain & CALLCHAIN_DWARF)
                (void)attr_add_user_stack(attr); /* attr_plan() has looked whether it can be had */
        if (plan->group_sample)
                attr->read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
}

/* Software events whose samples have to say by another way whose they are. */
static bool shares_samples(const struct perf_event_attr *a) {
        return a->type == PERF_TYPE_SOFTWARE && attr_has_samples(a) && !is_clock(a) && !is_dummy(a);
}

/* Behind what the user sets, who may want to have PERF_SAMPLE_READ himself. */
static void plan_own_id(const AttrBase *base, const EventSpec *s, AttrPlan *plan, struct perf_event_attr *attr) {
        bool is_inherited = (s->n_pids > 0 || s->n_tids > 0) && !s->no_inherit;

        if (!shares_samples(attr))
                return;
        if (!(attr->sample_type & PERF_SAMPLE_READ)) {
                if (is_inherited && !base->inherits_reads)
                        return;
                plan->hides_read = true;
                attr->sample_type |= PERF_SAMPLE_READ;
                if (!s->interval && !attr->enable_on_exec)
                        attr->read_format &= ~(uint64_t)(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
        }
        attr->read_format |= PERF_FORMAT_ID;
}

/* It counts with its leader, and is on whenever that is. */
static void plan_sibling(const AttrBase *base, struct perf_event_attr *attr) {
        attr_start(base, attr);
        attr->disabled = 0;
        attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        attr->pinned = attr->exclusive = 0; /* the leader's to say */
        attr->watermark = 0;
        attr->wakeup_watermark = 0;
}

/* "name=value" */
static int parse_setting(const char *text, AttrSetting *ret, Explanation *e) {
        _cleanup_free_ char *name = strdup(text);
        char *value;

        if (!name)
                return error_origin(-ENOMEM);
        value = strchr(name, '=');
        if (value)
                *value++ = '\0';
        return attr_setting_parse(name, value ? value : "true", ret, e);
}

/* What a user sets lies on top of what perfd sets. */
static int apply_settings(const EventSpec *s, const AttrPlan *plan, struct perf_event_attr *attr, Explanation *e) {
        const struct perf_event_attr before = *attr;
        _cleanup_free_ AttrSetting *settings = calloc(s->attr.n + 1, sizeof(*settings));
        int r = settings ? 0 : error_origin(-ENOMEM);

        for (size_t i = 0; i < s->attr.n && r == 0; i++)
                r = parse_setting(s->attr.items[i], &settings[i], e);
        if (r == 0)
                r = attr_settings_check(settings, s->attr.n, s->name, e);
        if (r != 0)
                return r;
        attr_settings_apply(settings, s->attr.n, attr);
        if (plan->is_probe && (attr->config1 != before.config1 || attr->config2 != before.config2))
                return refuse(e, REFUSED_INVALID, "bad-attr", "%s: config1 and config2 are the location of a probe, which its "
                        "name contains", s->name);
        return attr_check(attr, s->name, e);
}

int attr_plan(const AttrBase *base, Event *event, AttrPlan *plan, bool can_sample, Explanation *e) {
        EventSpec *s = &event->spec;
        int r = check_period(s, &plan->attrs[0], can_sample, e);

        if (r == 0 && s->callchain & CALLCHAIN_DWARF && !attr_add_user_stack(&(struct perf_event_attr){ .size = 0 }))
                r = refuse(e, REFUSED_UNSUPPORTED, "bad-event", "%s: callchain dwarf: stacks are unwound of x86-64 and arm64 only: "
                           "use user, which follows frame pointers", s->name);
        if (r != 0)
                return r;
        plan->group_sample = plan->is_group && (plan->wants_group_sample || s->period || s->frequency);
        if (s->filter && plan->attrs[0].type != PERF_TYPE_TRACEPOINT)
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "%s: only events with fields (tracepoints and probes with arguments) can have a kernel filter; use "
                              "a predicate (`perfctl watch --where`)", s->name);
        plan_period(event, plan, can_sample);
        for (size_t i = 0; i < plan->n_attrs; i++) {
                struct perf_event_attr *attr = &plan->attrs[i];

                if (i > 0 && plan->is_group)
                        plan_sibling(base, attr);
                else {
                        plan_leader(base, event, plan, attr);
                        r = apply_settings(s, plan, attr, e);
                        plan_own_id(base, s, plan, attr);
                        if (plan->is_group && !attr_has_samples(attr) && !attr->inherit_stat)
                                attr->read_format |= PERF_FORMAT_GROUP;
                }
                if (r != 0)
                        return r;
                attr->size = attr_least_size(attr);
        }
        return 0;
}

struct perf_event_attr attr_for(const AttrPlan *plan, size_t i, bool for_task, bool no_inherit) {
        struct perf_event_attr attr = plan->attrs[i];

        /* samples cannot read the counts of inherited events (up to Linux 6.12), or only those of their own thread */
        attr.inherit = for_task && !no_inherit && (plan->hides_read || !(plan->attrs[0].sample_type & PERF_SAMPLE_READ));
        return attr;
}

struct perf_event_attr attr_of_plain_carrier(const AttrBase *base) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY };

        attr_start(base, &attr);
        attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        attr.comm = attr.comm_exec = attr.task = attr.mmap = attr.mmap2 = 1;
        attr.size = attr_least_size(&attr);
        return attr;
}

struct perf_event_attr attr_of_carrier(const AttrBase *base) {
        struct perf_event_attr attr = attr_of_plain_carrier(base);

        attr.namespaces = attr.cgroup = attr.ksymbol = attr.bpf_event = 1;
        return attr;
}
