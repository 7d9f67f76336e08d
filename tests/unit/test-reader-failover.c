/*
 * A backup that reads in place of a reader that does not run, and how it is noticed that it has to. The reader itself is
 * played: it is whoever takes the turn as the thread.
 */
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "daemon/reader/stall-monitor.h"
#include "tests/unit/reader-checks.h"

#define GUARD (5 * NSEC_PER_MSEC)
#define PATIENCE (20 * NSEC_PER_SEC)
#define NOWHERE 4096 /* a CPU that nobody of this test runs on */

static Rig rig;

static void set_up(void) {
        rig_init(&rig, 64 * 1024, 4);
        rig.reader.cpu = NOWHERE;
        rig.reader.away_guard = GUARD;
        rig.reader.acknowledge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_true(rig.reader.acknowledge_fd >= 0);
}

static void tear_down(void) {
        assert_int_equal(reader_join(&rig.reader), 0);
        rig_check_sums(&rig);
        close_fd(rig.reader.acknowledge_fd);
        rig_deinit(&rig);
}

static void wait_until(bool (*fact)(void)) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

        while (!fact()) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
}

static bool has_batch(void) {
        return !queue_is_empty(&rig.reader.full);
}

static bool has_ended(void) {
        bool ended;

        owner_lock_acquire(&rig.reader.lock);
        ended = rig.reader.backup_state == BACKUP_NONE;
        owner_lock_leave(&rig.reader.lock);
        return ended;
}

static bool has_acknowledged(void) {
        return atomic_load(&rig.reader.acknowledged) == 1;
}

static bool has_failed_over(void) {
        return counter_get(&rig.reader.counters.failovers) == 1;
}

static void put(nsec_t time) {
        assert_true(rig_put_number(&rig, 1, WHO(7, 0, time), 2, 0));
}

/* The next batch has this one sample, and was read with a guard. */
static void check_read(nsec_t time) {
        Batch *b;

        wait_until(has_batch);
        b = queue_pop(&rig.reader.full);
        check_batch(b);
        assert_int_equal(b->n_entries, 1);
        assert_int_equal(b->entries[0].time, time);
        assert_true(b->watermark > 0 && b->watermark + GUARD <= clock_now(CLOCK_MONOTONIC));
        assert_true(queue_push(&rig.reader.free, b));
}

static void fail_over(void) {
        uint32_t *cpus;
        size_t n;

        assert_int_equal(thread_get_cpus(&cpus, &n), 0);
        assert_true(n > 0);
        owner_lock_acquire(&rig.reader.lock);
        assert_int_equal(reader_fail_over(&rig.reader, cpus, n), 0);
        owner_lock_leave(&rig.reader.lock);
        free(cpus);
}

/* The reader runs again: it has the turn, and leaves it. */
static void run_reader(bool expected) {
        bool is_back = false;

        assert_true(reader_acquire_lock(&rig.reader, false, &is_back));
        assert_int_equal(is_back, expected);
        assert_false(atomic_load(&rig.reader.is_backup));
        owner_lock_leave(&rig.reader.lock);
}

static void test_guard(void **state) {
        set_up();
        assert_int_equal(reader_guard(&rig.reader), GUARD); /* this is not its CPU */
        assert_true(reader_visible(&rig.reader) + GUARD <= clock_now(CLOCK_MONOTONIC));
        rig.reader.guard = 2 * GUARD; /* it has none */
        assert_int_equal(reader_guard(&rig.reader), 2 * GUARD);
        rig.reader.guard = 0;
        rig.reader.away_guard = 0;
        assert_int_equal(reader_guard(&rig.reader), 0);
        tear_down();
}

static void test_guard_at_home(void **state) {
        cpu_set_t before, one;
        int cpu = sched_getcpu();

        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        set_up();
        rig.reader.cpu = (uint32_t)cpu;
        assert_int_equal(reader_guard(&rig.reader), 0);
        rig.reader.is_backup = true; /* wherever that was moved to */
        assert_int_equal(reader_guard(&rig.reader), GUARD);
        rig.reader.is_backup = false;
        tear_down();
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* It reads what there is and what comes; nothing is read twice when the reader is back; and it can come again. */
static void test_backup(void **state) {
        set_up();
        for (nsec_t time = 10; time < 40; time += 20) {
                put(time);
                fail_over();
                check_read(time);
                put(time + 1);
                check_read(time + 1);
                run_reader(true);
                wait_until(has_ended);
                run_reader(false);
                assert_int_equal(rig.page->data_tail, rig.page->data_head);
        }
        assert_int_equal(counter_get(&rig.reader.counters.failovers), 2);
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_NUMBERS)->delivered), 4);
        tear_down();
}

