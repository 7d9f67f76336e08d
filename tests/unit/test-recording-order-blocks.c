/* Orders of files that do not fit in the memory that they may take: most of their records stay in the block that was read. */
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/unit/ordered-recording.h"

#define HEADER_SIZE 104
#define ATTR_SIZE 112
#define DATA_SIZE_AT 48 /* where the header says how many bytes of records there are */

static Built built;
static Sequence given;

static void begin(bool swap) {
        built.swap = swap;
        built.n = 0;
        built_u64(&built, PERF_DATA_MAGIC);
        built_u64(&built, HEADER_SIZE);
        built_u64(&built, ATTR_SIZE + 16);
        built_u64(&built, HEADER_SIZE);
        built_u64(&built, ATTR_SIZE + 16);
        built_u64(&built, HEADER_SIZE + ATTR_SIZE + 16);
        built_zeros(&built, HEADER_SIZE - built.n);
        built_attr(&built, ATTR_SIZE, 1, 2, WITH_TIME, PERFD_ATTR_SAMPLE_ID_ALL);
        built_zeros(&built, 16); /* no ids */
}

static int file_of_built(void) {
        const int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

        built_u64_at(&built, DATA_SIZE_AT - 8, HEADER_SIZE + ATTR_SIZE + 16);
        built_u64_at(&built, DATA_SIZE_AT, built.n - HEADER_SIZE - ATTR_SIZE - 16);
        assert_true(fd >= 0);
        for (size_t at = 0; at < built.n;) {
                const ssize_t n = write(fd, built.bytes + at, built.n - at);

                assert_true(n > 0);
                at += (size_t)n;
        }
        return fd;
}

static void read_in(perfd_recording_order order, const char *folder) {
        perfd_recording *r = perfd_recording_new();
        const int fd = file_of_built();

        assert_int_equal(perfd_recording_set_order(r, order), 0);
        assert_int_equal(perfd_recording_set_order_memory(r, PERFD_RECORDING_ORDER_MEMORY_MIN), 0);
        assert_int_equal(perfd_recording_set_order_directory(r, folder), 0);
        assert_int_equal(perfd_recording_open_fd(r, fd), 0);
        assert_int_equal(order_read(r, &given), PERFD_E_ENDED);
        assert_int_equal(perfd_recording_damage_count(r), 0);
        perfd_recording_free(r);
        close(fd);
}

static void check_orders(size_t n, const char *folder) {
        read_in(PERFD_RECORDING_ORDER_TIME, folder);
        order_check_whole(&given, n);
        order_check_places(&given);
        order_check_time(&given);
        read_in(PERFD_RECORDING_ORDER_CAUSAL, folder);
        order_check_whole(&given, n);
        order_check_causal(&given);
}

/* own_size: of one record in 1,000, which has no time. Rounds of 2,000 records reach into each other. */
static void build(size_t n, size_t own_size, bool has_rounds) {
        uint64_t random = 3;

        for (size_t i = 0; i < n; i++) {
                const uint64_t time = 1 + (has_rounds ? i / 2000 * 1000000 : 0) + order_random(&random) % 2000000;

                if (i % 1000 == 500)
                        order_own(&built, i, own_size);
                else if (i % 20 == 3)
                        order_comm(&built, i, i % 400 == 3 ? 0 : time);
                else
                        order_sample(&built, i, time);
                if (has_rounds && i % 2000 == 1999)
                        order_round(&built);
        }
}

/* Rounds bound what waits: no file is needed. */
static void test_rounds(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                begin(swap);
                build(200000, swap ? 40 : 6000, true);
                check_orders(200000, "/missing");
        }
}

/* The last record is older than what was promised: all is sorted. */
static void test_broken_rounds(void **state) {
        begin(false);
        build(200000, 8, true);
        order_sample(&built, 200000, 1);
        check_orders(200001, NULL);
        assert_int_equal(given.n, 200001);
}

static void test_no_rounds(void **state) {
        begin(false);
        build(300000, UINT16_MAX - PERF_DATA_RECORD_HEADER, false);
        check_orders(300000, NULL);
}

/* What lies far in the future waits to the end, however many blocks pass by. */
static void test_future(void **state) {
        begin(false);
        order_sample(&built, 0, UINT64_MAX - 1);
        order_comm(&built, 1, UINT64_MAX - 2);
        for (size_t i = 2; i < 300000; i++) {
                order_sample(&built, i, i ^ 1);
                if (i % 1000 == 999)
                        order_round(&built);
        }
        check_orders(300000, NULL);
        read_in(PERFD_RECORDING_ORDER_TIME, NULL);
        assert_int_equal(given.list[given.n - 1].number, 0);
        assert_int_equal(given.list[given.n - 2].number, 1);
}

/* An AUX area of more bytes than a block has is stepped over. */
static void test_area(void **state) {
        size_t at;

        begin(false);
        build(60000, 8, true);
        at = built_record(&built, PERF_DATA_AUXTRACE, 0);
        built_u64(&built, 3 << 20);
        built_zeros(&built, 32);
        built_record_end(&built, at);
        built_zeros(&built, 3 << 20);
        for (size_t i = 60000; i < 120000; i++)
                order_sample(&built, i, (i ^ 3) * 1000);
        check_orders(120000, NULL);
}

/* What is compressed is not in the file as it is: it is copied from there on. */
static void test_compressed(void **state) {
        static Built plain;
        static uint8_t packed[65536];
        const size_t piece = 30000, n = 200000;
        ZSTD_CStream *stream = ZSTD_createCStream();
        uint64_t random = 11;

        begin(false);
        build(n / 2, 8, true);
        plain.n = 0;
        for (size_t i = n / 2; i < n; i++)
                order_sample(&plain, i, UINT64_C(1) + order_random(&random) % 100000000);
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
        check_orders(n, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rounds), cmocka_unit_test(test_broken_rounds), cmocka_unit_test(test_no_rounds),
                cmocka_unit_test(test_future), cmocka_unit_test(test_area),          cmocka_unit_test(test_compressed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
