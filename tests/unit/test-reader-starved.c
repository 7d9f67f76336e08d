/* Two batches, both of them used: who is told what to do about it, and when. */
#include <stdlib.h>

#include "tests/unit/reader-checks.h"

static void test_starved(void **state) {
        uint64_t n = 0, arrived = 0, tail;
        Batch *b;
        Rig rig;

        rig_init(&rig, 1024 * 1024, 2);
        while (rig_put_number(&rig, 1, WHO(7, 0, n + 1), 2 * n, 8 * (n % 7)))
                n++;
        assert_int_equal(reader_drain(&rig.reader), READER_E_STARVED);
        tail = rig.page->data_tail;
        assert_true(tail < rig.page->data_head);
        assert_true(atomic_load(&rig.reader.needs_batch));
        assert_int_equal(counter_get(&rig.reader.counters.pool_waits), 1);
        assert_int_equal(reader_drain(&rig.reader), READER_E_STARVED); /* the record was not touched */
        assert_int_equal(rig.page->data_tail, tail);
        assert_int_equal(reader_push_batch(&rig.reader), READER_E_STARVED);

        while (arrived < n) { /* one batch back at a time */
                b = queue_pop(&rig.reader.full);
                if (!b) {
                        assert_int_equal(reader_drain(&rig.reader), 0);
                        assert_int_equal(reader_push_batch(&rig.reader), 0);
                        continue;
                }
                check_batch(b);
                for (size_t i = 0; i < b->n_entries; i++, arrived++)
                        check_item(b, &b->entries[i], &(Want){ arrived + 1, 2 * arrived >= 1000 ? 5 : 1, 11, 7, 0, 2 * arrived });
                queue_push(&rig.reader.free, b);
                (void)reader_drain(&rig.reader);
        }
        assert_int_equal(arrived, n);
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = n });
        rig_deinit(&rig);
}

/* Whoever has written to the reader does not wait until a dispatcher that is too slow has caught up. */
static void test_starved_with_command(void **state) {
        ReaderCommand *command = calloc(1, sizeof(*command));
        uint64_t n = 0, arrived = 0;
        Reader *r;
        Batch *b;
        Rig rig;

        rig_init(&rig, 1024 * 1024, 2);
        r = &rig.reader;
        while (rig_put_number(&rig, 1, WHO(7, 0, n + 1), 2 * n, 8 * (n % 7)))
                n++;
        assert_int_equal(reader_drain(r), READER_E_STARVED);
        assert_non_null(command);
        reader_post(r, command);
        assert_int_equal(reader_drain(r), 0);
        assert_int_equal(rig.page->data_tail, rig.page->data_head);
        assert_int_equal(reader_push_batch(r), 0);
        assert_true(r->n_more > 2 && r->n_more < READER_MORE_BATCHES);

        assert_ptr_equal(mailbox_pop(&r->mailbox), command);
        free(command);
        while ((b = queue_pop(&r->full))) {
                check_batch(b);
                arrived += b->n_entries;
                assert_true(queue_push(&r->free, b));
        }
        assert_int_equal(arrived, n);
        assert_int_equal(reader_push_batch(r), 0);
        assert_int_equal(r->n_more, 0);
        assert_int_equal(r->n_spare + 1, 2); /* and the one that was pushed */
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = n });
        rig_deinit(&rig);
}

/* So much as the kernel has room for; how much there is in all. */
static uint64_t fill(Rig *rig, uint64_t n) {
        while (rig_put_number(rig, 1, WHO(7, 0, n + 1), 2 * n, 8 * (n % 7)))
                n++;
        return n;
}

static void post(Reader *r) {
        ReaderCommand *command = calloc(1, sizeof(*command));

        assert_non_null(command);
        reader_post(r, command);
}

static void forget_command(Reader *r) {
        ReaderCommand *command = mailbox_pop(&r->mailbox);

        assert_non_null(command);
        free(command);
}

static uint64_t give_back_one(Reader *r) {
        Batch *b = queue_pop(&r->full);
        uint64_t n;

        assert_non_null(b);
        check_batch(b);
        n = b->n_entries;
        assert_true(queue_push(&r->free, b));
        return n;
}

/*
 * More commands than batches come back for, and whatever room there is in the ring is used at once: the reader gets to its end
 * all the same, with as many batches as a full ring takes.
 */
static void test_commands_without_end(void **state) {
        uint64_t n = 0, arrived = 0, held;
        unsigned n_back = 0, n_commands = 0;
        Reader *r;
        Rig rig;
        int error;

        rig_init(&rig, 1024 * 1024, 2);
        r = &rig.reader;
        for (error = 0; error == 0; n_commands += error == 0) {
                n = fill(&rig, n);
                if (n_commands > 0)
                        forget_command(r);
                post(r);
                error = reader_drain(r);
        }
        assert_int_equal(error, READER_E_STARVED);
        assert_true(n_commands > 1 && r->n_more == READER_MORE_BATCHES);
        held = rig.page->data_tail;
        do {
                assert_true(n_back++ < READER_MORE_BATCHES / n_commands + 2);
                arrived += give_back_one(r);
                n = fill(&rig, n);
                error = reader_drain(r);
                assert_true(error == 0 || rig.page->data_tail == held);
        } while (error != 0);
        assert_int_equal(rig.page->data_tail, rig.page->data_head);
        forget_command(r);

        /* and then it is as before */
        n = fill(&rig, n);
        while (arrived < n) {
                if (queue_is_empty(&r->full))
                        assert_int_equal(reader_push_batch(r), 0);
                arrived += give_back_one(r);
                (void)reader_drain(r);
        }
        assert_int_equal(arrived, n);
        assert_int_equal(rig.page->data_tail, rig.page->data_head);
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = n });
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_starved),
                cmocka_unit_test(test_starved_with_command),
                cmocka_unit_test(test_commands_without_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
