/*
 * When a reader looks: its thread, in a time that passes only while it sleeps, where samples come at even distances. However
 * often it has to see to turns of the dispatcher, or is woken for something else, a flood is read at each tick, no later and
 * once between two at most, unless the ring gets full before; and what it has to see to while nothing comes, it does in time.
 */
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "tests/unit/reader-checks.h"

#define TICK (3 * NSEC_PER_MSEC)
#define GAP (100 * NSEC_PER_USEC)
#define RING ((size_t)1 << 20)
#define BEGIN ((nsec_t)1000 * 2 * TICK + TICK / 2 + TICK) /* a tick before a reader that found nothing looks again */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask);

typedef struct World {
        Rig rig;
        nsec_t now;
        nsec_t next, last; /* when samples come */
        nsec_t end;        /* when the reader is stopped */
        nsec_t latency;    /* of what is wanted */
        nsec_t tick;       /* of all readers; 0: none is known */
        bool reports;      /* somebody waits for what this CPU says */
        nsec_t wait;       /* when turns are due, after the one before */
        unsigned n_zero;   /* turns of ten behind which there is more to be done at once */
        unsigned n_asks;   /* times that it is woken for something else before it sleeps on */
        uint32_t extra;    /* bytes of each sample */
        nsec_t gap;        /* between samples; 0: GAP */
        uint64_t written;  /* into the ring, ever; each half of it wakes its reader, as the kernel does it */
        unsigned n_sleeps, n_turns;
        bool wakes;        /* an event says itself when */
        unsigned n_rung, n_slept_on; /* by the ring, and what came was left there */
        nsec_t oldest;     /* how long a sample has lain in the ring, at most */
        nsec_t lies_since; /* the first of those that lie there */
        bool was_rung;
        nsec_t cycle_due, latest_turn; /* how late one came, at most */
        bool is_stopped;
} World;

static World *world; /* of the thread that sleeps */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        if (!world || clock != CLOCK_MONOTONIC)
                return __real_clock_gettime(clock, ts);
        *ts = (struct timespec){ .tv_sec = (time_t)(world->now / NSEC_PER_SEC), .tv_nsec = (long)(world->now % NSEC_PER_SEC) };
        return 0;
}

/* What was asked for by the dispatcher, as its turn ends; its batches go back. */
static int work(void *userdata, nsec_t *ret_wait) {
        World *w = userdata;
        Batch *b;

        while ((b = queue_pop(&w->rig.reader.full)))
                queue_push(&w->rig.reader.free, b);
        if (w->cycle_due && w->now > w->cycle_due && w->now - w->cycle_due > w->latest_turn)
                w->latest_turn = w->now - w->cycle_due;
        *ret_wait = ++w->n_turns % 10 < w->n_zero ? 0 : w->wait;
        w->cycle_due = w->wait == UINT64_MAX ? 0 : w->now + w->wait;
        return 0;
}

static void world_stop(World *w) {
        ReaderCommand *command = calloc(1, sizeof(*command));

        *command = (ReaderCommand){ .kind = READER_STOP, .sequence = 1 };
        w->is_stopped = true;
        reader_post(&w->rig.reader, command);
}

/* One sample; whether the kernel wakes the reader then. */
static bool world_put(World *w) {
        uint64_t before = w->written / (RING / 2), head = w->rig.page->data_head;

        assert(rig_put_number(&w->rig, 1, WHO(7, 0, w->next), 2, w->extra)); /* there is always room */
        w->written += w->rig.page->data_head - head;
        w->next += w->gap ? w->gap : GAP;
        return w->written / (RING / 2) > before;
}

/* When the dispatcher, which looks at the ring of a dormant reader at each of its ticks, finds the next sample. */
static nsec_t world_look(World *w) {
        const nsec_t tick = atomic_load(&w->rig.reader.told_tick);

        if (!atomic_load(&w->rig.reader.view.is_dormant) || w->next > w->last)
                return UINT64_MAX;
        return w->next - w->next % tick + tick;
}

