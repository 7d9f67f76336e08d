/*
 * When a reader that was stalled answers: it is brought up to date, as a CPU that came. What it is to do follows from what is
 * registered now, whatever happened in between.
 */

#include <assert.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/switch.h"
#include "daemon/supervisor/readers/wait.h"

/* Those of one CPU that are to be on, or off; all of `list`, borrowed. */
static size_t collect(const Changes *s, uint32_t slot, bool on, PerfFd *list) {
        size_t n = 0;

        for (const Registration *g = s->events->registrations; g; g = g->next)
                for (size_t i = 0; i < g->opened.n && g->enabled == on; i++)
                        if (g->opened.fds[i].slot == slot)
                                list[n++] = g->opened.fds[i];
        return s->readers->active == on ? n + readers_list_carrier(s->readers, slot, list + n) : n;
}

static int switch_slot(Changes *s, uint32_t slot, bool on) {
        Explanation e = EXPLANATION_NULL;
        PerfFdSet of_slot = PERF_FD_SET_NULL;
        size_t n = 2;
        int r;

        for (const Registration *g = s->events->registrations; g; g = g->next)
                n += g->opened.n;
        of_slot.fds = calloc(n, sizeof(*of_slot.fds));
        if (!of_slot.fds)
                return error_origin(-ENOMEM);
        of_slot.n = collect(s, slot, on, of_slot.fds);
        if (on)
                r = event_fds_enable(s->readers, (PerfFdSet *const[]){ &of_slot }, 1, "one of the events", &e);
        else
                r = event_fds_disable(s->readers, (PerfFdSet *const[]){ &of_slot }, 1);
        if (r > 0)
                log_print_with(LOG_WARNING, MESSAGE_CPU_NOT_OBSERVED,
                               LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }, { "REASON", e.reason }),
                               "some events are not counted on CPU %u: %s", s->readers->cpus[slot], e.text);
        free(of_slot.fds);
        return r < 0 ? r : 0;
}

/* What changed while the reader was not told is between two places of its ring that nobody knows. */
static void doubt_counts(Changes *s, uint32_t slot) {
        for (Registration *g = s->events->registrations; g; g = g->next)
                g->event->counters[slot].unsure = true;
        for (RemovedEvent *e = s->ledger->removed.first; e; e = e->next) { /* what it read of them before it knew is counted now */
                e->event->counters[slot].unsure = true;
                counters_settle(&e->event->counters[slot]);
        }
}

/* Its CPU went, and if that is back by now, nobody has seen what was there since. */
static int end_reader(Changes *s, uint32_t slot) {
        unsigned n_missed = s->readers->answering.readers[slot].n_missed;
        int r = changes_end_reader(s, slot);

        if (r == 0 && (n_missed > 0 || s->readers->online[slot]))
                doubt_counts(s, slot);
        return r;
}

/* Streams that began meanwhile begin here on its CPU: what it has read before was from before them, or nobody knows. */
static int take_missed_cut(Changes *s, uint32_t slot) {
        int r = readers_cut(s->readers, NULL);

        return r < 0 || reader_is_stalled(&s->readers->answering.readers[slot])
                       ? r
                       : readers_tell_pipe(s->readers, DISPATCHER_PIPE_CUT, slot);
}

static int catch_up(Changes *s, uint32_t slot) {
        Answering *a = &s->readers->answering.readers[slot];
        int r = 0;

        log_print_with(LOG_NOTICE, MESSAGE_READER_ANSWERS, LOG_FIELDS({ "CPU", LOG_NUMBER(s->readers->cpus[slot]) }),
                       "the reader of CPU %u responds again, after %llu s; it missed %u changes", s->readers->cpus[slot],
                       (unsigned long long)((clock_now(CLOCK_MONOTONIC) - a->stalled_since) / NSEC_PER_SEC), a->n_missed);
        r = readers_ask_pipe(s->readers, DISPATCHER_PIPE_ON, slot);
        if (r < 0)
                return r;
        a->catches_up_since = a->stalled_since;
        a->stalled_since = 0;
        s->readers->answering.n--;
        if (a->kind == READER_STOP || a->has_left)
                return end_reader(s, slot);
        if (a->n_missed > 0) {
                r = readers_publish(s->readers);
                if (r == 0)
                        r = switch_slot(s, slot, false);
                if (r == 0)
                        r = switch_slot(s, slot, true);
                if (r == 0 && a->owes_retire)
                        r = readers_command(s->readers, READER_RETIRE, NULL);
                doubt_counts(s, slot);
        }
        if (!reader_is_stalled(a))
                a->owes_retire = false;
        return r == 0 ? take_missed_cut(s, slot) : r;
}

/* What it was sent its backup may have done: of one that was told to end the thread itself is waited for. */
static bool goes_on(const Changes *s, uint32_t slot) {
        const Answering *a = &s->readers->answering.readers[slot];

        return reader_is_stalled(a) && reader_has_answered(s->readers, slot) &&
               (a->kind != READER_STOP || reader_is_at_end(&s->readers->by_slot[slot]));
}

int changes_on_answers(void *userdata) {
        Changes *s = userdata;
        int r = 0;

        for (uint32_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++)
                if (goes_on(s, slot)) {
                        r = catch_up(s, slot);
                        s->readers->answering.readers[slot].catches_up_since = 0;
                }
        if (s->readers->answering.n == 0)
                must(sd_event_source_set_io_events(s->readers->answering.source, 0));
        readers_release_deferred(s->readers);
        return r;
}
