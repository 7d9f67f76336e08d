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
        nsec_t wait;       /* when turns are due, after the one before */
        unsigned n_zero;   /* turns of ten behind which there is more to be done at once */
        unsigned n_asks;   /* times that it is woken for something else before it sleeps on */
        uint32_t extra;    /* bytes of each sample */
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
        ReaderCommand *mail = calloc(1, sizeof(*mail));

        *mail = (ReaderCommand){ .kind = READER_STOP, .sequence = 1 };
        w->is_stopped = true;
        reader_post(&w->rig.reader, mail);
}

/* One sample; whether the kernel wakes the reader then. */
static bool world_put(World *w) {
        uint64_t before = w->written / (RING / 2), head = w->rig.page->data_head;

        assert(rig_put_number(&w->rig, 1, WHO(7, 0, w->next), 2, w->extra)); /* there is always room */
        w->written += w->rig.page->data_head - head;
        w->next += GAP;
        return w->written / (RING / 2) > before;
}

/* The reader sleeps: time passes, and samples come. */
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
        World *w = world;
        nsec_t until = timeout ? w->now + (nsec_t)timeout->tv_sec * NSEC_PER_SEC + (nsec_t)timeout->tv_nsec : w->end;
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
        if (until > w->end)
                until = w->end;
        if (filled == 0)
                w->lies_since = w->next;
        while (w->next <= w->last && w->next < until && !rung) {
                rung = world_put(w);
                if (rung)
                        until = w->next - GAP + 1;
        }
        if (w->lies_since < w->next && until - w->lies_since > w->oldest)
                w->oldest = until - w->lies_since;
        w->now = until;
        w->was_rung = rung;
        w->n_rung += rung;
        fds[0].revents = w->n_sleeps % (w->n_asks + 1) != 0 ? POLLIN : 0;
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
        w->rig.reader.cpu = cpu;
        w->rig.reader.flush = w->rig.reader.wait = w->rig.reader.tick = TICK;
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
        memset(w, 0, sizeof(*w));
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

/* Behind the flood it looks less and less often, up to eight times a second; the next one is found as late as that. */
static void test_quiet(void **state) {
        static const nsec_t waits[] = { UINT64_MAX, 5 * NSEC_PER_MSEC };
        unsigned n_sleeps[2];

        for (unsigned i = 0; i < ARRAY_SIZE(waits); i++) {
                World w;

                world_run(&w, 0, 30 * NSEC_PER_MSEC, 2 * NSEC_PER_SEC, waits[i], 0, 0);
                assert_true(w.oldest <= TICK);
                assert_true(w.latest_turn <= TICK); /* what there is to do is done in time, as long as there is */
                n_sleeps[i] = w.n_sleeps;
        }
        assert_in_range(n_sleeps[0], 10 + 2000 / 128, 10 + 2000 / 128 + 8);
        assert_in_range(n_sleeps[1], 2000 / 5 - 40, 2000 / 5 + 40);
}

/* A ring wakes at each half that was written, be it read meanwhile: it is left for the tick, unless there is much. */
static void test_rung(void **state) {
        World little = { .extra = 1 << 10 }, much = { .extra = 16 << 10 }, wanted = { .extra = 1 << 10, .wakes = true };

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
                World w = { .written = RING / 2 - 16 };

                world_run_on(&w, from, from + 10 * TICK, 2 * NSEC_PER_SEC, UINT64_MAX, 0, 0);
                assert_int_equal(w.n_rung, 1);
                assert_int_equal(w.n_slept_on, 0);
                assert_true(w.oldest <= TICK);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_flood),
                cmocka_unit_test(test_quiet),
                cmocka_unit_test(test_rung),
                cmocka_unit_test(test_rung_in_quiet),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
