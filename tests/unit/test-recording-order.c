/* Orders of recordings in memory: what is given in them is checked by what they promise. */
#include <errno.h>
#include <zstd.h>

#include "tests/unit/ordered-recording.h"

static Built built;
static Sequence given;

typedef enum Rounds {
        ROUNDS_NONE,
        ROUNDS_KEPT,   /* as two CPUs are read in turns */
        ROUNDS_BROKEN,
} Rounds;

typedef struct Shape {
        size_t n;
        uint64_t n_times; /* how many different ones: few make ties */
        Rounds rounds;
        bool swap;
        size_t own_size;  /* of one in 1,000, without a time; 0: none */
} Shape;

/* A round has the times [1, 2) * n_times / 100 of what went before: each is at random within it, so that it reaches into the one before. */
static uint64_t time_of(const Shape *shape, size_t i, uint64_t *state) {
        const uint64_t width = shape->n_times / 100 + 1;

        if (shape->rounds == ROUNDS_NONE)
                return 1 + order_random(state) % shape->n_times;
        return 1 + (i * 100 / shape->n + order_random(state) % 2) * width + order_random(state) % width;
}

static void build(const Shape *shape) {
        uint64_t state = 7;

        order_begin(&built, shape->swap, WITH_TIME);
        for (size_t i = 0; i < shape->n; i++) {
                const uint64_t time = time_of(shape, i, &state);

                if (shape->own_size > 0 && i % 1000 == 500)
                        order_own(&built, i, shape->own_size);
                else if (i % 20 == 3)
                        order_comm(&built, i, i % 400 == 3 ? 0 : time);
                else
                        order_sample(&built, i, i == shape->n - 1 && shape->rounds == ROUNDS_BROKEN ? 1 : time);
                if (shape->rounds != ROUNDS_NONE && (i + 1) * 100 / shape->n != i * 100 / shape->n)
                        order_round(&built);
        }
}

static perfd_recording *open_built(perfd_recording_order order, const char *folder) {
        perfd_recording *r = perfd_recording_new();

        assert_int_equal(perfd_recording_set_order(r, order), 0);
        assert_int_equal(perfd_recording_set_order_memory(r, PERFD_RECORDING_ORDER_MEMORY_MIN), 0);
        assert_int_equal(perfd_recording_set_order_directory(r, folder), 0);
        assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
        return r;
}

/* Gives how it ended. */
static int read_in(perfd_recording_order order, const char *folder) {
        perfd_recording *r = open_built(order, folder);
        const perfd_recorded *record;
        int code = order_read(r, &given);

        assert_int_equal(perfd_recording_next(r, &record), code); /* and stays so */
        if (code == PERFD_E_ENDED)
                assert_int_equal(perfd_recording_damage_count(r), 0);
        else
                assert_non_null(strstr(perfd_recording_error(r), folder));
        perfd_recording_free(r);
        return code;
}

static void check_orders(const Shape *shape, const char *folder) {
        build(shape);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_TIME, folder), PERFD_E_ENDED);
        order_check_whole(&given, shape->n);
        order_check_places(&given);
        order_check_time(&given);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_CAUSAL, folder), PERFD_E_ENDED);
        order_check_whole(&given, shape->n);
        order_check_causal(&given);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_FILE, folder), PERFD_E_ENDED);
        order_check_whole(&given, shape->n);
        for (size_t i = 0; i < given.n; i++)
                assert_int_equal(given.list[i].number, i);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------- */

/* What fits in memory needs no file. */
static void test_small(void **state) {
        for (size_t n = 1; n < 3000; n = 2 * n + 1)
                for (int how = 0; how < 6; how++)
                        check_orders(&(Shape){ .n = n, .n_times = 1000000, .rounds = (Rounds)(how / 2), .swap = how & 1, .own_size = 8 },
                                     "/missing");
}

static void test_ties(void **state) {
        check_orders(&(Shape){ .n = 2000, .n_times = 1 }, "/missing");
        check_orders(&(Shape){ .n = 2000, .n_times = 7 }, "/missing");
        check_orders(&(Shape){ .n = 200000, .n_times = 300 }, NULL);
}

/* More runs than are merged at a time: 2 MiB of memory hold some 11,000 records. */
static void test_many_runs(void **state) {
        check_orders(&(Shape){ .n = 400000, .n_times = UINT64_C(1) << 40, .own_size = 40 }, NULL);
        check_orders(&(Shape){ .n = 100000, .n_times = UINT64_C(1) << 40, .swap = true }, NULL);
}

/* Rounds bound what is held back: no file is needed, and where they break their promise, there is one. */
static void test_rounds(void **state) {
        Shape shape = { .n = 200000, .n_times = 100000000, .rounds = ROUNDS_KEPT };

        check_orders(&shape, "/missing");
        shape.rounds = ROUNDS_BROKEN;
        check_orders(&shape, NULL);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_TIME, "/missing"), -ENOENT);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_CAUSAL, "/missing"), -ENOENT);
}

/* Two rounds that are larger than memory, with a file of runs that is read while it is written. */
static void test_large_rounds(void **state) {
        uint64_t random = 3;

        order_begin(&built, false, WITH_TIME);
        for (size_t i = 0; i < 300000; i++) {
                const uint64_t time = 1 + i / 50000 * 1000000 + order_random(&random) % 1500000;

                if (i % 10 == 9)
                        order_comm(&built, i, time);
                else
                        order_sample(&built, i, time);
                if (i % 50000 == 49999)
                        order_round(&built);
        }
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_TIME, NULL), PERFD_E_ENDED);
        order_check_whole(&given, 300000);
        order_check_time(&given);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_CAUSAL, NULL), PERFD_E_ENDED);
        order_check_whole(&given, 300000);
        order_check_causal(&given);
}

