/* Cuts: one position of the ring for all numbers of the events that they are of. */
#include <fcntl.h>

#include "tests/unit/reader-checks.h"

/* One place of the ring for all numbers; /dev/zero is an event that says it counted nothing. */
static void test_cut(void **state) {
        _cleanup_close_ int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        const EventCut *cut;
        Batch *b;
        Rig rig;

        rig_init(&rig, 256 * 1024, 2);
        assert_true(zero >= 0);
        rig.reader.carrier_fd = zero;
        for (size_t i = 0; i < rig.reader.snapshot->cpus[0].n_streams; i++)
                rig.reader.snapshot->cpus[0].streams[i].fd = zero;
        rig_put_long(&rig, WHO(7, 0, 5), 40000);
        rig_put_number(&rig, 1, WHO(7, 0, 10), 2, 0);
        rig_put_number(&rig, 2, WHO(7, 0, 20), 2, 0);
        rig_put_number(&rig, 4, WHO(7, 0, 30), 2, 0);
        rig_put_comm(&rig, WHO(7, 7, 50), "a");
        assert_int_equal(reader_cut(&rig.reader, NULL), 0);
        cut = &rig_counters(&rig, RIG_NUMBERS)->cut;
        assert_true(cut->is_consistent && cut->delivered == 1 && cut->duplicates == 1 && cut->filtered == 0);
        cut = &rig_counters(&rig, RIG_UNWANTED)->cut;
        assert_true(cut->is_consistent && cut->delivered == 0 && cut->filtered == 1);
        cut = &rig_counters(&rig, RIG_LONG)->cut;
        assert_true(cut->is_consistent && cut->lost[LOSS_BATCH_POOL] == 1);
        assert_int_equal(rig.reader.counters.cut_records, 5);
        assert_int_equal(rig.reader.counters.cut_samples, 4);
        assert_int_equal(rig.reader.counters.cut_side_records, 1);

        assert_int_equal(reader_push_batch(&rig.reader), 0);
        rig_put_number(&rig, 1, WHO(7, 0, 60), 2, 0);
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        rig_put_number(&rig, 1, WHO(7, 0, 70), 2, 0);
        assert_int_equal(reader_cut(&rig.reader, NULL), READER_E_STARVED); /* to be tried again: no cut goes past a record */
        assert_int_equal(rig_counters(&rig, RIG_NUMBERS)->cut.delivered, 1);
        while ((b = queue_pop(&rig.reader.full)))
                queue_push(&rig.reader.free, b);
        assert_int_equal(reader_cut(&rig.reader, NULL), 0);
        assert_int_equal(rig_counters(&rig, RIG_NUMBERS)->cut.delivered, 3);
        rig_deinit(&rig);
}

/* Only the fds of its scope are read; the cuts of other events stay what they were. */
static void test_cut_of_some(void **state) {
        _cleanup_(cut_scope_unrefp) CutScope *scope = cut_scope_new(2);
        _cleanup_close_ int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        Rig rig;

        rig_init(&rig, 256 * 1024, 2);
        rig.reader.carrier_fd = zero; /* the ring's numbers are always taken */
        for (size_t i = 0; i < rig.reader.snapshot->cpus[0].n_streams; i++) {
                SnapshotStream *stream = &rig.reader.snapshot->cpus[0].streams[i];
                stream->fd = stream->event == RIG_NUMBERS ? zero : -1; /* which no read(2) would survive */
        }
        cut_scope_add(scope, 1000000);
        cut_scope_add(scope, rig.reader.snapshot->events[RIG_NUMBERS].event->id);
        cut_scope_finish(scope);
        rig_put_number(&rig, 1, WHO(7, 0, 10), 2, 0);
        rig_put_number(&rig, 4, WHO(7, 0, 30), 2, 0);
        assert_int_equal(reader_cut(&rig.reader, scope), 0);
        assert_true(rig_counters(&rig, RIG_NUMBERS)->cut.is_consistent && rig_counters(&rig, RIG_NUMBERS)->cut.delivered == 1);
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_UNWANTED)->filtered), 1);
        assert_int_equal(rig_counters(&rig, RIG_UNWANTED)->cut.filtered, 0);
        assert_int_equal(rig.reader.counters.cut_records, 2);
        assert_true(cut_scope_has(scope, 1000000) && !cut_scope_has(scope, 999999) && cut_scope_has(NULL, 999999));
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_cut_of_some),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
