/* Sums of stacks: exact, of what is distinct, and unchanged by what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/profile/flame.h"
#include "client/profile/folded.h"
#include "client/profile/pprof.h"
#include "client/profile/pprof-locations.h"
#include "client/profile/speedscope.h"
#include "client/profile/utf8.h"

static const ProfileValue samples_and_cycles[] = { { "samples", "count" }, { "cycles", "count" } };

static uint32_t frame(Profile *p, const char *symbol, FrameKind kind) {
        uint32_t id;

        assert_int_equal(profile_add_frame(p, &(ProfileFrame){ .symbol = symbol, .dso = "/bin/x", .kind = kind }, &id), 0);
        return id;
}

static uint32_t task(Profile *p, const char *comm, uint32_t tid) {
        uint32_t id;

        assert_int_equal(profile_add_task(p, &(ProfileTask){ .comm = comm, .pid = 1, .tid = tid }, &id), 0);
        return id;
}

/* main > loop > loop > read_[k] 3, main > loop 4, and nothing at all 5 */
static Profile *example(void) {
        Profile *p = profile_new(samples_and_cycles, 2);
        uint32_t t, stack[4];

        assert_non_null(p);
        t = task(p, "a", 1);
        stack[0] = frame(p, "main", FRAME_USER);
        stack[1] = stack[2] = frame(p, "loop", FRAME_USER);
        stack[3] = frame(p, "read", FRAME_KERNEL);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(profile_add(p, t, stack, 4, (uint64_t[]){ 1, 100 }, 50 + i), 0);
        assert_int_equal(profile_add(p, t, stack, 2, (uint64_t[]){ 4, 400 }, 0), 0);
        assert_int_equal(profile_add(p, task(p, "b", 2), NULL, 0, (uint64_t[]){ 5, 500 }, 40), 0);
        return p;
}

static void test_same_is_one(void **state) {
        Profile *p = example();
        uint32_t id = frame(p, "main", FRAME_USER);

        assert_int_equal(id, 0);
        assert_int_not_equal(frame(p, "main", FRAME_KERNEL), id);
        assert_int_equal(task(p, "a", 1), 0);
        assert_int_not_equal(task(p, "a", 3), 0);
        assert_int_equal(p->n_stacks, 3);
        for (size_t i = 0; i < 100000; i++)
                assert_int_equal(profile_add(p, 0, &id, 1, (uint64_t[]){ 1, 2 }, 0), 0);
        assert_int_equal(p->n_stacks, 4);
        assert_int_equal(p->n_stack_frames, 4 + 2 + 0 + 1);
        assert_int_equal(p->totals[0], 12 + 100000);
        assert_int_equal(p->totals[1], 1200 + 200000);
        assert_int_equal(p->first_nsec, 40);
        assert_int_equal(p->last_nsec, 52);
        profile_free(p);
}

/* Of one address: what was inlined there and the function itself, the same for the same, beside frames that are alone. */
static void test_pprof_locations(void **state) {
        Profile *p = profile_new(samples_and_cycles, 2);
        const uint32_t main_frame = frame(p, "main", FRAME_USER), outer = frame(p, "outer", FRAME_USER);
        const uint32_t middle = frame(p, "middle", FRAME_INLINED), innermost = frame(p, "innermost", FRAME_INLINED);
        const uint32_t stack[] = { main_frame, outer, middle, innermost, outer, innermost, outer }, first = innermost;
        const uint32_t *frames;
        PprofLocations l;
        uint64_t ids[2][4], id;
        uint32_t alone;
        size_t n;

        assert_int_equal(pprof_locations_init(&l, p), 0);
        for (size_t turn = 0; turn < 2; turn++) {
                const size_t expected[] = { 1, 3, 2, 1 };

                for (size_t i = 0, at = 0; i < 4; i++, at += n) {
                        assert_int_equal(pprof_locations_add(&l, p, &stack[at], 7 - at, &n, &ids[turn][i]), 0);
                        assert_int_equal(n, expected[i]);
                }
        }
        assert_memory_equal(ids[0], ids[1], sizeof(ids[0]));
        assert_int_equal(pprof_locations_end(&l, p), 1 + 4 + 2);
        assert_int_equal(pprof_locations_get(&l, p, ids[0][1], &alone, &frames), 3);
        assert_memory_equal(frames, &stack[1], 3 * sizeof(*frames));
        assert_int_equal(pprof_locations_get(&l, p, ids[0][2], &alone, &frames), 2);
        assert_memory_equal(frames, &stack[4], 2 * sizeof(*frames));
        assert_int_equal(pprof_locations_get(&l, p, ids[0][3], &alone, &frames), 1);
        assert_int_equal(*frames, outer);
        assert_int_equal(pprof_locations_get(&l, p, 1 + (uint64_t)middle, &alone, &frames), 0); /* is in no stack alone */
        assert_int_equal(pprof_locations_add(&l, p, &first, 1, &n, &id), 0); /* of a stack that was cut off there */
        assert_int_equal(n, 1);
        assert_int_equal(id, 1 + (uint64_t)innermost);
        pprof_locations_deinit(&l);
        profile_free(p);
}

