/* The dispatcher's thread beside somebody who takes its turns: what it wakes for, and what it sleeps through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>

#include "daemon/dispatcher/ask.h"
#include "daemon/dispatcher/cycle.h"

#define PATIENCE (20 * NSEC_PER_SEC)
#define MANY 100 /* batches: more than fit into a turn */

void __real_doorbell_arm(Doorbell *bell);
void __wrap_doorbell_arm(Doorbell *bell);

/* Who watches, and hands that back just before the bell can be heard again; NULL: nobody. */
static _Atomic(Dispatching *) hands_back;

void __wrap_doorbell_arm(Doorbell *bell) {
        Dispatching *shared = atomic_exchange(&hands_back, NULL);

        if (shared) {
                atomic_store(&shared->timer_owner, NULL);
                doorbell_ring(bell);
        }
        __real_doorbell_arm(bell);
}

typedef struct Desk {
        Dispatcher dispatcher;
        Queue full, free;
        atomic_bool needs_batch;
        Mailbox reader;
        _Atomic(nsec_t) reports_until;
        BatchPipe pipe;
} Desk;

static void desk_init(Desk *desk) {
        *desk = (Desk){ .dispatcher = { .clock = CLOCK_MONOTONIC, .thread = THREAD_NULL } };
        assert_int_equal(queue_init(&desk->full, MANY), 0);
        assert_int_equal(queue_init(&desk->free, MANY), 0);
        assert_int_equal(mailbox_init(&desk->reader, 4), 0);
        desk->pipe = (BatchPipe){ .full = &desk->full, .free = &desk->free, .needs_batch = &desk->needs_batch, .reader = &desk->reader,
                             .reports_until = &desk->reports_until };
        assert_int_equal(dispatcher_init(&desk->dispatcher, &desk->pipe, 1, 4), 0);
        assert_int_equal(dispatcher_start(&desk->dispatcher), 0);
}

static void desk_deinit(Desk *desk) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        command->kind = DISPATCHER_QUIT;
        dispatcher_post(&desk->dispatcher, command);
        assert_int_equal(dispatcher_join(&desk->dispatcher), 0);
        dispatcher_deinit(&desk->dispatcher);
        mailbox_deinit(&desk->reader);
        queue_deinit(&desk->full);
        queue_deinit(&desk->free);
}

/* The thread sleeps then, or waits for the turn. A try in vain would wake it, so it is tried when the turn is free. */
static void take(Desk *desk) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        OwnerLock *lock = &desk->dispatcher.dispatching.lock;

        while (atomic_load(&lock->word) != 0 || !owner_lock_try(lock)) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
}

static void give(Desk *desk, const void *timer_owner) {
        atomic_store(&desk->dispatcher.dispatching.timer_owner, timer_owner);
        assert_true(owner_lock_release(&desk->dispatcher.dispatching.lock));
}

/* Has slept so often, and sleeps again. */
static void wait_wakeups(Desk *desk, uint64_t n) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

        do {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        } while (counter_get(&desk->dispatcher.wakeups) < n);
        take(desk);
        assert_int_equal(counter_get(&desk->dispatcher.wakeups), n);
}

static void wait_armed(Desk *desk) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

        while (!atomic_load(&desk->dispatcher.dispatching.bell.armed)) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
}

static Batch *push(Desk *desk) {
        Batch *b = batch_new(0);

        assert_non_null(b);
        batch_reset(b, 1);
        batch_seal(b);
        assert_true(queue_push(&desk->full, b));
        return b;
}

static void wait_back(Desk *desk, Batch *b) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        Batch *back;

        while (!(back = queue_pop(&desk->free))) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
        assert_ptr_equal(back, b);
        batch_free(b);
}

static void test_thread(void **state) {
        Desk desk;
        Doorbell *bell = &desk.dispatcher.dispatching.bell;
        uint64_t n;
        nsec_t wait;
        Batch *b;

        desk_init(&desk);
        take(&desk);
        n = counter_get(&desk.dispatcher.wakeups);

        /* rung for nothing while another one watches: it sleeps on */
        give(&desk, &desk);
        wait_armed(&desk);
        doorbell_ring(bell);
        wait_armed(&desk);
        take(&desk);
        assert_int_equal(counter_get(&desk.dispatcher.wakeups), n);

        /* who watches no longer can, when it has been looked for already: it looks itself */
        give(&desk, &desk);
        wait_armed(&desk);
        atomic_store(&hands_back, &desk.dispatcher.dispatching);
        doorbell_ring(bell);
        wait_wakeups(&desk, ++n);

        /* nobody watches: it looks */
        give(&desk, NULL);
        wait_armed(&desk);
        doorbell_ring(bell);
        wait_wakeups(&desk, n + 1);

        /* there is something: it looks too, when it is its turn */
        b = push(&desk);
        wait_armed(&desk);
        doorbell_ring(bell);
        assert_null(queue_pop(&desk.free));
        atomic_store(&desk.dispatcher.dispatching.timer_owner, &desk);
        owner_lock_leave(&desk.dispatcher.dispatching.lock);
        wait_back(&desk, b);
        wait_wakeups(&desk, n + 2);

        /* and what is done by others is done as well */
        b = push(&desk);
        assert_int_equal(dispatcher_assist(&desk.dispatcher, &wait), 0);
        assert_true(wait == UINT64_MAX);
        wait_back(&desk, b);
        give(&desk, &desk);
        desk_deinit(&desk);
}

