/*
 * For whom the dispatcher waits. What is in the merge can go on when every CPU has said that nothing older will come, and a
 * CPU where nothing happens says nothing by itself. There are four ways to hear from it, the cheapest first:
 *
 * - The dispatcher itself happens to run there. Then it may do what the reader would: take the clock, then look at the ring.
 *   What had begun on this CPU before has ended, or the dispatcher would not run, so a ring that is empty then, with a
 *   reader that sleeps, says as much as a watermark.
 * - It is idle, as can be seen from here (kernel/host/idle-cpus.h): then it is in the middle of nothing either. It is what keeps
 *   idle CPUs asleep, all but those that have something to say.
 * - It goes along: its reader wakes at every tick and says how far it is, as long as it was waited for lately.
 * - It is asked, which wakes its reader and then the dispatcher again.
 */
#include "daemon/dispatcher/cycle.h"

#include <sched.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/ring/ring-view.h"

#define TICK_SHARE 8 /* of a tick: how much later than others a CPU may speak before it is asked */
#define ALONG_TICKS 3 /* for how many a CPU that was waited for ticks along with others */
#define ALONG_TICKS_BUSY 16 /* at most, if it would have been seen to be idle: then it is busy with something else */
#define SHORT_TICK NSEC_PER_MSEC /* below, somebody asked for a latency, at its price in wakeups: nothing is put off */
#define CLOCKS_APART (10 * NSEC_PER_USEC) /* at most, of two CPUs; samples that are so young wait for the next tick */
#define UNBLOCK_AFTER (3500 * NSEC_PER_USEC) /* of waiting; also the longest sleep then */
#define SILENT_LOOK (500 * NSEC_PER_MSEC)
#define SILENT_LOOKS 10 /* at one that was asked: then it is stalled, as for main (supervisor/readers/publish.c) */
#define AHEAD_SLEEP NSEC_PER_SEC /* at most, for what is ahead of the clock, which may be set */

/* What every CPU has to have passed before something that waits can go on; false if nothing waits. */
static bool dispatcher_awaited(const Dispatcher *d, nsec_t *ret_time) {
        bool waits = merge_oldest(&d->merge, ret_time);

        if (waits)
                *ret_time += atomic_load_explicit(&d->window, memory_order_relaxed);
        if (d->n_closing > 0 || d->removals.first) { /* as of now: what they wait for is in the past */
                *ret_time = clock_now(d->clock);
                waits = true;
        }
        return waits;
}

/* The batch pipe of the CPU on which this runs; n_pipes if it has none. */
static uint32_t dispatcher_find_here(const Dispatcher *d) {
        uint32_t cpu = (uint32_t)sched_getcpu();

        if (cpu < d->n_pipes && d->pipes[cpu].view && d->pipes[cpu].cpu == cpu)
                return cpu; /* where no CPU number is left out */
        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (d->pipes[i].view && d->pipes[i].cpu == cpu)
                        return i;
        return d->n_pipes;
}

void dispatcher_look_here(Dispatcher *d) {
        nsec_t awaited, there = clock_now(d->clock); /* then the CPU, then the ring: what began there before has ended */
        uint32_t here = dispatcher_find_here(d);

        d->here = here;
        if (here == d->n_pipes || !d->live[here] || !dispatcher_awaited(d, &awaited) || d->watermarks[here] >= awaited)
                return;
        if (ring_view_is_quiet(d->pipes[here].view) && queue_is_empty(d->pipes[here].full))
                d->watermarks[here] = d->progress[here].seen = there;
}

static bool dispatcher_waits_for_quiet(const Dispatcher *d, uint32_t i, nsec_t awaited) {
        return d->live[i] && d->pipes[i].view && d->watermarks[i] < awaited && ring_view_is_quiet(d->pipes[i].view) &&
               queue_is_empty(d->pipes[i].full);
}

