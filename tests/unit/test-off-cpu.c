/* How long threads were out: exact sums by stack, of switches that come, that are missing, and that never come. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/profile/off-cpu.h"
#include "tests/unit/failing-allocations.h"

typedef struct Rig {
        Profile *profile;
        OffCpu *off;
        uint32_t tasks[4], frames[4]; /* threads 0 to 3; main, read, wait, write */
} Rig;

static Rig rig_init(void) {
        static const char *const names[] = { "main", "read", "wait", "write" };
        Rig r = { .profile = profile_new(&(ProfileValue){ "off-cpu", "nanoseconds" }, 1) };

        assert_non_null(r.profile);
        for (uint32_t i = 0; i < 4; i++) {
                assert_int_equal(profile_add_task(r.profile, &(ProfileTask){ .comm = "t", .pid = i, .tid = i }, &r.tasks[i]), 0);
                assert_int_equal(profile_add_frame(r.profile, &(ProfileFrame){ .symbol = names[i] }, &r.frames[i]), 0);
        }
        r.off = off_cpu_new(r.profile);
        assert_non_null(r.off);
        return r;
}

static void rig_deinit(Rig *r) {
        off_cpu_free(r->off);
        profile_free(r->profile);
}

/* prev goes in main > frames[leaf], or in nothing at all with leaf 0 */
static int give(Rig *r, uint64_t time, uint32_t prev, uint32_t next, uint32_t leaf) {
        const uint32_t stack[] = { r->frames[0], r->frames[leaf] };

        return off_cpu_add(r->off, &(OffCpuSwitch){ .time = time, .prev = prev, .next = next, .task = r->tasks[prev & 3], .frames = stack,
                                                    .n_frames = leaf > 0 ? 2 : 0 });
}

static void end_thread(Rig *r, uint64_t time, uint32_t prev, uint32_t next) {
        assert_int_equal(off_cpu_add(r->off, &(OffCpuSwitch){ .time = time, .prev = prev, .next = next, .has_ended = true,
                                                              .task = r->tasks[prev & 3] }), 0);
}

/* Of a thread, with that frame as the innermost. */
static uint64_t sum_of(const Rig *r, uint32_t thread, uint32_t leaf) {
        const Profile *p = r->profile;
        uint64_t sum = 0;

        for (uint32_t i = 0; i < p->n_stacks; i++) {
                const Stack *s = &p->stacks[i];
                const uint32_t innermost = s->n_frames > 0 ? p->stack_frames[s->first + s->n_frames - 1] : ID_NONE;

                if (s->task == r->tasks[thread] && innermost == (leaf > 0 ? r->frames[leaf] : ID_NONE))
                        sum += p->sums[i];
        }
        return sum;
}

static void assert_counts(const Rig *r, OffCpuCounts expected) {
        assert_memory_equal(off_cpu_counts(r->off), &expected, sizeof(expected));
}

static void test_sums(void **state) {
        Rig r = rig_init();

        assert_int_equal(give(&r, 1000, 1, 2, 1), 0); /* 1 out in read; 2 was out before: since when is not known */
        assert_int_equal(give(&r, 1010, 2, 1, 2), 0); /* 1 back after 10; 2 out in wait */
        assert_int_equal(give(&r, 1100, 1, 2, 3), 0); /* 2 back after 90; 1 out in write */
        assert_int_equal(give(&r, 1101, 2, 0, 2), 0); /* 2 out in wait, and nobody runs */
        assert_int_equal(give(&r, 1111, 0, 2, 0), 0); /* 2 back after 10 */
        assert_int_equal(give(&r, 1200, 2, 1, 0), 0); /* 1 back after 100; 2 out in no known place */
        assert_int_equal(give(&r, 1207, 3, 2, 1), 0); /* another CPU: 2 back after 7; 3 out in read */
        assert_int_equal(off_cpu_end(r.off), 0);      /* 3 is out since the last switch */
        assert_int_equal(sum_of(&r, 1, 1), 10);
        assert_int_equal(sum_of(&r, 1, 3), 100);
        assert_int_equal(sum_of(&r, 2, 2), 90 + 10);
        assert_int_equal(sum_of(&r, 2, 0), 7);
        assert_int_equal(r.profile->totals[0], 217);
        assert_counts(&r, (OffCpuCounts){ .n_added = 5, .n_open = 1 });
        rig_deinit(&r);
}