/* Who cannot do all in one turn is there again at once. */
static void test_many(void **state) {
        Batch *batches[MANY];
        nsec_t wait = 1;
        Desk desk;

        desk_init(&desk);
        take(&desk);
        for (unsigned i = 0; i < MANY; i++)
                batches[i] = push(&desk);
        assert_int_equal(dispatcher_assist(&desk.dispatcher, &wait), 0);
        assert_int_equal(wait, 0);
        assert_false(queue_is_empty(&desk.full));
        assert_int_equal(dispatcher_assist(&desk.dispatcher, &wait), 0);
        assert_true(wait == UINT64_MAX);
        for (unsigned i = 0; i < MANY; i++)
                wait_back(&desk, batches[i]);
        give(&desk, &desk);
        desk_deinit(&desk);
}

/* A command is the thread's, also if somebody has the turn when it comes. */
static void test_commands(void **state) {
        DispatcherCommand *command = calloc(1, sizeof(*command));
        DispatcherReport report = { .n_subscribers = 7 };
        nsec_t wait;
        sem_t done;
        Desk desk;

        desk_init(&desk);
        assert_int_equal(sem_init(&done, 0, 0), 0);
        take(&desk);
        *command = (DispatcherCommand){ .kind = DISPATCHER_REPORT, .report = &report, .done = &done };
        dispatcher_post(&desk.dispatcher, command);
        assert_int_equal(dispatcher_assist(&desk.dispatcher, &wait), 0);
        assert_int_not_equal(sem_trywait(&done), 0);
        atomic_store(&desk.dispatcher.dispatching.timer_owner, &desk);
        owner_lock_leave(&desk.dispatcher.dispatching.lock);
        assert_int_equal(sem_wait(&done), 0);
        assert_int_equal(report.n_subscribers, 0);
        dispatcher_report_deinit(&report);
        sem_destroy(&done);
        desk_deinit(&desk);
}

static DispatcherNotice *wait_notice(Desk *desk) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        DispatcherNotice *notice;

        while (!(notice = mailbox_pop(&desk->dispatcher.notices))) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
        return notice;
}

static DispatcherAsk *ask(Desk *desk) {
        DispatcherCommand *command = calloc(1, sizeof(*command));
        DispatcherAsk *asked;

        command->kind = DISPATCHER_PING;
        asked = dispatcher_ask_new(command);
        dispatcher_post(&desk->dispatcher, command);
        return asked;
}

/* Main has lost patience before it was answered, and is told when it would have been. */
static void test_left_ask(void **state) {
        DispatcherNotice *notice;
        Desk desk;

        desk_init(&desk);
        take(&desk);
        assert_true(dispatcher_ask_leave(ask(&desk)));
        owner_lock_leave(&desk.dispatcher.dispatching.lock);
        notice = wait_notice(&desk);
        assert_int_equal(notice->kind, DISPATCHER_ANSWERS);
        free(notice);
        desk_deinit(&desk);
}

/* More than there is room for, while the thread does not go on: main is not held, and nothing is lost, or comes before another. */
static void test_many_commands(void **state) {
        enum { N = 5000 };
        static DispatcherAsk *asked[N];
        DispatcherNotice *notice;
        size_t n_notices = 0;
        Desk desk;

        desk_init(&desk);
        take(&desk);
        for (size_t i = 0; i < N; i++)
                asked[i] = ask(&desk);
        assert_non_null(desk.dispatcher.unposted.first);
        assert_true(desk.dispatcher.expects_room);
        owner_lock_leave(&desk.dispatcher.dispatching.lock);
        while (desk.dispatcher.unposted.first) {
                notice = wait_notice(&desk);
                assert_int_equal(notice->kind, DISPATCHER_HAS_ROOM);
                free(notice);
                desk.dispatcher.expects_room = false;
                dispatcher_post_rest(&desk.dispatcher);
                n_notices++;
        }
        assert_true(n_notices > 0);
        for (size_t i = N; i-- > 0;) { /* the last one first: all before it are answered then */
                if (i == N - 1)
                        assert_int_equal(sem_wait(&asked[i]->done), 0);
                else
                        assert_int_equal(sem_trywait(&asked[i]->done), 0);
                assert_int_equal(atomic_load(&asked[i]->state), ASK_ANSWERED);
                dispatcher_ask_free(asked[i]);
        }
        assert_null(mailbox_pop(&desk.dispatcher.notices)); /* nobody has left */
        desk_deinit(&desk);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_thread),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_commands),
                cmocka_unit_test(test_left_ask),
                cmocka_unit_test(test_many_commands),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
