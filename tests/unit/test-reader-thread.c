/*
 * A reader's thread and the little that it exchanges with others: asks, batches, commands. What is asked is answered, also
 * when it was asked while there was no batch to answer with; every wait here is for something that has to come.
 */
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "tests/unit/reader-checks.h"

#define PATIENCE_MS 20000
#ifndef HAND_OVERS
#define HAND_OVERS 20000u
#endif

static unsigned first_cpu(void) {
        cpu_set_t set;
        unsigned cpu = 0;

        assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
        while (!CPU_ISSET(cpu, &set))
                cpu++;
        return cpu;
}

static void start(Rig *rig) {
        Snapshot *s = TAKE_PTR(rig->reader.snapshot);

        rig->reader.cpu = first_cpu();
        rig->reader.acknowledge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_true(rig->reader.acknowledge_fd >= 0);
        assert_int_equal(reader_start(&rig->reader, s), 0);
}

static void wait_readable(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

/* As the dispatcher does. */
static Batch *wait_batch(Rig *rig) {
        Batch *b;

        while (!(b = queue_pop(&rig->reader.full))) {
                doorbell_arm(&rig->dispatching.bell);
                if (queue_is_empty(&rig->reader.full))
                        wait_readable(rig->dispatching.bell.waiter);
                (void)doorbell_wait(&rig->dispatching.bell, 0);
        }
        check_batch(b);
        return b;
}

static void give_back(Rig *rig, Batch *b) {
        Reader *r = &rig->reader;

        assert_true(queue_push(&r->free, b));
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&r->needs_batch, memory_order_relaxed)) {
                atomic_store_explicit(&r->needs_batch, false, memory_order_relaxed);
                mailbox_ask(&r->mailbox, READER_ASK_BATCHES);
        }
}

/* Until it has said that it waits for a batch. */
static void wait_starving(Rig *rig) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE_MS * NSEC_PER_MSEC;

        while (!atomic_load(&rig->reader.needs_batch)) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
}

static void post(Rig *rig, ReaderCommandKind kind, uint64_t sequence, Snapshot *snapshot) {
        ReaderCommand *command = calloc(1, sizeof(*command));

        assert_non_null(command);
        *command = (ReaderCommand){ .kind = kind, .sequence = sequence, .snapshot = snapshot };
        reader_post(&rig->reader, command);
}

static void wait_acknowledged(Rig *rig, uint64_t sequence) {
        uint64_t count;

        wait_readable(rig->reader.acknowledge_fd);
        assert_int_equal(read(rig->reader.acknowledge_fd, &count, sizeof(count)), sizeof(count));
        if (count != 1) /* it says too when it has nothing left to do but to end */
                assert_true(count == 2 && reader_is_at_end(&rig->reader));
        assert_int_equal(atomic_load(&rig->reader.acknowledged), sequence);
}

static void stop(Rig *rig, uint64_t sequence) {
        post(rig, READER_STOP, sequence, NULL);
        wait_acknowledged(rig, sequence);
        assert_int_equal(reader_join(&rig->reader), 0);
        close_fd(rig->reader.acknowledge_fd);
}

/* Both batches out, with one item each. */
static void take_all(Rig *rig, Batch *taken[2]) {
        for (unsigned i = 0; i < 2; i++) {
                rig_put_number(rig, 1, WHO(7, 0, 10 + i), 2, 0);
                mailbox_ask(&rig->reader.mailbox, READER_ASK_BATCHES); /* wakes it, as its ring's watermark would */
                taken[i] = wait_batch(rig);
                assert_int_equal(taken[i]->n_entries, 1);
                assert_int_equal(taken[i]->entries[0].time, 10 + i);
                assert_true(taken[i]->watermark > 0);
        }
        assert_true(taken[1]->watermark == 11 || taken[1]->watermark > taken[0]->watermark);
}

static void test_asks(void **state) {
        Batch *taken[2], *answer;
        nsec_t began;
        Rig rig;

        rig_init(&rig, 64 * 1024, 2);
        start(&rig);
        for (int nothing_to_read = 0; nothing_to_read < 2; nothing_to_read++) {
                take_all(&rig, taken);
                if (!nothing_to_read)
                        rig_put_number(&rig, 2, WHO(7, 0, 20), 2, 0); /* needs a batch to be looked at, but not in the end */
                began = clock_now(CLOCK_MONOTONIC);
                mailbox_ask(&rig.reader.mailbox, READER_ASK_WATERMARK);
                wait_starving(&rig);
                give_back(&rig, taken[0]);
                answer = wait_batch(&rig);
                assert_ptr_equal(answer, taken[0]);
                assert_int_equal(answer->n_entries, 0);
                assert_int_equal(answer->mask, 0);
                assert_true(answer->watermark >= began);
                give_back(&rig, answer);
                give_back(&rig, taken[1]);
        }
        stop(&rig, 1);
        rig_deinit(&rig);
}

