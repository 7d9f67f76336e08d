/* Names of threads as a recording has them: what is new or has changed is said once, beside a plain table, and of whom is forgotten again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/recorder/task-names.h"

#define TIDS 5000
#define STEPS 400000

static bool take(TaskNames *t, uint32_t tid, const char *comm) {
        return task_names_take(t, tid, (perfd_text){ .bytes = comm, .length = strlen(comm) });
}

static void test_names(void **state) {
        TaskNames t = { .list = NULL };

        (void)state;
        task_names_forget(&t, 7); /* of nobody */
        assert_false(take(&t, 0, "swapper"));
        assert_true(take(&t, 7, "worker"));
        assert_false(take(&t, 7, "worker"));
        assert_true(take(&t, 7, "work"));
        assert_true(take(&t, 8, "work"));
        assert_true(take(&t, 7, ""));
        task_names_forget(&t, 7);
        assert_false(take(&t, 8, "work"));
        assert_true(take(&t, 7, ""));
        assert_true(take(&t, 9, "longer than the kernel's"));
        assert_false(take(&t, 9, "longer than the others"));
        task_names_deinit(&t);
        task_names_deinit(&t);
}

/* Numbers that lie close together and far apart, taken and forgotten in any order. */
static void test_many(void **state) {
        static char known[TIDS]; /* 0: no name; else its letter */
        TaskNames t = { .list = NULL };
        size_t n = 0;

        (void)state;
        srand(1);
        for (size_t i = 0; i < STEPS; i++) {
                const size_t at = (size_t)rand() % TIDS;
                const uint32_t tid = (uint32_t)(1 + at % 50 + at / 50 * 32768);
                const char letter = (char)('a' + rand() % 2), comm[2] = { letter, '\0' };

                if (rand() % 3 == 0) {
                        n -= known[at] != 0;
                        known[at] = 0;
                        task_names_forget(&t, tid);
                } else {
                        assert_int_equal(take(&t, tid, comm), known[at] != letter);
                        n += known[at] == 0;
                        known[at] = letter;
                }
                assert_int_equal(t.n, n);
        }
        assert_in_range(t.room, n, 4 * TIDS);
        task_names_deinit(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_many) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
