/*
 * sched:sched_switch is known by its fields, whatever the recording calls the event. Switches come in the order of time, because a thread
 * goes on one CPU and comes back on another. Its threads are those of the fields, which are numbered on the host: the ids of a sample are
 * those of the namespace of whoever recorded, in which all threads outside of it are 0.
 */
#include "client/perfctl/samples/off-cpu-profile.h"

#include <inttypes.h>

#include "client/profile/off-cpu.h"

#define STATE_ENDED UINT64_C(0x30) /* EXIT_DEAD, EXIT_ZOMBIE of the kernel's sched.h */

typedef struct OffCpuSource {
        Perfctl *p;
        SampleProfile *sums;
        OffCpu *off; /* NULL: there was no switch */
} OffCpuSource;

/* What the kernel says of why it does not run, TASK_REPORT of its sched.h. */
static const struct {
        uint64_t bits;
        const char *name;
} states[] = {
        { 0x01, "off-CPU (sleeping)" }, { 0x02, "off-CPU (uninterruptible)" }, { 0x0c, "off-CPU (stopped)" },
        { 0x40, "off-CPU (parked)" },   { 0x80, "off-CPU (idle)" },
};

static const char *state_name(uint64_t state) {
        for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
                if (state & states[i].bits)
                        return states[i].name;
        return "off-CPU (runnable)"; /* others have its CPU */
}

static bool get(const perfd_item *item, const char *name, uint64_t *ret) {
        perfd_value v;

        if (!perfd_item_find(item, name, &v) || v.count != 1)
                return false;
        *ret = v.numbers[0];
        return true;
}

static int add(OffCpuSource *o, const SourceSample *sample, uint64_t prev, uint64_t next, uint64_t state) {
        OffCpuSwitch s = { .time = perfd_item_time(sample->item), .prev = (uint32_t)prev, .next = (uint32_t)next,
                           .has_ended = (state & STATE_ENDED) != 0, .n_frames = sample->n_frames + 1 };
        const ProfileFrame leaf = { .symbol = state_name(state), .kind = FRAME_OFF_CPU };
        uint32_t *frames;
        int code = sample_profile_find(o->sums, sample, &s.task, &frames);

        if (code == 0)
                code = profile_add_frame(sample_profile_get(o->sums), &leaf, &frames[sample->n_frames]);
        if (code != 0)
                return code;
        if (!o->off)
                o->off = must_have(off_cpu_new(sample_profile_get(o->sums)));
        s.frames = frames;
        return off_cpu_add(o->off, &s);
}

static bool take(void *userdata, const SourceSample *sample) {
        OffCpuSource *o = userdata;
        uint64_t prev, next, state;

        if (!get(sample->item, "prev_pid", &prev) || !get(sample->item, "next_pid", &next) || !get(sample->item, "prev_state", &state))
                return true; /* another event */
        return sample_profile_check(o->sums, add(o, sample, prev, next, state));
}

static void tell(const OffCpuSource *o, const char *input) {
        const OffCpuCounts *n = off_cpu_counts(o->off);

        if (n->n_open > 0)
                (void)perfctl_fail(o->p, PERFCTL_OK, "%s: off CPU at the end: %" PRIu64 " threads, which are counted up to the last switch, %" PRIu64
                                   ".%09" PRIu64 " s together", input, n->n_open, n->open_nsec / 1000000000, n->open_nsec % 1000000000);
        if (n->n_missed > 0)
                (void)perfctl_fail(o->p, PERFCTL_OK, "%s: switches by which a thread came back are missing: %" PRIu64 "; these times off CPU are "
                                   "not known, and not counted: all CPUs have to be recorded, without losses", input, n->n_missed);
        if (n->n_backwards > 0)
                (void)perfctl_fail(o->p, PERFCTL_OK, "%s: threads that came back before they went: %" PRIu64 " times, which are not counted",
                                   input, n->n_backwards);
}

int off_cpu_profile_run(Perfctl *p, SampleProfile *s, SampleSource source) {
        OffCpuSource o = { .p = p, .sums = s };
        const char *input = source.input ? source.input : "the live host";
        int code;

        source.has_names = true;
        source.order = PERFD_RECORDING_ORDER_TIME;
        source.userdata = &o;
        source.take = take;
        code = sample_source_run(p, &source);
        if (o.off && sample_profile_check(s, off_cpu_end(o.off)))
                tell(&o, input);
        if (!o.off && code == 0)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: it has no samples of sched:sched_switch, which --off-cpu is made of: record them by "
                                    "'perfctl record sched:sched_switch --callchain kernel,user'", input);
        off_cpu_free(o.off);
        return sample_profile_end(s, input, code);
}