/* The reader sleeps: time passes, and samples come. */
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
        World *w = world;
        nsec_t until = timeout ? w->now + (nsec_t)timeout->tv_sec * NSEC_PER_SEC + (nsec_t)timeout->tv_nsec : w->end;
        const nsec_t look = world_look(w);
        uint64_t filled = w->rig.page->data_head - w->rig.page->data_tail;
        bool rung = false;

        if (filled > 0) { /* only what the ring woke it for can wait, if it is little */
                assert(w->was_rung && filled < RING / READER_EARLY_SHARE);
                w->n_slept_on++;
        }
        if (w->n_sleeps++ % (w->n_asks + 1) < w->n_asks) {
                mailbox_ask(&w->rig.reader.mailbox, READER_ASK_BATCHES);
                until = w->now + 1;
        }
        if (until > look)
                until = look;
        if (until > w->end)
                until = w->end;
        if (filled == 0)
                w->lies_since = w->next;
        while (w->next <= w->last && w->next < until && !rung) {
                rung = world_put(w);
                if (rung)
                        until = w->next - (w->gap ? w->gap : GAP) + 1;
        }
        if (w->lies_since < w->next && until - w->lies_since > w->oldest)
                w->oldest = until - w->lies_since;
        w->now = until;
        w->was_rung = rung;
        w->n_rung += rung;
        if (until == look)
                mailbox_ask(&w->rig.reader.mailbox, READER_ASK_LOOK);
        fds[0].revents = until == look || w->n_sleeps % (w->n_asks + 1) != 0 ? POLLIN : 0;
        fds[1].revents = rung ? POLLIN : 0;
        if (w->now >= w->end && !w->is_stopped) {
                world_stop(w);
                fds[0].revents = POLLIN;
        }
        return (fds[0].revents != 0) + (fds[1].revents != 0);
}

/* w has what is not said by the other arguments. */
static void world_run_on(World *w, nsec_t from, nsec_t to, nsec_t end, nsec_t wait, unsigned n_zero, unsigned n_asks) {
        Dispatching *d = &w->rig.dispatching;
        cpu_set_t set;
        uint32_t cpu = 0;

        rig_init(&w->rig, RING, 16);
        w->now = BEGIN;
        w->next = BEGIN + from;
        w->last = BEGIN + to;
        w->end = BEGIN + end;
        w->wait = wait;
        w->n_zero = n_zero;
        w->n_asks = n_asks;
        d->lock = OWNER_LOCK_HELD;
        d->is_shared = true;
        d->work = work;
        d->userdata = w;
        assert_true(owner_lock_release(&d->lock));
        assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
        while (!CPU_ISSET(cpu, &set))
                cpu++;
        w->rig.reader.snapshot->active = true;
        w->rig.reader.snapshot->wakes = w->wakes;
        w->rig.reader.snapshot->cpus[w->rig.reader.slot].latency = w->latency;
        w->rig.reader.cpu = cpu;
        w->rig.reader.base_tick = TICK;
        atomic_store(&d->tick, w->tick);
        atomic_store(&w->rig.reader.reports_until, w->reports ? UINT64_MAX : 0);
        reader_set_pace(&w->rig.reader);
        w->rig.reader.acknowledge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        world = w;
        assert_int_equal(reader_start(&w->rig.reader, TAKE_PTR(w->rig.reader.snapshot)), 0);
        assert_int_equal(reader_join(&w->rig.reader), 0);
        world = NULL;
        assert_true(w->is_stopped);
        close_fd(w->rig.reader.acknowledge_fd);
        rig_deinit(&w->rig);
}

static void world_run(World *w, nsec_t from, nsec_t to, nsec_t end, nsec_t wait, unsigned n_zero, unsigned n_asks) {
        *w = (World){ .latency = TICK };
        world_run_on(w, from, to, end, wait, n_zero, n_asks);
}

static void test_flood(void **state) {
        static const nsec_t waits[] = { UINT64_MAX, 400 * NSEC_PER_USEC, TICK + TICK / 8, 5 * TICK };

        for (unsigned i = 0; i < ARRAY_SIZE(waits); i++)
                for (unsigned more = 0; more < 12; more++) {
                        unsigned n_zero = more % 4 * 3, n_asks = more / 4 * 3;
                        World w;

                        world_run(&w, 0, NSEC_PER_SEC, NSEC_PER_SEC, waits[i], n_zero, n_asks);
                        assert_true(w.oldest <= TICK);
                        if (waits[i] < TICK && n_asks == 0) /* once between two ticks, however often there were turns */
                                assert_in_range(w.n_sleeps, 2 * NSEC_PER_SEC / TICK - 2, 2 * NSEC_PER_SEC / TICK + 4);
                        else
                                assert_in_range(w.n_sleeps / (n_asks + 1), NSEC_PER_SEC / TICK, NSEC_PER_SEC / TICK + 2);
                        assert_true(w.latest_turn <= TICK);
                }
}

/* Behind the flood it looks less and less often, up to the latency that was asked for, and then not any more. */
static void test_quiet(void **state) {
        static const nsec_t waits[] = { UINT64_MAX, 5 * NSEC_PER_MSEC };
        unsigned n_sleeps[2];

        for (unsigned i = 0; i < ARRAY_SIZE(waits); i++) {
                World w = { .latency = 100 * NSEC_PER_MSEC };

                world_run_on(&w, 0, 30 * NSEC_PER_MSEC, 2 * NSEC_PER_SEC, waits[i], 0, 0);
                assert_true(w.oldest <= 100 * NSEC_PER_MSEC);
                assert_true(w.latest_turn <= TICK); /* what there is to do is done in time, as long as there is */
                n_sleeps[i] = w.n_sleeps;
        }
        assert_in_range(n_sleeps[0], 2, 10); /* and then it is dormant */
        assert_in_range(n_sleeps[1], 2000 / 5 - 40, 2000 / 5 + 40);
}

