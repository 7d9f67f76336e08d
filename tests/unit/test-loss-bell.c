/* TargetRef a loss wakes: main, once, and only if it sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>

#include "daemon/model/loss-bell.h"

static bool is_woken(const LossBell *b) {
        struct pollfd p = { .fd = b->fd, .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

static void test_bell(void **state) {
        LossBell b = LOSS_BELL_NULL;

        loss_bell_note(NULL);
        assert_int_equal(loss_bell_init(&b), 0);
        loss_bell_note(&b); /* main is at work, and looks itself */
        assert_false(is_woken(&b));
        assert_false(loss_bell_arm(&b));
        assert_true(loss_bell_take(&b));
        assert_false(loss_bell_take(&b));
        assert_true(loss_bell_arm(&b));
        assert_false(is_woken(&b));
        for (int i = 0; i < 3; i++)
                loss_bell_note(&b);
        assert_true(is_woken(&b));
        loss_bell_quiet(&b);
        loss_bell_note(&b);
        assert_false(is_woken(&b));
        assert_true(loss_bell_take(&b));
        loss_bell_note(&b); /* behind the look: the next one is for it */
        assert_true(loss_bell_take(&b));
        loss_bell_quiet(&b);
        loss_bell_deinit(&b);
        loss_bell_deinit(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_bell) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