/* One that was dismissed and is still there goes on, if it is needed again before it looks. */
static void test_dismissed(void **state) {
        Thread backup;

        set_up();
        fail_over();
        backup = rig.reader.backup;
        owner_lock_acquire(&rig.reader.lock);
        rig.reader.backup_state = BACKUP_DISMISSED;
        assert_int_equal(reader_fail_over(&rig.reader, NULL, 0), 0);
        assert_int_equal(rig.reader.backup_state, BACKUP_READS);
        owner_lock_leave(&rig.reader.lock);
        assert_true(pthread_equal(backup.handle, rig.reader.backup.handle));
        put(10);
        check_read(10);
        run_reader(true);
        wait_until(has_ended);
        tear_down();
}

/* What is asked of a reader that stays away is done by the backup; also to stop, which ends it. */
static void test_commands(void **state) {
        ReaderCommand *command = calloc(1, sizeof(*command));
        Batch *b;

        set_up();
        assert_non_null(command);
        *command = (ReaderCommand){ .kind = READER_STOP, .sequence = 1 };
        reader_post(&rig.reader, command);
        fail_over();
        wait_until(has_acknowledged);
        wait_until(has_batch);
        b = queue_pop(&rig.reader.full);
        assert_int_equal(b->n_entries, 0);
        assert_true(queue_push(&rig.reader.free, b));
        tear_down();
        assert_true(rig.reader.has_stopped);
}

static void start_monitor(StallMonitor *m) {
        *m = (StallMonitor){ .readers = &rig.reader, .n = 1, .priority = { THREAD_NORMAL, 0 } };
        assert_int_equal(stall_monitor_start(m), 0);
        rig.reader.mailbox.overdue_fd = rig.reader.overdue_fd;
}

static void stop_monitor(StallMonitor *m) {
        owner_lock_acquire(&rig.reader.lock);
        rig.reader.has_stopped = true;
        owner_lock_leave(&rig.reader.lock);
        assert_int_equal(reader_join(&rig.reader), 0);
        stall_monitor_stop(m);
        rig.reader.mailbox.overdue_fd = -1;
        tear_down();
}

/* Who should have run by now did not. */
static void test_overdue(void **state) {
        StallMonitor m;

        set_up();
        start_monitor(&m);
        put(10);
        owner_lock_acquire(&rig.reader.lock);
        reader_watch(&rig.reader, clock_now(CLOCK_MONOTONIC), true);
        owner_lock_leave(&rig.reader.lock);
        check_read(10);
        assert_true(has_failed_over());
        stop_monitor(&m);
}

/* Who is asked, and does not need to run for anything else. */
static void test_asked(void **state) {
        StallMonitor m;

        set_up();
        start_monitor(&m);
        put(10);
        mailbox_ask(&rig.reader.mailbox, READER_ASK_WATERMARK);
        check_read(10);
        assert_true(has_failed_over());
        stop_monitor(&m);
}

/* Who is in time is left alone: here it was asked, and has answered before the timer expires. */
static void test_in_time(void **state) {
        struct itimerspec left;
        StallMonitor m;

        set_up();
        start_monitor(&m);
        mailbox_ask(&rig.reader.mailbox, READER_ASK_WATERMARK);
        owner_lock_acquire(&rig.reader.lock);
        (void)mailbox_take_asks(&rig.reader.mailbox);
        mailbox_set_overdue(rig.reader.overdue_fd, 1); /* at once */
        reader_watch(&rig.reader, UINT64_MAX, true);
        owner_lock_leave(&rig.reader.lock);
        do
                assert_int_equal(timerfd_gettime(rig.reader.overdue_fd, &left), 0);
        while (left.it_value.tv_nsec > 0 || left.it_value.tv_sec > 0);
        stall_monitor_stop(&m); /* behind that */
        assert_int_equal(counter_get(&rig.reader.counters.failovers), 0);
        rig.reader.mailbox.overdue_fd = -1;
        tear_down();
}

/* A process of one CPU has nobody who could read the ring of that: nothing is begun, and all of it ends. */
static void test_nowhere_to_go(void **state) {
        cpu_set_t before, one;
        StallMonitor m;

        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        set_up();
        rig.reader.cpu = (uint32_t)sched_getcpu();
        CPU_ZERO(&one);
        CPU_SET((int)rig.reader.cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        start_monitor(&m);
        mailbox_ask(&rig.reader.mailbox, READER_ASK_WATERMARK);
        mailbox_set_overdue(rig.reader.overdue_fd, 1);
        stall_monitor_stop(&m);
        assert_int_equal(counter_get(&rig.reader.counters.failovers), 0);
        rig.reader.mailbox.overdue_fd = -1;
        tear_down();
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_guard),
                cmocka_unit_test(test_guard_at_home),
                cmocka_unit_test(test_backup),
                cmocka_unit_test(test_dismissed),
                cmocka_unit_test(test_commands),
                cmocka_unit_test(test_overdue),
                cmocka_unit_test(test_asked),
                cmocka_unit_test(test_in_time),
                cmocka_unit_test(test_nowhere_to_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