/* Somebody waits for what it says, and nothing comes: it says that as often as all others, and no more. */
static void test_reports(void **state) {
        static const nsec_t ticks[] = { TICK, 4 * TICK, 32 * TICK };

        for (unsigned i = 0; i < ARRAY_SIZE(ticks); i++) {
                World w = { .latency = 100 * NSEC_PER_MSEC, .tick = ticks[i], .reports = true };

                world_run_on(&w, 3 * NSEC_PER_SEC, 0, 2 * NSEC_PER_SEC, UINT64_MAX, 0, 0);
                assert_in_range(w.n_sleeps, 2 * NSEC_PER_SEC / ticks[i] - 2, 2 * NSEC_PER_SEC / ticks[i] + 4);
        }
}

/*
 * Whatever comes, from one sample in a second to much more than the ring holds in that time, waits no longer than was asked for,
 * and the reader looks no more often than that takes, or than an eighth of the ring fills.
 */
static void test_latency(void **state) {
        static const nsec_t latencies[] = { 200 * NSEC_PER_USEC, TICK, 20 * NSEC_PER_MSEC, 100 * NSEC_PER_MSEC, NSEC_PER_SEC };
        static const nsec_t gaps[] = { 2 * NSEC_PER_USEC, 10 * NSEC_PER_USEC, NSEC_PER_MSEC, 70 * NSEC_PER_MSEC, NSEC_PER_SEC };

        for (unsigned i = 0; i < ARRAY_SIZE(latencies); i++)
                for (unsigned k = 0; k < ARRAY_SIZE(gaps); k++) {
                        World w = { .latency = latencies[i], .gap = gaps[k] };
                        nsec_t fills, least;

                        world_run_on(&w, 0, 3 * NSEC_PER_SEC, 3 * NSEC_PER_SEC, UINT64_MAX, 0, 0);
                        assert_true(w.oldest <= latencies[i]);
                        fills = RING / 8 * 3 * NSEC_PER_SEC / w.written; /* an eighth */
                        least = latencies[i] < fills ? latencies[i] : fills > TICK ? fills : TICK;
                        if (latencies[i] < TICK)
                                least = latencies[i];
                        assert_in_range(w.n_sleeps, 2, 2 * (3 * NSEC_PER_SEC / least) + 40); /* a tick is a power of two */
                        assert_true(w.n_slept_on <= w.n_rung);
                }
}

/* A ring wakes at each half that was written, be it read meanwhile: it is left for the tick, unless there is much. */
static void test_rung(void **state) {
        World little = { .extra = 1 << 10, .latency = TICK }, much = { .extra = 16 << 10, .latency = TICK };
        World wanted = { .extra = 1 << 10, .latency = TICK, .wakes = true };

        world_run_on(&little, 0, NSEC_PER_SEC, NSEC_PER_SEC, UINT64_MAX, 0, 0);
        assert_true(little.n_rung > 10);
        assert_int_equal(little.n_slept_on, little.n_rung);
        assert_true(little.oldest <= TICK);
        assert_in_range(little.n_sleeps - little.n_rung, NSEC_PER_SEC / TICK, NSEC_PER_SEC / TICK + 2);

        world_run_on(&much, 0, NSEC_PER_SEC, NSEC_PER_SEC, UINT64_MAX, 0, 0);
        assert_true(much.n_rung > 100);
        assert_in_range(much.n_slept_on, 1, much.n_rung / 2); /* where a tick was just before */
        assert_true(much.oldest <= TICK);

        world_run_on(&wanted, 0, NSEC_PER_SEC, NSEC_PER_SEC, UINT64_MAX, 0, 0);
        assert_int_equal(wanted.n_rung, little.n_rung);
        assert_int_equal(wanted.n_slept_on, 0);
}

/* Who looks rarely because nothing came reads at once what it is woken for, however little it is, and just before a look too. */
static void test_rung_in_quiet(void **state) {
        for (nsec_t from = NSEC_PER_SEC; from < NSEC_PER_SEC + 130 * NSEC_PER_MSEC; from += NSEC_PER_MSEC) {
                World w = { .written = RING / 2 - 16, .latency = 100 * NSEC_PER_MSEC };

                world_run_on(&w, from, from + 10 * TICK, 2 * NSEC_PER_SEC, UINT64_MAX, 0, 0);
                assert_int_equal(w.n_rung, 1);
                assert_int_equal(w.n_slept_on, 0);
                assert_true(w.oldest <= 100 * NSEC_PER_MSEC);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_flood),
                cmocka_unit_test(test_quiet),
                cmocka_unit_test(test_reports),
                cmocka_unit_test(test_latency),
                cmocka_unit_test(test_rung),
                cmocka_unit_test(test_rung_in_quiet),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