static void test_end(void **state) {
        Rig r = rig_init();

        assert_int_equal(give(&r, 100, 1, 0, 1), 0);
        assert_int_equal(give(&r, 150, 2, 0, 2), 0);
        end_thread(&r, 160, 3, 0); /* has ended: it does not wait for anything */
        assert_int_equal(give(&r, 180, 0, 2, 0), 0);
        assert_int_equal(give(&r, 200, 2, 0, 2), 0);
        assert_int_equal(give(&r, 260, 0, 3, 0), 0); /* another thread with the number of the one that ended */
        assert_int_equal(off_cpu_end(r.off), 0);
        assert_int_equal(sum_of(&r, 1, 1), 160);
        assert_int_equal(sum_of(&r, 2, 2), 30 + 60);
        assert_int_equal(r.profile->totals[0], 250);
        assert_counts(&r, (OffCpuCounts){ .n_added = 1, .n_open = 2, .open_nsec = 160 + 60 });
        assert_int_equal(off_cpu_end(r.off), 0); /* nobody is out any more */
        assert_int_equal(r.profile->totals[0], 250);
        rig_deinit(&r);
}

static void test_ended_thread(void **state) {
        Rig r = rig_init();

        assert_int_equal(give(&r, 10, 1, 0, 1), 0);
        assert_int_equal(give(&r, 15, 0, 1, 0), 0);
        end_thread(&r, 20, 1, 0);
        assert_int_equal(give(&r, 90, 0, 1, 0), 0); /* a new thread of that number: it was never out */
        assert_int_equal(off_cpu_end(r.off), 0);
        assert_int_equal(r.profile->totals[0], 5);
        assert_counts(&r, (OffCpuCounts){ .n_added = 1 });
        rig_deinit(&r);
}

static void test_missing(void **state) {
        Rig r = rig_init();

        assert_int_equal(give(&r, 100, 1, 0, 1), 0);
        assert_int_equal(give(&r, 300, 1, 0, 2), 0); /* it must have run between: for how long is not known */
        assert_int_equal(give(&r, 310, 0, 1, 0), 0);
        assert_int_equal(give(&r, 400, 2, 0, 1), 0);
        assert_int_equal(give(&r, 390, 0, 2, 0), 0); /* before it went */
        assert_int_equal(off_cpu_end(r.off), 0);
        assert_int_equal(sum_of(&r, 1, 1), 0);
        assert_int_equal(sum_of(&r, 1, 2), 10);
        assert_int_equal(r.profile->totals[0], 10);
        assert_counts(&r, (OffCpuCounts){ .n_added = 1, .n_missed = 1, .n_backwards = 1 });
        rig_deinit(&r);
}

static void test_many(void **state) {
        const uint32_t n = 100000;
        Rig r = rig_init();

        for (uint32_t i = 1; i <= n; i++)
                assert_int_equal(give(&r, i, i, 0, 1), 0);
        for (uint32_t i = 1; i <= n; i++)
                assert_int_equal(give(&r, n + i, 0, i, 0), 0);
        assert_int_equal(off_cpu_end(r.off), 0);
        assert_int_equal(r.profile->n_stacks, 4);
        assert_int_equal(r.profile->totals[0], (uint64_t)n * n);
        assert_counts(&r, (OffCpuCounts){ .n_added = n });
        rig_deinit(&r);
}

/* Whichever allocation fails, the sums are those of the switches that were taken. */
static void test_no_memory(void **state) {
        unsigned n_failed = 0;

        for (unsigned nth = 1;; nth++) {
                Rig r = rig_init();
                int code = 0;

                until_failure = nth;
                for (uint32_t i = 1; code == 0 && i < 200; i++)
                        code = give(&r, i, i, i - 1, 1 + i % 3);
                if (code == 0)
                        code = off_cpu_end(r.off);
                until_failure = 0;
                assert_true(code == 0 || code == -ENOMEM);
                assert_int_equal(off_cpu_end(r.off), 0);
                assert_int_equal(r.profile->totals[0], off_cpu_counts(r.off)->n_added + off_cpu_counts(r.off)->open_nsec);
                rig_deinit(&r);
                if (code == 0)
                        break;
                n_failed++;
        }
        assert_in_range(n_failed, 200, 10000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sums),
                cmocka_unit_test(test_end),
                cmocka_unit_test(test_ended_thread),
                cmocka_unit_test(test_missing),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_no_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
