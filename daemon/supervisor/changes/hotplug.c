/*
 * CPUs that come and go while everything runs.
 *
 * A reader, and no other thread, may drain a ring that is written to. So a CPU that goes is read to its end by its own
 * reader, which the kernel has moved to another CPU: nothing is written any more by then.
 */

#include <string.h>

#include "config/host.h"
#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/host/hotplug.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/extend.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/targets.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/switch.h"
#include "daemon/supervisor/readers/wait.h"

#define JOIN_LOOK (10 * NSEC_PER_MSEC) /* at a thread that was told to end: nearly all have by then */
#define JOIN_MOST (5 * NSEC_PER_SEC)
#define PULSE (20 * NSEC_PER_MSEC) /* in which the time of an event that runs moves, whatever clock the kernel has for it */

/*
 * The kernel has taken the events of the CPU itself away, but those of tasks go on when it is back, and so does what was
 * opened then, before the words of it were heard: off, before the last drain.
 */
static int disable_slot(Changes *s, uint32_t slot) {
        PerfFdSet of_slot = PERF_FD_SET_NULL;
        size_t n = 0;
        int r;

        for (const Registration *g = s->events->registrations; g; g = g->next)
                n += g->opened.n;
        of_slot.fds = calloc(n + 1, sizeof(*of_slot.fds));
        if (!of_slot.fds)
                return error_origin(-ENOMEM);
        for (const Registration *g = s->events->registrations; g; g = g->next)
                for (size_t i = 0; i < g->opened.n; i++)
                        if (g->opened.fds[i].slot == slot)
                                of_slot.fds[of_slot.n++] = g->opened.fds[i];
        r = event_fds_disable(s->readers, (PerfFdSet *const[]){ &of_slot }, 1);
        free(of_slot.fds);
        return r;
}

/* The last drain, and the end of the thread. The others are told something that changes nothing. */
static int stop_reader(Changes *s, uint32_t slot) {
        _cleanup_free_ ReaderCommand *each = calloc(s->readers->n_cpus, sizeof(*each));

        if (!each)
                return error_origin(-ENOMEM);
        for (uint32_t i = 0; i < s->readers->n_cpus; i++)
                each[i].kind = i == slot ? READER_STOP : READER_SWITCH;
        return readers_command_each(s->readers, each);
}

static int retract_slot(Changes *s, uint32_t slot) {
        for (Registration *g = s->events->registrations; g; g = g->next)
                for (size_t i = 0; i < g->opened.n; i++)
                        g->opened.fds[i].leaves = g->opened.fds[i].slot == slot;
        return changes_drop_leaving(s);
}

/* What a cut would find now that nothing moves: all counts are in what closed fds have counted. */
static void settle_slot(Changes *s, uint32_t slot) {
        RingCounters *ring = &s->readers->by_slot[slot].counters;
        ReadCount carrier;

        for (Registration *g = s->events->registrations; g; g = g->next) {
                EventCounters *c = &g->event->counters[slot];

                counters_settle(c);
                c->next_read = 0;
        }
        if (open_read(s->readers->carriers[slot], s->readers->by_slot[slot].carrier_read_format, &carrier) == 0)
                ring->closed_side_lost += carrier.lost;
        ring->cut_side_lost = ring->closed_side_lost;
        ring->cut_records = counter_get(&ring->records);
        ring->cut_samples = counter_get(&ring->samples);
        ring->cut_side_records = counter_get(&ring->side_records);
        ring->cut_unknown_id = counter_get(&ring->unknown_id);
        ring->cut_undecodable = counter_get(&ring->undecodable);
}

/*
 * Others are served meanwhile. A thread that is stopped may have a backup that has done all but to end in its place: it is stalled
 * then until it ends.
 */
static int join_reader(Changes *s, uint32_t slot) {
        Patience p = patience_new();
        int r = 0;

        while (r == 0 && !reader_join_within(&s->readers->by_slot[slot], JOIN_LOOK)) {
                if (patience_is_over(s->readers, &p, JOIN_MOST)) {
                        readers_set_stalled(s->readers, slot);
                        return 0;
                }
                r = readers_wait_slice(s->readers, &p, -1);
        }
        return r;
}

/* Its reader has nothing left to do: all that it pushed is before what the dispatcher is asked here. */
static int forget_cpu(Changes *s, uint32_t slot) {
        int r = readers_ask_pipe(s->readers, DISPATCHER_PIPE_OFF, slot);

        if (r == 0)
                r = join_reader(s, slot);
        if (r < 0 || reader_is_stalled(&s->readers->answering.readers[slot]))
                return r;
        s->readers->online[slot] = false;
        readers_list_carriers(s->readers);
        r = retract_slot(s, slot);
        settle_slot(s, slot);
        readers_close_ring(s->readers, slot);
        reader_renew(&s->readers->by_slot[slot]);
        snapshot_unref(s->readers->answering.readers[slot].snapshot);
        s->readers->answering.readers[slot] = (Answering){ .sequence = 0 };
        return r;
}