/* The clock, then the CPUs, then their rings: what had begun on one that was idle then is in its ring, or was read from it. */
void dispatcher_look_around(Dispatcher *d) {
        nsec_t awaited, there;
        unsigned n = 0;
        int r;

        if (!d->idle || !dispatcher_awaited(d, &awaited))
                return;
        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (dispatcher_waits_for_quiet(d, i, awaited)) {
                        idle_cpus_want(d->idle, d->pipes[i].cpu);
                        n++;
                }
        if (n == 0)
                return;
        there = clock_now(d->clock) - CLOCKS_APART;
        r = idle_cpus_look(d->idle);
        for (uint32_t i = 0; i < d->n_pipes && r == 0; i++)
                if (d->pipes[i].view && idle_cpus_take(d->idle, d->pipes[i].cpu) &&
                    dispatcher_waits_for_quiet(d, i, awaited) && d->watermarks[i] < there) {
                        d->watermarks[i] = d->progress[i].seen = there;
                        d->progress[i].along /= 2;
                }
        if (r < 0) {
                log_print(LOG_WARNING, MESSAGE_CPUS_WOKEN,
                          "idle CPUs can no longer be detected, and are woken instead: %s", error_text(r));
                d->idle = NULL;
        }
}

/*
 * Those that go along do so as long as the merge moves, whether they or others are the last; but not the one here, nor where
 * it can be seen whether they have to.
 */
static void dispatcher_keep_along(Dispatcher *d, nsec_t tick, nsec_t now) {
        if (d->idle || d->released == d->released_then)
                return;
        d->released_then = d->released;
        for (uint32_t i = 0; i < d->n_pipes; i++) {
                _Atomic(nsec_t) *until = d->pipes[i].reports_until;
                nsec_t then = until ? atomic_load_explicit(until, memory_order_relaxed) : 0;

                if (then > now && then < now + (ALONG_TICKS - 1) * tick && i != d->here)
                        atomic_store_explicit(until, now + ALONG_TICKS * tick, memory_order_relaxed);
        }
}

/*
 * Without being asked, at the next tick. Not one that was only seen to be quiet by chance; and where idle CPUs are seen, not
 * one that sleeps and was not idle now: it is busy with something else. What was seen just now need not be asked for the rest.
 */
static bool dispatcher_will_speak(const Dispatcher *d, uint32_t i, nsec_t tick, nsec_t there, nsec_t now) {
        const BatchPipe *l = &d->pipes[i];

        if (atomic_load_explicit(l->reports_until, memory_order_relaxed) > now)
                return true;
        if (d->watermarks[i] == d->progress[i].seen)
                return d->idle && there < d->watermarks[i] + tick / TICK_SHARE;
        return !d->idle || !l->view || !ring_view_is_quiet(l->view);
}

/*
 * Whether to look once more before a sleeping reader is woken: a CPU that is mostly idle was seen in one of its short moments,
 * and waking it makes more of them. For how long to wait for that; 0: it is to be asked.
 */
static nsec_t dispatcher_put_off(Dispatcher *d, uint32_t i, nsec_t tick, nsec_t now) {
        const BatchPipe *l = &d->pipes[i];
        PipeProgress *h = &d->progress[i];

        if (!d->idle || tick < SHORT_TICK || h->along > 0 || !l->view || !ring_view_is_quiet(l->view))
                return 0;
        if (h->put_off_for != d->watermarks[i]) {
                h->put_off_for = d->watermarks[i];
                h->put_off_to = now + tick / TICK_SHARE;
        }
        return now < h->put_off_to ? h->put_off_to - now : 0;
}

/* For how many ticks; where idle CPUs are seen, for longer the more often this one was not. */
static unsigned dispatcher_take_along(const Dispatcher *d, PipeProgress *h, nsec_t tick) {
        if (!d->idle)
                return ALONG_TICKS;
        if (tick < SHORT_TICK || h->along > ALONG_TICKS_BUSY / 2)
                h->along = ALONG_TICKS_BUSY;
        else
                h->along = h->along == 0 ? 1 : 2 * h->along;
        return h->along;
}

