/*
 * Who dispatches what a reader has pushed: the reader itself where that is little and nobody else is at it, and in every
 * other case the dispatcher, which is woken for it; and who comes when there is something to do later. The clock stands
 * still but for what a turn takes.
 */
#include <errno.h>
#include <poll.h>

#include "tests/unit/reader-checks.h"

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

static nsec_t now = NSEC_PER_SEC;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        if (clock != CLOCK_MONOTONIC)
                return __real_clock_gettime(clock, ts);
        *ts = (struct timespec){ .tv_sec = (time_t)(now / NSEC_PER_SEC), .tv_nsec = (long)(now % NSEC_PER_SEC) };
        return 0;
}

typedef struct Desk {
        Rig rig;
        unsigned n_turns;
        unsigned n_come;  /* others that come in vain, one in each turn */
        unsigned n_more;  /* turns behind which there is more to be done at once */
        nsec_t takes, wait;
        int error;
} Desk;

static int work(void *userdata, nsec_t *ret_wait) {
        Desk *desk = userdata;

        desk->n_turns++;
        if (desk->n_come > 0) {
                desk->n_come--;
                assert_false(owner_lock_try(&desk->rig.dispatching.lock));
        }
        now += desk->takes;
        *ret_wait = desk->n_more > 0 ? 0 : desk->wait;
        desk->n_more -= desk->n_more > 0;
        return desk->error;
}

/* The dispatcher sleeps. */
static void desk_init_with(Desk *desk, unsigned n_batches) {
        Dispatching *d = &desk->rig.dispatching;

        *desk = (Desk){ .wait = UINT64_MAX };
        rig_init(&desk->rig, 64 * 1024, n_batches);
        d->lock = OWNER_LOCK_HELD;
        d->is_shared = true;
        d->work = work;
        d->userdata = desk;
        doorbell_arm(&d->bell);
        assert_true(owner_lock_release(&d->lock));
}

static void desk_init(Desk *desk) {
        desk_init_with(desk, 16);
}

static void desk_deinit(Desk *desk) {
        rig_deinit(&desk->rig);
}

static bool was_rung(Desk *desk) {
        Doorbell *bell = &desk->rig.dispatching.bell;
        struct pollfd p = { .fd = bell->waiter, .events = POLLIN };
        bool was = poll(&p, 1, 0) == 1;

        (void)doorbell_wait(bell, 0);
        doorbell_arm(bell);
        return was;
}

static void push(Desk *desk, unsigned n) {
        while (n-- > 0)
                reader_pushed(&desk->rig.reader);
}

/* So many turns of the reader, and whether the dispatcher was woken; nobody has the turn afterwards. */
static void check(Desk *desk, bool can_dispatch, unsigned n_turns, bool rung) {
        OwnerLock *t = &desk->rig.dispatching.lock;

        desk->n_turns = 0;
        assert_int_equal(reader_hand_off(&desk->rig.reader, can_dispatch), 0);
        assert_int_equal(desk->n_turns, n_turns);
        assert_int_equal(was_rung(desk), rung);
        assert_true(owner_lock_try(t));
        assert_true(owner_lock_release(t));
}

static void test_who_works(void **state) {
        Desk desk;

        desk_init(&desk);
        check(&desk, true, 0, false); /* there is nothing */
        push(&desk, 1);
        check(&desk, true, 1, false);
        check(&desk, true, 0, false);
        push(&desk, 8);
        check(&desk, true, 1, false);
        push(&desk, 9); /* much: it is woken in the middle */
        assert_true(was_rung(&desk));
        check(&desk, true, 0, false);
        check(&desk, true, 0, false);
        push(&desk, 10);
        assert_true(was_rung(&desk));
        check(&desk, true, 0, true); /* it is busy with those: the rest is not for this reader either */
        push(&desk, 1);
        check(&desk, false, 0, true); /* no time: it starves, or ends */
        desk.n_come = 3;
        push(&desk, 1);
        check(&desk, true, 4, false); /* for others who come meanwhile */
        desk.n_more = 2;
        push(&desk, 1);
        check(&desk, true, 3, false); /* for what did not fit into one turn */
        desk.rig.dispatching.is_shared = false;
        push(&desk, 1);
        check(&desk, true, 0, true);
        desk_deinit(&desk);
}

/* Of a small pool half: what it takes while it goes on the dispatcher has to give back. */
static void test_small_pool(void **state) {
        for (unsigned n = 2; n <= 16; n++) {
                Desk desk;

                desk_init_with(&desk, n);
                push(&desk, n / 2);
                check(&desk, true, 1, false);
                push(&desk, n / 2 + 1);
                assert_true(was_rung(&desk));
                check(&desk, true, 0, false);
                desk_deinit(&desk);
        }
}

