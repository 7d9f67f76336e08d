/*
 * Watermarks. The merge can release an item when every CPU has reported that nothing older will come, and a CPU on which nothing
 * happens does not report. There are four ways to get its watermark, the cheapest first:
 * - The dispatcher runs on this CPU. Then it does what the reader would do: it reads the clock, then checks the ring. Occurrences
 *   that had begun on this CPU have ended, or the dispatcher would not run. So if the ring is empty and the reader sleeps, the
 *   clock is the watermark.
 * - The CPU is idle, which can be detected from here (kernel/host/idle-cpus.h): then it is not in the middle of an occurrence
 *   either. So idle CPUs stay asleep, unless they have records.
 * - Its reader reports at each tick, for as long as the merge has waited for it recently.
 * - The reader is asked, which wakes it, and then the dispatcher again.
 */
#include "daemon/dispatcher/cycle.h"

#include <sched.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/ring/ring-view.h"

#define TICK_SHARE 8 /* of a tick, READER_TICK at most: how much later than the others a CPU may report before it is asked */
#define REPORT_TICKS 3 /* for how many ticks a CPU for which the merge waited reports */
#define REPORT_TICKS_MAX 16 /* the maximum, where idle CPUs can be detected and this one was busy */
/* shorter ticks are requested by a subscriber's latency, and worth the wakeups: asking is not delayed */
#define SHORT_TICK NSEC_PER_MSEC
/* the largest difference of two CPUs' clocks; samples younger than that wait for the next tick */
#define CLOCKS_APART (10 * NSEC_PER_USEC)
#define UNBLOCK_AFTER (3500 * NSEC_PER_USEC) /* the time that the merge may wait; also the longest sleep meanwhile */
#define SILENT_LOOK (500 * NSEC_PER_MSEC)
#define SILENT_LOOKS 10 /* after so many checks a reader that was asked is stalled, as for main (supervisor/readers/publish.c) */
#define AHEAD_SLEEP NSEC_PER_SEC /* the longest sleep until a time in the future, because the clock may be set */

static nsec_t dispatcher_grace(nsec_t tick) {
        return (tick < READER_TICK ? tick : READER_TICK) / TICK_SHARE;
}

/* The watermark that each CPU needs before something that waits can continue; false if nothing waits. */
static bool dispatcher_awaited(const Dispatcher *d, nsec_t *ret_time) {
        bool waits = merge_oldest(&d->merge, ret_time);

        if (waits)
                *ret_time += atomic_load_explicit(&d->window, memory_order_relaxed);
        if (d->n_closing > 0 || d->removals.first) { /* the present time: what these wait for is in the past */
                *ret_time = clock_now(d->clock);
                waits = true;
        }
        return waits;
}

/* The batch pipe of the CPU on which this runs; n_pipes if it has none. */
static uint32_t dispatcher_find_here(const Dispatcher *d) {
        uint32_t cpu = (uint32_t)sched_getcpu();

        if (cpu < d->n_pipes && d->pipes[cpu].view && d->pipes[cpu].cpu == cpu)
                return cpu; /* the usual case: CPU numbers have no gaps */
        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (d->pipes[i].view && d->pipes[i].cpu == cpu)
                        return i;
        return d->n_pipes;
}

void dispatcher_look_here(Dispatcher *d) {
        nsec_t awaited, there = clock_now(d->clock); /* before the CPU and its ring: what had begun there before has ended */
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

/*
 * Reads the clock, then the state of the CPUs, then their rings: what had begun on a CPU that was idle in between is in its ring,
 * or has been read.
 */
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
                        d->progress[i].report_ticks /= 2;
                }
        if (r < 0) {
                log_print(LOG_WARNING, MESSAGE_CPUS_WOKEN,
                          "idle CPUs can no longer be detected, and are woken instead: %s", error_text(r));
                d->idle = NULL;
        }
}

/*
 * Readers that report at each tick continue to do so as long as the merge moves, whichever CPU is the last. Not the reader of
 * this CPU, and not where idle CPUs can be detected.
 */
static void dispatcher_extend_reports(Dispatcher *d, nsec_t tick, nsec_t now) {
        if (d->idle || d->released == d->released_then)
                return;
        d->released_then = d->released;
        for (uint32_t i = 0; i < d->n_pipes; i++) {
                _Atomic(nsec_t) *until = d->pipes[i].reports_until;
                nsec_t then = until ? atomic_load_explicit(until, memory_order_relaxed) : 0;

                if (then > now && then < now + (REPORT_TICKS - 1) * tick && i != d->here)
                        atomic_store_explicit(until, now + REPORT_TICKS * tick, memory_order_relaxed);
        }
}

/*
 * True if the reader will report at the next tick without being asked: it was told to; or it has reported before, and where idle
 * CPUs can be detected it is not asleep, because a CPU that is not idle while its reader sleeps is busy with something else. A
 * watermark that was only observed says nothing of the next tick; but where idle CPUs can be detected, it need not be asked for
 * so soon after it was observed.
 */
static bool dispatcher_will_report(const Dispatcher *d, uint32_t i, nsec_t tick, nsec_t there, nsec_t now) {
        const BatchPipe *l = &d->pipes[i];

        if (atomic_load_explicit(l->reports_until, memory_order_relaxed) > now)
                return true;
        if (d->watermarks[i] == d->progress[i].seen)
                return d->idle && there < d->watermarks[i] + dispatcher_grace(tick);
        return !d->idle || !l->view || !ring_view_is_quiet(l->view);
}