/* While its reader does not answer all of this waits for that: changes_end_reader(). */
static int cpu_gone(Changes *s, uint32_t slot) {
        Answering *a = &s->readers->answering.readers[slot];
        int r = reader_is_stalled(a) ? 0 : disable_slot(s, slot);

        if (r == 0 && !reader_is_stalled(a))
                r = stop_reader(s, slot);
        if (r == 0 && !reader_is_stalled(a))
                r = forget_cpu(s, slot);
        a->has_left = reader_is_stalled(a);
        return r;
}

/* That an event cannot be counted there is said, and is no reason to do without the others. */
static void say_refused(const Changes *s, const Registration *g, const Explanation *e, const void *userdata) {
        log_print_with(LOG_WARNING, MESSAGE_CPU_NOT_OBSERVED,
                       LOG_FIELDS({ "EVENT", g->event->spec.name }, { "REASON", e->reason },
                                  { "CPU", LOG_NUMBER(s->readers->cpus[*(const uint32_t *)userdata]) }),
                       "%s is not counted on CPU %u: %s", g->event->spec.name, s->readers->cpus[*(const uint32_t *)userdata],
                       e->text);
}

/* One event on a CPU that came, disabled. */
static int open_event_on(Changes *s, Registration *g, uint32_t slot, PerfFdSet *ret) {
        _cleanup_free_ uint32_t *slots = NULL;
        Explanation e = EXPLANATION_NULL;
        size_t n_slots = 0;
        bool wanted = false;
        int r;

        if (g->event->external)
                return 0;
        r = events_find_slots(s->events, g, &slots, &n_slots, &e);
        for (size_t i = 0; r == 0 && i < n_slots; i++)
                wanted |= slots[i] == slot;
        if (r == 0 && wanted)
                r = events_open_on(s->events, g, g->event->spec.filter, &slot, 1, ret, &e);
        if (r > 0 && r != REFUSED_NOT_FOUND) /* there is nobody any more whom it could observe, or not on this CPU */
                say_refused(s, g, &e, &slot);
        return r < 0 ? r : 0;
}

static int extend_events(Changes *s, uint32_t slot) {
        _cleanup_free_ FdDelta *list = calloc(s->events->n_registrations + 1, sizeof(*list));
        size_t n = 0;
        int r = 0;

        if (!list)
                return error_origin(-ENOMEM);
        for (Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                list[n].registration = g;
                r = open_event_on(s, g, slot, &list[n].more);
                n += list[n].more.n > 0;
        }
        if (r == 0)
                r = changes_extend_each(s, list, n, say_refused, &slot);
        fd_deltas_deinit(s, list, n);
        return r;
}

static int observe_cpu(Changes *s, uint32_t slot) {
        PerfFd streams[2];
        PerfFdSet carrier = { .fds = streams };
        Explanation e = EXPLANATION_NULL;
        int r;

        fd_reserve_enter();
        r = readers_open_ring(s->readers, slot, &e);
        fd_reserve_leave();
        if (r == 0)
                r = readers_start_one(s->readers, slot, &e);
        if (r != 0) {
                readers_close_ring(s->readers, slot);
                if (r > 0)
                        log_print_with(LOG_WARNING, MESSAGE_CPU_NOT_OBSERVED,
                                       LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }, { "REASON", e.reason }),
                                       "CPU %u is not observed: %s", s->readers->cpus[slot], e.text);
                return r < 0 ? r : 0;
        }
        s->readers->online[slot] = true;
        readers_find_idle(s->readers, slot);
        readers_list_carriers(s->readers);
        r = readers_ask_pipe(s->readers, DISPATCHER_PIPE_ON, slot);
        if (r == 0)
                r = readers_publish(s->readers);
        carrier.n = readers_list_carrier(s->readers, slot, streams);
        if (r == 0 && s->readers->active)
                r = event_fds_enable(s->readers, (PerfFdSet *const[]){ &carrier }, 1, "the ring's carrier", &e);
        if (r > 0) {
                log_print_with(LOG_WARNING, MESSAGE_CPU_NOT_OBSERVED,
                               LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }, { "REASON", e.reason }),
                               "CPU %u has no side records: %s", s->readers->cpus[slot], e.text);
                r = 0;
        }
        s->readers->knows_tasks = false; /* who has run there meanwhile was not noticed */
        if (r == 0 && s->readers->wants_tasks)
                r = readers_learn_tasks(s->readers);
        return r == 0 ? extend_events(s, slot) : r;
}

/* It is said when all of it is done: others are served in the middle. */
static int cpu_came(Changes *s, uint32_t slot) {
        int r;

        config_set_host_cpu_online(s->readers->cpus[slot], true);
        r = observe_cpu(s, slot);
        if (r == 0)
                log_print_with(LOG_NOTICE, MESSAGE_CPU_ONLINE, LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }),
                               "CPU %u came online", s->readers->cpus[slot]);
        return r;
}