static void test_somebody_works(void **state) {
        Desk desk;
        OwnerLock *t = &desk.rig.dispatching.lock;

        desk_init(&desk);
        owner_lock_acquire(t);
        push(&desk, 1);
        assert_int_equal(reader_hand_off(&desk.rig.reader, true), 0);
        assert_int_equal(desk.n_turns, 0);
        assert_false(was_rung(&desk)); /* who has it looks once more */
        assert_false(owner_lock_release(t));
        assert_true(owner_lock_release(t));
        check(&desk, true, 0, false);

        desk.wait = NSEC_PER_MSEC;
        push(&desk, 1);
        check(&desk, true, 1, false);
        now += NSEC_PER_MSEC;
        owner_lock_acquire(t);
        assert_int_equal(reader_hand_off(&desk.rig.reader, true), 0); /* it is time, and somebody is at it */
        assert_true(reader_next_cycle(&desk.rig.reader) == UINT64_MAX);
        assert_false(owner_lock_release(t));
        assert_true(owner_lock_release(t));
        desk_deinit(&desk);
}

/* A turn that takes long is the last one for a while, also if somebody waits for the next. */
static void test_long_turns(void **state) {
        for (unsigned n_come = 0; n_come < 2; n_come++) {
                Desk desk;

                desk_init(&desk);
                desk.takes = 250 * NSEC_PER_USEC;
                desk.wait = 5 * NSEC_PER_MSEC;
                push(&desk, 1);
                check(&desk, true, 1, false); /* not yet */
                assert_true(reader_next_cycle(&desk.rig.reader) == now + desk.wait);
                desk.takes++;
                desk.n_come = n_come;
                push(&desk, 1);
                check(&desk, true, 1, true);
                assert_true(reader_next_cycle(&desk.rig.reader) == UINT64_MAX);
                push(&desk, 1);
                check(&desk, true, 0, true);
                now += 16 * NSEC_PER_MSEC - 1;
                push(&desk, 1);
                check(&desk, true, 0, true);
                now++;
                push(&desk, 1);
                check(&desk, true, 1, true);
                desk_deinit(&desk);
        }
}

/* Several that come one after the other make one turn long. */
static void test_many_turns(void **state) {
        Desk desk;

        desk_init(&desk);
        desk.takes = 80 * NSEC_PER_USEC;
        desk.n_come = 100;
        push(&desk, 1);
        check(&desk, true, 4, true);
        desk_deinit(&desk);
}

static void test_watch(void **state) {
        Desk desk;
        Dispatching *d = &desk.rig.dispatching;
        Reader *r = &desk.rig.reader;

        desk_init(&desk);
        assert_true(reader_next_cycle(r) == UINT64_MAX);
        desk.wait = NSEC_PER_MSEC;
        push(&desk, 1);
        check(&desk, true, 1, false);
        assert_true(reader_next_cycle(r) == now + NSEC_PER_MSEC);
        now += NSEC_PER_MSEC - 1;
        check(&desk, true, 0, false);
        now++;
        check(&desk, true, 1, false); /* nothing new, but it is time */
        now += NSEC_PER_MSEC;
        check(&desk, false, 0, true); /* the dispatcher's */
        assert_true(reader_next_cycle(r) == UINT64_MAX);
        check(&desk, true, 0, false);

        push(&desk, 1);
        check(&desk, true, 1, false);
        atomic_store(&d->timer_owner, &desk); /* another one has worked since */
        assert_true(reader_next_cycle(r) == UINT64_MAX);
        now += NSEC_PER_SEC;
        check(&desk, true, 0, false);
        reader_release_timer(r);
        assert_false(was_rung(&desk));
        assert_ptr_equal(atomic_load(&d->timer_owner), &desk);

        push(&desk, 1);
        check(&desk, true, 1, false);
        reader_release_timer(r);
        assert_true(was_rung(&desk));
        assert_null(atomic_load(&d->timer_owner));

        desk.wait = UINT64_MAX;
        push(&desk, 1);
        check(&desk, true, 1, false);
        assert_true(reader_next_cycle(r) == UINT64_MAX);
        now += NSEC_PER_SEC;
        check(&desk, true, 0, false);
        desk_deinit(&desk);
}

static void test_fatal(void **state) {
        Desk desk;

        desk_init(&desk);
        desk.error = -ENOMEM;
        push(&desk, 1);
        assert_int_equal(reader_hand_off(&desk.rig.reader, true), -ENOMEM);
        desk_deinit(&desk);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_works),
                cmocka_unit_test(test_small_pool),
                cmocka_unit_test(test_somebody_works),
                cmocka_unit_test(test_long_turns),
                cmocka_unit_test(test_many_turns),
                cmocka_unit_test(test_watch),
                cmocka_unit_test(test_fatal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