/*
 * The ns to wait before a sleeping reader is woken, for another check: a CPU that is mostly idle was found in one of its short
 * busy moments, and waking the reader makes more of them. 0: it is to be asked now.
 */
static nsec_t dispatcher_put_off(Dispatcher *d, uint32_t i, nsec_t tick, nsec_t now) {
        const BatchPipe *l = &d->pipes[i];
        PipeProgress *h = &d->progress[i];

        if (!d->idle || tick < SHORT_TICK || h->report_ticks > 0 || !l->view || !ring_view_is_quiet(l->view))
                return 0;
        if (h->put_off_for != d->watermarks[i]) {
                h->put_off_for = d->watermarks[i];
                h->put_off_to = now + dispatcher_grace(tick);
        }
        return now < h->put_off_to ? h->put_off_to - now : 0;
}

/* For how many ticks a reader is to report. Where idle CPUs can be detected, the more often this one was not idle, the longer. */
static unsigned dispatcher_choose_report_ticks(const Dispatcher *d, PipeProgress *h, nsec_t tick) {
        if (!d->idle)
                return REPORT_TICKS;
        if (tick < SHORT_TICK || h->report_ticks > REPORT_TICKS_MAX / 2)
                h->report_ticks = REPORT_TICKS_MAX;
        else
                h->report_ticks = h->report_ticks == 0 ? 1 : 2 * h->report_ticks;
        return h->report_ticks;
}

/*
 * Checks are counted rather than time, because nothing is checked while all of perfd is stopped. Main is notified once; then the
 * pipe is not waited for until the reader responds (supervisor/readers/stall.c).
 */
static void dispatcher_doubt_pipe(Dispatcher *d, uint32_t i, nsec_t now) {
        PipeProgress *h = &d->progress[i];

        if (h->is_told || now < h->silent_at + SILENT_LOOK)
                return;
        h->silent_at = now;
        h->n_silent += h->n_silent < SILENT_LOOKS;
        if (h->n_silent < SILENT_LOOKS || atomic_exchange_explicit(&d->silent_told, true, memory_order_acquire))
                return; /* otherwise at a check after main has read the pending notice */
        h->is_told = dispatcher_notify_silent(d, i, h->asked_at) == 0;
        if (!h->is_told) /* no memory: tried again at the next check */
                atomic_store_explicit(&d->silent_told, false, memory_order_relaxed);
}

/*
 * A CPU whose watermark is too low. A reader that reported less than a tick ago, and will again, is asked only if it does not;
 * another one is asked at once, and reports at each tick from then on. Returns the ns to wait for it.
 */
static nsec_t dispatcher_ask_pipe(Dispatcher *d, uint32_t i, nsec_t tick, nsec_t there, nsec_t now) {
        PipeProgress *h = &d->progress[i];
        nsec_t due = d->watermarks[i] + d->pipes[i].guard + tick + dispatcher_grace(tick), again = h->asked_at + tick, wait;

        if (there < due && dispatcher_will_report(d, i, tick, there, now))
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
        atomic_store_explicit(d->pipes[i].reports_until, now + dispatcher_choose_report_ticks(d, h, tick) * tick,
                              memory_order_relaxed);
        h->is_asked = true;
        h->n_silent = 0;
        h->asked_at = h->silent_at = now;
        mailbox_ask(d->pipes[i].reader, READER_ASK_WATERMARK);
        return tick;
}

/*
 * No CPU can have reported the awaited time yet: samples of clients are waited for, and a reader may have to be unblocked
 * meanwhile. Or all that waits is in the future, as clients may emit it: this blocks no reader, and there is nothing to do until
 * then.
 */
static nsec_t dispatcher_sleep_until(nsec_t awaited, nsec_t oldest, nsec_t there) {
        nsec_t wait = awaited - there, most = oldest > there ? AHEAD_SLEEP : UNBLOCK_AFTER;

        return wait < most ? wait : most;
}

/* How long a CPU is waited for before it is asked. The end of a stream or of an event does not wait for long ticks. */
static nsec_t dispatcher_wait_tick(const Dispatcher *d) {
        nsec_t tick = atomic_load_explicit(&d->dispatching.tick, memory_order_relaxed);

        return (d->n_closing > 0 || d->removals.first) && tick > READER_TICK ? READER_TICK : tick;
}

nsec_t dispatcher_ask(Dispatcher *d) {
        nsec_t tick = dispatcher_wait_tick(d), timeout = tick;
        nsec_t awaited, oldest = 0, there, now = clock_now(CLOCK_MONOTONIC);

        dispatcher_extend_reports(d, tick, now);
        if (d->n_channels[STREAM_BY_TIME] == 0 && d->merge.n > 0)
                return 0; /* the last stream ended in this cycle: the next cycle discards what waits for it */
        if (!dispatcher_awaited(d, &awaited)) {
                d->waiting_since = 0;
                return UINT64_MAX;
        }
        if (d->waiting_since == 0)
                d->waiting_since = now;
        if (now >= d->waiting_since + UNBLOCK_AFTER) { /* independent of the tick, because it makes items late */
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