static int cpu_went(Changes *s, uint32_t slot) {
        int r;

        config_set_host_cpu_online(s->readers->cpus[slot], false);
        r = cpu_gone(s, slot);
        if (r == 0)
                log_print_with(LOG_NOTICE, MESSAGE_CPU_OFFLINE, LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }),
                               "CPU %u went offline", s->readers->cpus[slot]);
        return r;
}

/*
 * Whether a CPU that is there has been there all the time since its ring was opened. When it goes, the kernel takes its
 * events off and never puts them back (perf_event_exit_cpu()): the time that the carrier has run stands still then. Without
 * any event, and while nobody needs side records, carriers are off, and nothing can be told: then it counts as one that came.
 *
 * A reader's affinity would say it too, but not always: the kernel widens it when the thread is to run, and not if it sleeps
 * until its CPU is back.
 */
static bool has_stayed(const Changes *s, uint32_t slot) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PULSE;
        ReadCount first, now = { .running = 0 };

        if (!s->readers->active || open_read(s->readers->carriers[slot], s->readers->by_slot[slot].carrier_read_format, &first) < 0)
                return false;
        do {
                if (open_read(s->readers->carriers[slot], s->readers->by_slot[slot].carrier_read_format, &now) < 0)
                        return false;
        } while (now.running == first.running && clock_now(CLOCK_MONOTONIC) < end);
        return now.running != first.running;
}

/* Words were lost, among them perhaps those of a CPU that went and is back: what it had open is dead then. */
static int doubt_cpus(Changes *s) {
        int r = 0;

        log_print(LOG_NOTICE, MESSAGE_CPUS_UNKNOWN, "reports of the kernel about CPUs were lost: perfd checks each CPU");
        for (uint32_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++) {
                if (!s->readers->online[slot] || has_stayed(s, slot))
                        continue;
                log_print_with(LOG_NOTICE, MESSAGE_CPU_OFFLINE, LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }),
                               "CPU %u may have been offline: its events are closed", s->readers->cpus[slot]);
                r = cpu_gone(s, slot);
        }
        return r;
}

/* As it is now, whatever was said before: a CPU may have gone and come while the words were on their way. */
static int compare_cpus(Changes *s) {
        _cleanup_free_ uint32_t *online = NULL;
        Explanation e = EXPLANATION_NULL;
        size_t n = 0;
        int r;

        fd_reserve_enter();
        r = cpus_online(&online, &n, &e);
        fd_reserve_leave();
        if (r > 0)
                log_print(LOG_WARNING, MESSAGE_CPUS_UNKNOWN, "the online CPUs are not known: %s", e.text);
        for (uint32_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++) {
                bool is_online = false;

                for (size_t i = 0; i < n; i++)
                        is_online |= online[i] == s->readers->cpus[slot];
                if (s->readers->online[slot] && !is_online && !s->readers->answering.readers[slot].has_left)
                        r = cpu_went(s, slot);
                else if (!s->readers->online[slot] && is_online)
                        r = cpu_came(s, slot);
        }
        return r < 0 ? r : 0;
}

int changes_end_reader(Changes *s, uint32_t slot) {
        Answering *a = &s->readers->answering.readers[slot];
        int r = a->kind == READER_STOP ? forget_cpu(s, slot) : cpu_gone(s, slot);

        a->has_left = reader_is_stalled(a); /* again */
        return r < 0 ? r : compare_cpus(s); /* it may be back */
}

static uint32_t slot_of_cpu(const Changes *s, uint32_t cpu) {
        for (uint32_t slot = 0; slot < s->readers->n_cpus; slot++)
                if (s->readers->cpus[slot] == cpu)
                        return slot;
        return UINT32_MAX;
}

/* A CPU that went and is back already lost its events meanwhile: the words count, not only how it is now. */
int changes_on_hotplug(void *userdata) {
        Changes *s = userdata;
        bool online;
        uint32_t cpu, slot;
        int r;

        while ((r = hotplug_next(s->hotplug_fd, &cpu, &online)) == 0) {
                slot = slot_of_cpu(s, cpu);
                if (slot != UINT32_MAX && !online && s->readers->online[slot] && (r = cpu_went(s, slot)) < 0)
                        return r;
        }
        if (r == HOTPLUG_E_OVERRUN)
                r = doubt_cpus(s);
        return r < 0 ? r : compare_cpus(s);
}

int changes_follow_cpus(Changes *s) {
        int r = hotplug_open(&s->hotplug_fd);

        if (r < 0) {
                log_print(LOG_NOTICE, MESSAGE_CPUS_UNKNOWN,
                          "the kernel does not report CPUs that go online or offline, so perfd does not follow them: %s",
                          error_text(r));
                return 0;
        }
        return operations_listen(s->operations, CHANGE_HOTPLUG, s->hotplug_fd);
}
