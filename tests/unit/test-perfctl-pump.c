/* What `perfctl stdio` does with bytes: all of them, in their order, as fast as the slower side; and the ends of both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/perfctl/connection/pump.h"

typedef struct Rig {
        Pump pump;
        int source, sink; /* the other ends */
} Rig;

static int setup(void **state) {
        Rig *rig = calloc(1, sizeof(*rig));
        int in[2], out[2];

        assert_non_null(rig);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, in), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, out), 0);
        rig->pump.from = in[0];
        rig->source = in[1];
        rig->pump.to = out[0];
        rig->sink = out[1];
        *state = rig;
        return 0;
}

static int teardown(void **state) {
        Rig *rig = *state;
        int fds[] = { rig->pump.from, rig->pump.to, rig->source, rig->sink };

        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
                if (fds[i] >= 0)
                        assert_int_equal(close(fds[i]), 0);
        free(rig);
        return 0;
}

static void close_end(int *fd) {
        assert_int_equal(close(*fd), 0);
        *fd = -1;
}

/* The n-th byte of a stream that repeats at no power of two. */
static uint8_t byte_at(size_t n) {
        return (uint8_t)(n % 251);
}

/* As many as the socket takes. */
static size_t give(Rig *rig, size_t from, size_t to) {
        uint8_t bytes[16384];
        size_t n = to - from < sizeof(bytes) ? to - from : sizeof(bytes);
        ssize_t written;

        for (size_t i = 0; i < n; i++)
                bytes[i] = byte_at(from + i);
        written = n > 0 ? write(rig->source, bytes, n) : 0;
        if (written < 0)
                assert_int_equal(errno, EAGAIN);
        return written > 0 ? (size_t)written : 0;
}

/* At most `most`, which are those from the n-th on. */
static size_t take(Rig *rig, size_t n, size_t most) {
        uint8_t bytes[4096];
        ssize_t got = read(rig->sink, bytes, most < sizeof(bytes) ? most : sizeof(bytes));

        if (got < 0)
                assert_int_equal(errno, EAGAIN);
        for (ssize_t i = 0; i < got; i++)
                assert_int_equal(bytes[i], byte_at(n + (size_t)i));
        return got > 0 ? (size_t)got : 0;
}

/* The sink takes less than comes: the pump reads nothing more before what it has is written, in parts. */
static void test_slow_sink(void **state) {
        Rig *rig = *state;
        const size_t all = 200000;
        size_t given = 0, taken = 0;
        bool has_waited = false, was_partial = false;
        int small = 1;

        assert_int_equal(setsockopt(rig->pump.to, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
        while (!pump_is_done(&rig->pump)) {
                given += give(rig, given, all);
                if (given == all && rig->source >= 0)
                        close_end(&rig->source);
                assert_int_equal(pump_run(&rig->pump), 0);
                if (pump_wants_out(&rig->pump)) {
                        assert_int_equal(pump_wants_in(&rig->pump), 0);
                        has_waited = true;
                        was_partial = was_partial || rig->pump.begin > 0;
                }
                taken += take(rig, taken, 1000);
        }
        for (size_t n; (n = take(rig, taken, SIZE_MAX)) > 0;)
                taken += n;
        assert_true(has_waited && was_partial);
        assert_int_equal(taken, all);
}

static void test_nothing_to_read(void **state) {
        Rig *rig = *state;

        assert_int_equal(pump_run(&rig->pump), 0);
        assert_int_equal(pump_wants_in(&rig->pump), POLLIN);
        assert_int_equal(pump_wants_out(&rig->pump), 0);
        assert_false(pump_is_done(&rig->pump));
}

/* What came before the end is written behind it. */
static void test_end(void **state) {
        Rig *rig = *state;

        assert_int_equal(give(rig, 0, 10), 10);
        close_end(&rig->source);
        assert_int_equal(pump_run(&rig->pump), 0);
        assert_false(pump_is_done(&rig->pump));
        assert_int_equal(pump_run(&rig->pump), 0);
        assert_true(pump_is_done(&rig->pump));
        assert_int_equal(pump_wants_in(&rig->pump), 0);
        assert_int_equal(take(rig, 0, 100), 10);
}

/* The source was closed with something in it that nobody had read: ECONNRESET, which is its end. */
static void test_source_with_something_unread(void **state) {
        Rig *rig = *state;

        assert_int_equal(write(rig->pump.from, "unread", 6), 6);
        close_end(&rig->source);
        assert_int_equal(pump_run(&rig->pump), 0);
        assert_true(pump_is_done(&rig->pump));
}

static void test_nobody_takes_it(void **state) {
        Rig *rig = *state;

        close_end(&rig->sink);
        assert_int_equal(give(rig, 0, 10), 10);
        assert_int_equal(pump_run(&rig->pump), -EPIPE);
        assert_int_equal(pump_wants_out(&rig->pump), POLLOUT);
}

static void test_other_errors(void **state) {
        Rig *rig = *state;
        int to = rig->pump.to, from = rig->pump.from;

        rig->pump.from = -1;
        assert_int_equal(pump_run(&rig->pump), -EBADF);
        rig->pump.from = from;
        rig->pump.to = -1;
        assert_int_equal(give(rig, 0, 10), 10);
        assert_int_equal(pump_run(&rig->pump), -EBADF);
        rig->pump.to = to;
        assert_int_equal(pump_run(&rig->pump), 0);
        assert_int_equal(take(rig, 0, 100), 10); /* nothing was lost by that */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_slow_sink, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nothing_to_read, setup, teardown),
                cmocka_unit_test_setup_teardown(test_end, setup, teardown),
                cmocka_unit_test_setup_teardown(test_source_with_something_unread, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nobody_takes_it, setup, teardown),
                cmocka_unit_test_setup_teardown(test_other_errors, setup, teardown),
        };

        (void)signal(SIGPIPE, SIG_IGN); /* as perfctl does */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