/* With one batch or the other, and one ask after the other: each gets one answer, and each answer says more. */
static void test_many_asks(void **state) {
        nsec_t last = 0;
        Rig rig;

        rig_init(&rig, 64 * 1024, 2);
        start(&rig);
        for (unsigned i = 0; i < HAND_OVERS; i++) {
                Batch *b;

                mailbox_ask(&rig.reader.mailbox, READER_ASK_WATERMARK);
                b = wait_batch(&rig);
                assert_true(b->watermark > last);
                last = b->watermark;
                give_back(&rig, b);
        }
        assert_null(queue_pop(&rig.reader.full));
        stop(&rig, 1);
        rig_deinit(&rig);
}

/* A snapshot holds from one place of the ring on, and the reader gets there, though no batch of the pool comes back. */
static void test_adopt(void **state) {
        Snapshot *next;
        Batch *taken[2], *b;
        Rig rig;

        rig_init(&rig, 64 * 1024, 2);
        next = rig_snapshot_new(&rig, 2);
        start(&rig);
        take_all(&rig, taken);
        rig_put_number(&rig, 1, WHO(7, 0, 20), 2, 0);
        post(&rig, READER_SET_SNAPSHOT, 1, next);
        wait_acknowledged(&rig, 1);
        b = wait_batch(&rig);
        assert_int_equal(b->generation, 1);
        assert_int_equal(b->n_entries, 1);
        assert_int_equal(b->entries[0].time, 20);
        give_back(&rig, b);
        give_back(&rig, taken[0]);
        give_back(&rig, taken[1]);

        rig_put_number(&rig, 1, WHO(7, 0, 30), 2, 0);
        mailbox_ask(&rig.reader.mailbox, READER_ASK_BATCHES);
        b = wait_batch(&rig);
        assert_int_equal(b->generation, 2);
        assert_int_equal(b->n_entries, 1);
        give_back(&rig, b);
        stop(&rig, 2);
        assert_ptr_equal(rig.reader.snapshot, next);
        rig_deinit(&rig);
}

/* What is in the ring when it is stopped is in the last batch. */
static void test_stop(void **state) {
        Batch *taken[2], *b;
        Rig rig;

        rig_init(&rig, 64 * 1024, 2);
        start(&rig);
        take_all(&rig, taken);
        for (unsigned i = 0; i < 100; i++)
                rig_put_number(&rig, 1, WHO(7, 0, 100 + i), 2, 0);
        post(&rig, READER_STOP, 1, NULL);
        wait_acknowledged(&rig, 1);
        assert_int_equal(reader_join(&rig.reader), 0);
        b = queue_pop(&rig.reader.full);
        assert_non_null(b);
        assert_int_equal(b->n_entries, 100);
        assert_int_equal(rig.page->data_tail, rig.page->data_head);
        give_back(&rig, b);
        give_back(&rig, taken[0]);
        give_back(&rig, taken[1]);
        rig_check_sums(&rig);
        close_fd(rig.reader.acknowledge_fd);
        rig_deinit(&rig);
}

/* Half-made ones, and one whose thread ended in the middle of a command. */
static void test_deinit(void **state) {
        Reader nothing = { .carrier_fd = -1, .mailbox = MAILBOX_NULL };
        Rig rig;

        reader_deinit(&nothing);
        rig_init(&rig, 64 * 1024, 2);
        post(&rig, READER_SET_SNAPSHOT, 1, rig_snapshot_new(&rig, 2));
        rig.reader.command = mailbox_pop(&rig.reader.mailbox);
        post(&rig, READER_SET_SNAPSHOT, 2, rig_snapshot_new(&rig, 3));
        rig_put_number(&rig, 1, WHO(7, 0, 1), 2, 0);
        assert_int_equal(reader_drain(&rig.reader), 0); /* a batch that is begun */
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_asks),
                cmocka_unit_test(test_many_asks),
                cmocka_unit_test(test_adopt),
                cmocka_unit_test(test_stop),
                cmocka_unit_test(test_deinit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