static void test_function_sums(void **state) {
        Profile *p = example();
        FunctionSum *sums;

        assert_int_equal(profile_sum_functions(p, 0, &sums), 0);
        assert_int_equal(p->n_functions, 3);
        assert_int_equal(sums[0].self, 0);  /* main */
        assert_int_equal(sums[0].total, 7);
        assert_int_equal(sums[1].self, 4);  /* loop, which calls itself: once for each sample */
        assert_int_equal(sums[1].total, 7);
        assert_int_equal(sums[2].self, 3);  /* read */
        assert_int_equal(sums[2].total, 3);
        free(sums);
        profile_free(p);
}

static void test_refused(void **state) {
        Profile *p = example(), *one = profile_new(samples_and_cycles, 1);
        uint32_t deep[PROFILE_DEPTH_MAX + 1] = { 0 }, wrong = 99, id;
        char *name = malloc(PROFILE_TEXT_MAX + 1);
        char nowhere[16];
        FILE *out = fmemopen(nowhere, sizeof(nowhere), "w");

        assert_int_equal(profile_add(p, 0, deep, PROFILE_DEPTH_MAX + 1, (uint64_t[]){ 1, 1 }, 0), PROFILE_E_TOO_DEEP);
        assert_int_equal(profile_add(p, 0, &wrong, 1, (uint64_t[]){ 1, 1 }, 0), PROFILE_E_NO_ID);
        assert_int_equal(profile_add(p, 99, deep, 1, (uint64_t[]){ 1, 1 }, 0), PROFILE_E_NO_ID);
        assert_int_equal(profile_add(p, 0, deep, 1, (uint64_t[]){ 1, UINT64_MAX - 1199 }, 0), PROFILE_E_OVERFLOW);
        assert_int_equal(p->n_stacks, 3);
        assert_int_equal(p->totals[0], 12);
        assert_int_equal(profile_add(p, 0, deep, 1, (uint64_t[]){ 0, UINT64_MAX - 1200 }, 0), 0);
        assert_true(p->totals[1] == UINT64_MAX);
        assert_non_null(name);
        memset(name, 'x', PROFILE_TEXT_MAX);
        name[PROFILE_TEXT_MAX] = '\0';
        assert_int_equal(profile_add_frame(p, &(ProfileFrame){ .symbol = name }, &id), PROFILE_E_TOO_LONG);
        assert_non_null(out);
        assert_int_equal(pprof_write(out, p), PROFILE_E_OVERFLOW);
        assert_int_equal(flame_write(out, p, one, "x"), PROFILE_E_UNLIKE);
        assert_null(profile_new(samples_and_cycles, 0));
        assert_null(profile_new(samples_and_cycles, PROFILE_VALUES_MAX + 1));
        (void)fclose(out);
        free(name);
        profile_free(one);
        profile_free(p);
}

static void test_deepest(void **state) {
        Profile *p = profile_new(samples_and_cycles, 2);
        uint32_t deep[PROFILE_DEPTH_MAX];
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);

        assert_non_null(p);
        assert_non_null(out);
        for (size_t i = 0; i < PROFILE_DEPTH_MAX; i++)
                deep[i] = frame(p, "f", FRAME_USER);
        assert_int_equal(profile_add(p, task(p, "a", 1), deep, PROFILE_DEPTH_MAX, (uint64_t[]){ 7, 1 }, 0), 0);
        assert_int_equal(folded_write(out, p, 0), 0);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(n, strlen("a 7\n") + PROFILE_DEPTH_MAX * strlen(";f"));
        free(text);
        profile_free(p);
}

static void test_folded(void **state) {
        Profile *p = example();
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);

        assert_non_null(out);
        assert_int_equal(folded_write(out, p, 1), 0);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(text, "a;main;loop 400\na;main;loop;loop;read_[k] 300\nb 500\n");
        free(text);
        profile_free(p);
}

