/* What a live change makes of an event: another one with the same id and the same numbers, for as long as anybody has either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/model/event.h"

static void test_changed(void **state) {
        EventSpec spec = { .event = strdup("sched:sched_switch"), .name = strdup("switch"), .filter = strdup("prev_pid == 1"),
                           .period = 1 }, other = EVENT_SPEC_NULL;
        Event *first = event_new(7, &spec, NULL, 3), *second, *third;

        assert_non_null(first);
        assert_int_equal(event_add_member(first, "sched:sched_switch", "events", 1), 0);
        first->exact = true;
        first->period = 1;
        assert_int_equal(event_spec_copy(&first->spec, &other), 0);
        other.period = 10;
        second = event_new_changed(first, &other);
        assert_non_null(second);
        assert_null(other.name);
        second->exact = false;
        second->period = 10;

        assert_int_equal(second->id, 7);
        assert_ptr_equal(second->counters, first->counters);
        assert_ptr_equal(second->closed_reads, first->closed_reads);
        assert_ptr_equal(second->members, first->members);
        assert_int_equal(first->spec.period, 1);
        assert_true(first->exact && first->period == 1);
        assert_string_equal(second->spec.filter, "prev_pid == 1");

        assert_int_equal(event_spec_copy(&second->spec, &other), 0);
        third = event_new_changed(second, &other);
        assert_non_null(third);
        assert_ptr_equal(third->origin, first); /* not a chain of all that it was */
        event_unref(second);
        event_unref(first);
        counter_add(&third->counters[2].delivered, 5);
        assert_int_equal(counter_get(&third->counters[2].delivered), 5);
        assert_string_equal(third->members[0].event, "sched:sched_switch");
        assert_null(event_unref(third));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_changed) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
