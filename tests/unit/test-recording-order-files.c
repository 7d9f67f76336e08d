/* Orders of recordings out of files and pipes, and what the temporary file can meet. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/ordered-recording.h"

static Built built;
static Sequence given;

static perfd_recording *new_of(perfd_recording_order order, const char *folder) {
        perfd_recording *r = perfd_recording_new();

        assert_int_equal(perfd_recording_set_order_memory(r, PERFD_RECORDING_ORDER_MEMORY_MIN), 0);
        assert_int_equal(perfd_recording_set_order_directory(r, folder), 0);
        assert_int_equal(perfd_recording_set_order(r, order), 0);
        return r;
}

static void build_random(size_t n) {
        uint64_t state = 5;

        order_begin(&built, false, WITH_TIME);
        for (size_t i = 0; i < n; i++)
                order_sample(&built, i, 1 + order_random(&state));
}

/* What was built, in a file without a name. */
static int file_of_built(void) {
        int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

        assert_true(fd >= 0);
        for (size_t at = 0; at < built.n;) {
                const ssize_t n = write(fd, built.bytes + at, built.n - at);

                assert_true(n > 0);
                at += (size_t)n;
        }
        return fd;
}

static void test_file(void **state) {
        const int fd = (build_random(100000), file_of_built());
        perfd_recording *r = new_of(PERFD_RECORDING_ORDER_TIME, "/tmp");

        assert_int_equal(perfd_recording_open_fd(r, fd), 0);
        assert_int_equal(order_read(r, &given), PERFD_E_ENDED);
        order_check_whole(&given, 100000);
        order_check_time(&given);
        perfd_recording_free(r);
        close(fd);
}

/* Into a pipe that has room for it. */
static void write_from(int fd, size_t at) {
        while (at < built.n) {
                const ssize_t n = write(fd, built.bytes + at, built.n - at);

                assert_true(n > 0);
                at += (size_t)n;
        }
}

static void open_pipe(int fds[static 2]) {
        assert_int_equal(pipe(fds), 0);
        assert_true(fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
}

/* Records come while the recorder runs: those that are older than what was read a round before. */
static void test_pipe(void **state) {
        static const uint64_t expected[] = { 1, 0, 2 };
        perfd_recording *r = new_of(PERFD_RECORDING_ORDER_TIME, "/missing");
        const perfd_recorded *record;
        size_t n = 0, before;
        int fds[2];

        open_pipe(fds);
        order_begin(&built, false, WITH_TIME);
        order_sample(&built, 0, 200);
        order_sample(&built, 1, 100);
        order_sample(&built, 2, 300);
        order_sample(&built, 3, 400);
        order_round(&built);
        order_sample(&built, 4, 500);
        order_round(&built);
        write_from(fds[1], 0);
        assert_int_equal(perfd_recording_open_fd(r, fds[0]), 0);
        while (n < 3) {
                uint64_t number;

                assert_int_equal(perfd_recording_next(r, &record), 0);
                if (record->type != PERF_RECORD_SAMPLE)
                        continue;
                memcpy(&number, record->bytes, sizeof(number));
                assert_int_equal(number, expected[n++]);
        }
        before = built.n;
        order_sample(&built, 5, 250); /* too late */
        order_sample(&built, 6, 450);
        write_from(fds[1], before);
        close(fds[1]);
        assert_int_equal(order_read(r, &given), PERFD_E_ENDED);
        assert_int_equal(given.n, 4);
        assert_int_equal(given.list[0].number, 5);
        assert_int_equal(given.list[1].number, 3);
        assert_int_equal(given.list[2].number, 6);
        assert_int_equal(given.list[3].number, 4);
        assert_int_equal(perfd_recording_damage_count(r), 1);
        assert_int_equal(perfd_recording_damage(r, 0)->offset, before);
        assert_non_null(strstr(perfd_recording_damage(r, 0)->text, "250 ns"));
        perfd_recording_free(r);
        close(fds[0]);
}

/* Without rounds all of it is sorted, through a file. */
static void test_pipe_without_rounds(void **state) {
        const size_t n = 30000;
        perfd_recording *r = new_of(PERFD_RECORDING_ORDER_TIME, NULL);
        int fds[2];

        open_pipe(fds);
        build_random(n);
        assert_true(built.n < 1 << 20);
        write_from(fds[1], 0);
        close(fds[1]);
        assert_int_equal(perfd_recording_open_fd(r, fds[0]), 0);
        assert_int_equal(order_read(r, &given), PERFD_E_ENDED);
        order_check_whole(&given, n);
        order_check_time(&given);
        assert_int_equal(perfd_recording_damage_count(r), 0);
        perfd_recording_free(r);
        close(fds[0]);
}

static void check_failure(const char *folder, int code, const char *text) {
        for (int order = PERFD_RECORDING_ORDER_CAUSAL; order <= PERFD_RECORDING_ORDER_TIME; order++) {
                perfd_recording *r = new_of((perfd_recording_order)order, folder);

                assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                assert_int_equal(order_read(r, &given), code);
                assert_int_equal(order_read(r, &given), code);
                assert_non_null(strstr(perfd_recording_error(r), folder));
                assert_non_null(strstr(perfd_recording_error(r), text));
                perfd_recording_free(r);
        }
}

static void test_failures(void **state) {
        struct rlimit before, limit;

        build_random(100000);
        check_failure("/missing", -ENOENT, "give another directory");
        check_failure("/dev/null", -ENOTDIR, "Not a directory");
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = (struct rlimit){ .rlim_cur = 1000000, .rlim_max = before.rlim_max };
        assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        check_failure("/tmp", -EFBIG, "after 1000000 bytes");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void test_settings(void **state) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;

        order_begin(&built, false, WITH_TIME);
        assert_int_equal(perfd_recording_set_order(r, (perfd_recording_order)3), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_set_order_memory(r, PERFD_RECORDING_ORDER_MEMORY_MIN - 1), PERFD_E_INVALID);
        assert_non_null(strstr(perfd_recording_error(r), "2097152"));
        assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
        assert_int_equal(perfd_recording_set_order(r, PERFD_RECORDING_ORDER_TIME), 0);
        assert_int_equal(perfd_recording_next(r, &record), 0);
        assert_int_equal(record->type, PERF_DATA_HEADER_ATTR);
        assert_int_equal(perfd_recording_set_order(r, PERFD_RECORDING_ORDER_FILE), PERFD_E_STATE);
        assert_int_equal(perfd_recording_set_order_memory(r, 1 << 30), PERFD_E_STATE);
        assert_int_equal(perfd_recording_set_order_directory(r, "/tmp"), PERFD_E_STATE);
        assert_int_equal(perfd_recording_next(r, &record), PERFD_E_ENDED);
        perfd_recording_free(r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_file),     cmocka_unit_test(test_pipe),     cmocka_unit_test(test_pipe_without_rounds),
                cmocka_unit_test(test_failures), cmocka_unit_test(test_settings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