/*
 * Looks are counted, not time: while all of perfd is stopped, nobody looks. Main hears of it once, and then its batch pipe is not
 * waited for until it answers (supervisor/readers/stall.c).
 */
static void dispatcher_doubt_pipe(Dispatcher *d, uint32_t i, nsec_t now) {
        PipeProgress *h = &d->progress[i];

        if (h->is_told || now < h->silent_at + SILENT_LOOK)
                return;
        h->silent_at = now;
        h->n_silent += h->n_silent < SILENT_LOOKS;
        if (h->n_silent < SILENT_LOOKS || atomic_exchange_explicit(&d->silent_told, true, memory_order_acquire))
                return; /* or when main has heard of another one */
        h->is_told = dispatcher_say_silent(d, i, h->asked_at) == 0;
        if (!h->is_told) /* without memory: at the next look */
                atomic_store_explicit(&d->silent_told, false, memory_order_relaxed);
}

/*
 * A batch pipe that is behind. One that has spoken less than a tick ago, and will again, is asked only if it does not; another one is
 * asked at once, and goes along with the others from then on. For how long to wait for it.
 */
static nsec_t dispatcher_ask_pipe(Dispatcher *d, uint32_t i, nsec_t tick, nsec_t there, nsec_t now) {
        PipeProgress *h = &d->progress[i];
        nsec_t due = d->watermarks[i] + d->pipes[i].guard + tick + tick / TICK_SHARE, again = h->asked_at + tick, wait;

        if (there < due && dispatcher_will_speak(d, i, tick, there, now))
                return due - there;
        if (h->is_asked) {
                dispatcher_doubt_pipe(d, i, now);
                return tick;
        }
        if (now < again)
                return again - now;
        wait = dispatcher_put_off(d, i, tick, now);
        if (wait > 0)
                return wait;
        atomic_store_explicit(d->pipes[i].reports_until, now + dispatcher_take_along(d, h, tick) * tick, memory_order_relaxed);
        h->is_asked = true;
        h->n_silent = 0;
        h->asked_at = h->silent_at = now;
        mailbox_ask(d->pipes[i].reader, READER_ASK_WATERMARK);
        return tick;
}

/*
 * Nobody can be so far now: clients are waited for, and then a reader may have to be unblocked. Or all that waits is ahead of
 * the clock, as clients may emit it: that blocks no reader, and until its time there is nothing to do.
 */
static nsec_t dispatcher_sleep_until(nsec_t awaited, nsec_t oldest, nsec_t there) {
        nsec_t wait = awaited - there, most = oldest > there ? AHEAD_SLEEP : UNBLOCK_AFTER;

        return wait < most ? wait : most;
}

nsec_t dispatcher_ask(Dispatcher *d) {
        nsec_t tick = atomic_load_explicit(&d->tick, memory_order_relaxed), timeout = tick;
        nsec_t awaited, oldest = 0, there, now = clock_now(CLOCK_MONOTONIC);

        dispatcher_keep_along(d, tick, now);
        if (d->n_channels[STREAM_BY_TIME] == 0 && d->merge.n > 0)
                return 0; /* the last one left at the end of this cycle: the next one forgets what waits for it */
        if (!dispatcher_awaited(d, &awaited)) {
                d->waiting_since = 0;
                return UINT64_MAX;
        }
        if (d->waiting_since == 0)
                d->waiting_since = now;
        if (now >= d->waiting_since + UNBLOCK_AFTER) { /* whatever the tick is: it costs late items */
                dispatcher_unblock(d);
                d->waiting_since = now;
        }
        there = clock_now(d->clock);
        if (awaited > there && merge_oldest(&d->merge, &oldest))
                return dispatcher_sleep_until(awaited, oldest, there);
        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (d->watermarks[i] < awaited) {
                        nsec_t wait = dispatcher_ask_pipe(d, i, tick, there, now);

                        timeout = wait < timeout ? wait : timeout;
                }
        return timeout;
}