/* In order already: nothing is held back, however much it is. */
static void test_sorted(void **state) {
        order_begin(&built, true, WITH_TIME);
        for (size_t i = 0; i < 300000; i++)
                if (i % 100 == 50)
                        order_own(&built, i, 16);
                else
                        order_sample(&built, i, 1 + i / 3);
        for (int order = PERFD_RECORDING_ORDER_FILE; order <= PERFD_RECORDING_ORDER_TIME; order++) {
                assert_int_equal(read_in((perfd_recording_order)order, "/missing"), PERFD_E_ENDED);
                order_check_whole(&given, 300000);
                for (size_t i = 0; i < given.n; i++)
                        assert_int_equal(given.list[i].number, i);
        }
}

/* Without times there is nothing to sort by, and the largest records there are. */
static void test_no_times(void **state) {
        order_begin(&built, false, WITHOUT_TIME);
        for (size_t i = 0; i < 300000; i++)
                if (i % 1000 == 1)
                        order_own(&built, i, UINT16_MAX - PERF_DATA_RECORD_HEADER);
                else
                        order_sample(&built, i, 9);
        for (int order = PERFD_RECORDING_ORDER_FILE; order <= PERFD_RECORDING_ORDER_TIME; order++) {
                assert_int_equal(read_in((perfd_recording_order)order, "/missing"), PERFD_E_ENDED);
                order_check_whole(&given, 300000);
                for (size_t i = 0; i < given.n; i++)
                        assert_int_equal(given.list[i].number, i);
        }
        check_orders(&(Shape){ .n = 100000, .n_times = 1000000, .own_size = UINT16_MAX - PERF_DATA_RECORD_HEADER }, NULL);
}

/* A time of 0 or of all ones, which perf gives to what it makes up, is none. */
static void test_made_up(void **state) {
        static const uint64_t times[] = { 500, 0, 100, UINT64_MAX, 300, 200 };
        static const uint64_t expected[] = { 1, 2, 3, 5, 4, 0 };

        order_begin(&built, false, WITH_TIME);
        for (size_t i = 0; i < 6; i++)
                order_sample(&built, i, times[i]);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_TIME, "/missing"), PERFD_E_ENDED);
        assert_int_equal(given.n, 6);
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(given.list[i].number, expected[i]);
}

/* Samples keep their places, and a comm goes before the first that is not older. */
static void test_causal(void **state) {
        static const uint64_t expected[] = { 0, 4, 1, 5, 2, 3, 6 };

        order_begin(&built, false, WITH_TIME);
        order_sample(&built, 0, 100);
        order_sample(&built, 1, 300);
        order_sample(&built, 2, 400);
        order_sample(&built, 3, 150);
        order_comm(&built, 4, 200);
        order_comm(&built, 5, 400);
        order_sample(&built, 6, 120);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_CAUSAL, "/missing"), PERFD_E_ENDED);
        assert_int_equal(given.n, 7);
        for (size_t i = 0; i < 7; i++)
                assert_int_equal(given.list[i].number, expected[i]);
}

static void test_compressed(void **state) {
        static Built plain;
        static uint8_t packed[65536];
        ZSTD_CStream *stream = ZSTD_createCStream();
        const size_t piece = 3000, n = 100000; /* bytes in a record, and records */
        uint64_t random = 11;

        order_begin(&built, false, WITH_TIME);
        for (size_t i = 0; i < n; i++)
                if (i % 7 == 0)
                        order_comm(&plain, i, 1 + order_random(&random));
                else
                        order_sample(&plain, i, 1 + order_random(&random));
        assert_false(ZSTD_isError(ZSTD_initCStream(stream, 1)));
        for (size_t at = 0; at < plain.n; at += piece) {
                ZSTD_inBuffer in = { .src = plain.bytes + at, .size = plain.n - at < piece ? plain.n - at : piece };
                ZSTD_outBuffer out = { .dst = packed, .size = sizeof(packed) };
                const size_t record = built_record(&built, PERF_DATA_COMPRESSED, 0);

                assert_false(ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush)));
                built_bytes(&built, packed, out.pos);
                built_record_end(&built, record);
        }
        ZSTD_freeCStream(stream);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_TIME, NULL), PERFD_E_ENDED);
        order_check_whole(&given, n);
        order_check_time(&given);
        for (size_t i = 0; i < n; i++)
                assert_true(given.list[i].is_compressed);
        assert_int_equal(read_in(PERFD_RECORDING_ORDER_CAUSAL, NULL), PERFD_E_ENDED);
        order_check_whole(&given, n);
        order_check_causal(&given);
}

/* What is damaged is said once, with its place, although the file is read twice; what is whole comes in order. */
static void test_damaged(void **state) {
        const size_t n = 100000;
        perfd_recording *r;

        build(&(Shape){ .n = n, .n_times = 1000000 });
        built.n -= 5;
        r = open_built(PERFD_RECORDING_ORDER_TIME, NULL);
        assert_int_equal(order_read(r, &given), PERFD_E_ENDED);
        order_check_whole(&given, n - 1);
        order_check_time(&given);
        assert_int_equal(perfd_recording_damage_count(r), 1);
        assert_int_equal(perfd_recording_damage(r, 0)->offset, built.n + 5 - 32);
        perfd_recording_free(r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_small),    cmocka_unit_test(test_ties),         cmocka_unit_test(test_many_runs),
                cmocka_unit_test(test_rounds),   cmocka_unit_test(test_large_rounds), cmocka_unit_test(test_sorted),
                cmocka_unit_test(test_no_times), cmocka_unit_test(test_made_up),      cmocka_unit_test(test_causal),
                cmocka_unit_test(test_compressed), cmocka_unit_test(test_damaged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
