/*
 * Adding, removing and switching events on a played kernel: each is done whole or, whichever call of the kernel is refused, not
 * at all.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"

static const char *const both[] = { RIG_TRACEPOINT, "page-faults" };
static const char *const first[] = { "minor-faults" };
static const char *const off[] = { "!minor-faults" };

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int prepare_nothing(Rig *rig) {
        return 0;
}

static int prepare_one(Rig *rig) {
        return rig_add(rig, first, 1);
}

static int prepare_disabled(Rig *rig) {
        return rig_add(rig, off, 1);
}

static int prepare_both(Rig *rig) {
        return rig_add(rig, both, 2);
}

static int add_both(Rig *rig) {
        return rig_add(rig, both, 2);
}

static int remove_tracepoint(Rig *rig) {
        return rig_remove(rig, RIG_TRACEPOINT);
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_add_and_remove(void **state) {
        Rig rig;

        rig_start(&rig);
        rig_check_carriers(&rig, false);
        assert_int_equal(add_both(&rig), 0);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        rig_check_opened(&rig, "page-faults", true);
        rig_check_carriers(&rig, true);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        played_occur(5);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 5 * RIG_CPUS);
        assert_int_equal(rig_remove(&rig, RIG_TRACEPOINT), 0);
        assert_null(rig_find(&rig, RIG_TRACEPOINT));
        rig_check_opened(&rig, "page-faults", true);
        assert_int_equal(rig_occurred(&rig, "page-faults"), 5 * RIG_CPUS);
        assert_int_equal(rig_remove(&rig, "page-faults"), 0);
        rig_check_carriers(&rig, false);
        assert_int_equal(played_count_open(), RIG_CPUS);
        rig_stop(&rig);
}

static void test_enable_and_disable(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_disabled(&rig), 0);
        rig_check_opened(&rig, "minor-faults", false);
        rig_check_carriers(&rig, false);
        played_occur(2);
        assert_int_equal(rig_enable_all(&rig), 0);
        rig_check_opened(&rig, "minor-faults", true);
        rig_check_carriers(&rig, true);
        played_occur(3);
        assert_int_equal(rig_disable_all(&rig), 0);
        rig_check_opened(&rig, "minor-faults", false);
        rig_check_carriers(&rig, false);
        played_occur(4);
        assert_int_equal(rig_occurred(&rig, "minor-faults"), 3 * RIG_CPUS);
        rig_stop(&rig);
}

/* What cannot be done is known before anything is opened. */
static void test_names(void **state) {
        static const char *const twice[] = { "page-faults", "page-faults" };
        Rig rig;

        rig_start(&rig);
        assert_int_equal(rig_add(&rig, twice, 2), REFUSED_EXISTS);
        assert_int_equal(played_count_open(), RIG_CPUS);
        assert_int_equal(add_both(&rig), 0);
        assert_int_equal(add_both(&rig), REFUSED_EXISTS);
        assert_string_equal(rig.e.reason, "exists");
        assert_int_equal(rig_remove(&rig, "minor-faults"), REFUSED_NOT_FOUND);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        rig_stop(&rig);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

static void test_open_fails(void **state) {
        static const int errors[] = { EMFILE, ENOMEM, EACCES, EBUSY };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                assert_int_equal(rig_fail_each(PLAYED_OPEN, errors[i], prepare_one, add_both), 2 * RIG_CPUS);
}

/* Redirected and asked for its id each, and enabled twice; with the first ones also the carriers. */
static void test_ioctl_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_one, add_both), 2 * RIG_CPUS * 4);
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_nothing, add_both), 2 * RIG_CPUS * 4 + 2 * RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_disabled, rig_enable_all), 2 * RIG_CPUS * 2);
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_both, rig_disable_all), 3 * RIG_CPUS * 2);
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_both, remove_tracepoint), RIG_CPUS * 2);
}

/* The process ends; what was opened is closed all the same. That no memory is left is for the sanitizer. */
static void test_without_memory(void **state) {
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_one, add_both) > 20);
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_disabled, rig_enable_all) > 5);
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_both, rig_disable_all) > 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add_and_remove),
                cmocka_unit_test(test_enable_and_disable),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_open_fails),
                cmocka_unit_test(test_ioctl_fails),
                cmocka_unit_test(test_without_memory),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