/* A disk that is full: each writer says so. */
static void test_full(void **state) {
        Profile *p = example();

        for (int i = 0; i < 4; i++) {
                FILE *out = fopen("/dev/full", "w");
                int r;

                assert_non_null(out);
                r = i == 0 ? folded_write(out, p, 0) : i == 1 ? pprof_write(out, p) : i == 2 ? speedscope_write(out, p, 0, "x")
                  : flame_write(out, p, NULL, "x");
                assert_true(r == -ENOSPC || r == -EIO);
                (void)fclose(out);
        }
        profile_free(p);
}

static void test_utf8(void **state) {
        static const char *const names[][2] = {
                { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5" },
                { "\xff", "\xee\xbf\xbf" },                         /* U+EFFF */
                { "\xc3", "\xee\xbf\x83" },                         /* cut off: U+EFC3 */
                { "\xc0\x80", "\xee\xbf\x80\xee\xbe\x80" },         /* overlong */
                { "\xed\xa0\x80", "\xee\xbf\xad\xee\xbe\xa0\xee\xbe\x80" }, /* a surrogate */
                { "\xee\xbf\xbf", "\xee\xbf\xae\xee\xbe\xbf\xee\xbe\xbf" }, /* U+EFFF itself */
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                char *text = utf8_export_string(names[i][0]);

                assert_string_equal(text, names[i][1]);
                free(text);
        }
}

/* ---- no memory ------------------------------------------------------------------------------------------------------------------ */

static unsigned left = UINT32_MAX; /* allocations until one fails */

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *memory, size_t n, size_t size);
char *__real_strdup(const char *string);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *memory, size_t n, size_t size);
char *__wrap_strdup(const char *string);

void *__wrap_calloc(size_t n, size_t size) {
        return left-- == 0 ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *memory, size_t n, size_t size) {
        return left-- == 0 ? NULL : __real_reallocarray(memory, n, size);
}

char *__wrap_strdup(const char *string) {
        return left-- == 0 ? NULL : __real_strdup(string);
}

/* Adds until something fails; 0 or -ENOMEM, and what was added is whole. */
static int add_until(Profile *p, uint64_t *ret_n) {
        uint32_t t, frames[3];
        int r = profile_add_task(p, &(ProfileTask){ .comm = "new", .container = "c", .tid = 9 }, &t);
        char name[8];

        for (uint32_t i = 0; r == 0 && i < 40; i++) {
                (void)snprintf(name, sizeof(name), "f%u", i);
                r = profile_add_frame(p, &(ProfileFrame){ .symbol = name, .file = "x.c", .line = i }, &frames[i % 3]);
                if (r == 0 && i >= 2)
                        r = profile_add(p, t, frames, 3, (uint64_t[]){ 1, 1 }, 0);
                *ret_n += r == 0 && i >= 2;
        }
        return r;
}

static void test_no_memory(void **state) {
        unsigned n_failed = 0;

        for (unsigned nth = 0;; nth++) {
                Profile *p = example();
                uint64_t n = 0, sum = 0;
                int r;

                left = nth;
                r = add_until(p, &n);
                left = UINT32_MAX;
                for (uint32_t i = 0; i < p->n_stacks; i++)
                        sum += p->sums[2 * i];
                assert_int_equal(sum, 12 + n);
                assert_int_equal(p->totals[0], 12 + n);
                n = 0;
                assert_true(r == 0 || (r == -ENOMEM && add_until(p, &n) == 0 && n == 38)); /* and goes on when there is some */
                profile_free(p);
                if (r == 0)
                        break;
                n_failed++;
        }
        assert_in_range(n_failed, 20, 1000);
}

static void test_no_memory_to_write(void **state) {
        Profile *p = example(), *older = example();
        unsigned n_failed = 0;

        for (unsigned nth = 0, last = 4; last > 0; nth++) {
                last = 0;
                for (int i = 0; i < 4; i++) {
                        FILE *out = fopen("/dev/null", "w");
                        int r;

                        assert_non_null(out);
                        left = nth;
                        r = i == 0 ? folded_write(out, p, 0) : i == 1 ? pprof_write(out, p) : i == 2 ? speedscope_write(out, p, 0, "x")
                          : flame_write(out, p, older, "x");
                        left = UINT32_MAX;
                        assert_true(r == 0 || r == -ENOMEM);
                        last += r != 0;
                        n_failed += r != 0;
                        (void)fclose(out);
                }
        }
        assert_in_range(n_failed, 20, 1000);
        profile_free(older);
        profile_free(p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_same_is_one),
                cmocka_unit_test(test_pprof_locations),
                cmocka_unit_test(test_function_sums),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_deepest),
                cmocka_unit_test(test_folded),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_utf8),
                cmocka_unit_test(test_no_memory),
                cmocka_unit_test(test_no_memory_to_write),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
