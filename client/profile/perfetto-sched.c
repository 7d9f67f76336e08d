/* Events of a CPU go into packets of some kilobytes, as Perfetto's own recorder writes them: trace_processor puts all in order of time. */
#include <assert.h>
#include <errno.h>

#include "client/profile/perfetto-packets.h"

#define BUNDLE_BYTES ((size_t)8 << 10) /* of events that wait */

enum { BUNDLE_CPU = 1, BUNDLE_EVENT = 2, BUNDLE_LOST_EVENTS = 3 };
enum { FTRACE_TIMESTAMP = 1, FTRACE_PID = 2, FTRACE_SCHED_SWITCH = 4 };
enum { SWITCH_PREV_COMM = 1, SWITCH_PREV_PID, SWITCH_PREV_PRIO, SWITCH_PREV_STATE, SWITCH_NEXT_COMM, SWITCH_NEXT_PID, SWITCH_NEXT_PRIO };
enum { WAKEUP_COMM = 1, WAKEUP_PID = 2, WAKEUP_PRIO = 3, WAKEUP_TARGET_CPU = 5 };

static int flush(PerfettoWriter *w, uint32_t cpu) {
        CpuEvents *c = &w->cpus[cpu];
        size_t at;

        perfetto_begin(w, 0);
        at = message_open(&w->packet, PACKET_FTRACE_EVENTS);
        message_put_number(&w->packet, BUNDLE_CPU, cpu);
        if (c->has_lost)
                message_put_number(&w->packet, BUNDLE_LOST_EVENTS, true);
        message_put_fields(&w->packet, &c->events);
        message_close(&w->packet, at);
        c->events.n = 0;
        c->has_lost = false;
        return perfetto_end(w);
}

int perfetto_flush_cpus(PerfettoWriter *w) {
        int r = 0;

        for (uint32_t cpu = 0; r == 0 && cpu < PERFETTO_CPUS_MAX; cpu++)
                if (w->cpus[cpu].events.n > 0)
                        r = flush(w, cpu);
        return r;
}

int perfetto_lose(PerfettoWriter *w, uint32_t cpu) {
        int r = w->cpus[cpu].events.n > 0 ? flush(w, cpu) : 0;

        w->cpus[cpu].has_lost = true;
        return r;
}

/* As its common_pid, what ran. */
static size_t begin(PerfettoWriter *w, const PerfettoMoment *m, uint32_t tid) {
        MessageWriter *events = &w->cpus[m->cpu].events;
        size_t at;

        at = message_open(events, BUNDLE_EVENT);
        message_put_number(events, FTRACE_TIMESTAMP, m->time);
        message_put_number(events, FTRACE_PID, tid);
        return at;
}

static int end(PerfettoWriter *w, uint32_t cpu, size_t at) {
        CpuEvents *c = &w->cpus[cpu];

        message_close(&c->events, at);
        if (c->events.has_failed)
                w->error = -ENOMEM;
        return w->error < 0 ? w->error : c->events.n >= BUNDLE_BYTES ? flush(w, cpu) : 0;
}

static void put_side(MessageWriter *m, uint32_t comm, const PerfettoSide *s) {
        message_put_string(m, comm, s->comm.bytes, s->comm.n);
        message_put_number(m, comm + 1, (uint64_t)(int64_t)s->tid);
        message_put_number(m, comm + 2, (uint64_t)(int64_t)s->prio);
}

int perfetto_put_switch(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoSide *previous, int64_t previous_state, const PerfettoSide *next) {
        MessageWriter *events = &w->cpus[m->cpu].events;
        size_t at, fields;
        int r = perfetto_put_task(w, &m->task);

        assert(m->cpu < PERFETTO_CPUS_MAX);
        if (r < 0)
                return r;
        at = begin(w, m, (uint32_t)previous->tid);
        fields = message_open(events, FTRACE_SCHED_SWITCH);
        put_side(events, SWITCH_PREV_COMM, previous);
        message_put_number(events, SWITCH_PREV_STATE, (uint64_t)previous_state);
        put_side(events, SWITCH_NEXT_COMM, next);
        message_close(events, fields);
        return end(w, m->cpu, at);
}

int perfetto_put_wakeup(PerfettoWriter *w, const PerfettoMoment *m, PerfettoWakeup kind, const PerfettoSide *woken, int32_t target_cpu) {
        MessageWriter *events = &w->cpus[m->cpu].events;
        size_t at, fields;
        int r = perfetto_put_task(w, &m->task);

        assert(m->cpu < PERFETTO_CPUS_MAX);
        if (r < 0)
                return r;
        at = begin(w, m, m->task.tid);
        fields = message_open(events, kind);
        put_side(events, WAKEUP_COMM, woken);
        message_put_number(events, WAKEUP_TARGET_CPU, (uint64_t)(int64_t)target_cpu);
        message_close(events, fields);
        return end(w, m->cpu, at);
}
