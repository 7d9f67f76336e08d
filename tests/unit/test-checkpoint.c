/* When others have their turn in the middle of long work, and on whose thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "daemon/base/checkpoint.h"

typedef struct Others {
        unsigned n;
        int answer;
} Others;

static int serve(void *userdata, Explanation *e) {
        Others *o = userdata;

        o->n++;
        return o->answer > 0 ? refuse(e, REFUSED_CANCELLED, "cancelled", "enough") : o->answer;
}

static void test_nobody(void **state) {
        assert_int_equal(checkpoint(NULL), 0);
}

static void test_interval(void **state) {
        nsec_t begin = clock_now(CLOCK_MONOTONIC);
        Others o = { .n = 0 };

        checkpoint_set(serve, &o);
        while (o.n < 4)
                assert_int_equal(checkpoint(NULL), 0);
        assert_true(clock_now(CLOCK_MONOTONIC) - begin >= 3 * CHECKPOINT_INTERVAL); /* the first is at once */
        checkpoint_set(NULL, NULL);
        assert_int_equal(checkpoint(NULL), 0);
        assert_int_equal(o.n, 4);
}

static void test_answers(void **state) {
        Explanation e = EXPLANATION_NULL;
        Others o = { .answer = 1 };

        checkpoint_set(serve, &o);
        assert_int_equal(checkpoint(&e), REFUSED_CANCELLED);
        assert_string_equal(e.text, "enough");
        o.answer = -ENOMEM;
        checkpoint_set(serve, &o);
        assert_int_equal(checkpoint(&e), -ENOMEM);
        checkpoint_set(NULL, NULL);
}

static void *pass(void *userdata) {
        assert_int_equal(checkpoint(NULL), 0);
        return NULL;
}

static void test_other_thread(void **state) {
        Others o = { .answer = -EIO };
        pthread_t thread;

        checkpoint_set(serve, &o);
        assert_int_equal(pthread_create(&thread, NULL, pass, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(o.n, 0);
        checkpoint_set(NULL, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nobody),
                cmocka_unit_test(test_interval),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_other_thread),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
