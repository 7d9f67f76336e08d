/*
 * Control connections over real sockets, with a supervisor of a few lines: how requests arrive in any pieces, and that
 * a peer who is wrong, slow, silent, greedy or gone harms nothing but his own connection. The test is all the peers; it
 * runs the daemon's loop between what they do, so that nothing here waits for time but patience itself, which is cut.
 */
#include "tests/unit/control-rig.h"
#include "daemon/control/listener.h"

/* --- requests in any pieces --- */

static void test_pipelined(void **state) {
        _cleanup_free_ uint8_t *bytes = malloc(64 * 1000);
        size_t n = 0;
        Daemon d;
        PEER_READER(in);
        int fd;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        for (unsigned i = 1; i <= 1000; i++)
                n += put_simple(bytes + n, i, PERFD__V1__REQUEST__BODY_STATUS);
        peer_write(fd, bytes, n);
        for (unsigned i = 1; i <= 1000; i++)
                expect_ok(&d, fd, &in, i);
        expect_nothing(&d, fd, &in, false);

        peer_write(fd, bytes, n); /* and with an end behind them: all are answered */
        shutdown(fd, SHUT_WR);
        for (unsigned i = 1; i <= 1000; i++)
                expect_ok(&d, fd, &in, i);
        expect_nothing(&d, fd, &in, true);
        assert_int_equal(d.n_handled, 2000);
        assert_int_equal(d.control.n_connections, 0);
        close_fd(fd);
        daemon_deinit(&d);
}

static void test_byte_by_byte(void **state) {
        uint8_t bytes[256];
        size_t n;
        Daemon d;
        PEER_READER(in);
        int fd;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        n = put_simple(bytes, 7, PERFD__V1__REQUEST__BODY_STATUS);
        n += put_simple(bytes + n, 1ULL << 63, PERFD__V1__REQUEST__BODY_STATUS);
        for (size_t i = 0; i < n; i++) {
                peer_write(fd, bytes + i, 1);
                daemon_run(&d);
        }
        expect_ok(&d, fd, &in, 7);
        expect_ok(&d, fd, &in, 1ULL << 63);
        peer_write(fd, (uint8_t[4]){ 0 }, 4); /* an empty message is a request without anything */
        expect_ok(&d, fd, &in, 0);
        assert_int_equal(n_timers, 2); /* one while each was half there */
        close_fd(fd);
        daemon_run(&d);
        assert_int_equal(d.control.n_connections, 0);
        daemon_deinit(&d);
}

static void test_longest_request(void **state) {
        _cleanup_free_ uint8_t *bytes = malloc(FRAME_MAX_REQUEST + 64);
        _cleanup_free_ char *yaml = malloc(FRAME_MAX_REQUEST);
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ValidateRequest validate = PERFD__V1__VALIDATE_REQUEST__INIT;
        size_t n, sent = 0, yaml_size = FRAME_MAX_REQUEST - 8; /* two keys, two lengths */
        Daemon d;
        PEER_READER(in);
        int fd;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        memset(yaml, 'y', yaml_size);
        yaml[yaml_size] = '\0';
        validate.yaml = yaml;
        request.body_case = PERFD__V1__REQUEST__BODY_VALIDATE;
        request.validate = &validate;
        assert_int_equal(perfd__v1__request__get_packed_size(&request), FRAME_MAX_REQUEST);
        n = put_request(bytes, &request);
        while (sent < n) {
                ssize_t now = send(fd, bytes + sent, n - sent, MSG_NOSIGNAL);

                assert_true(now > 0 || errno == EAGAIN);
                sent += now > 0 ? (size_t)now : 0;
                daemon_run(&d);
        }
        expect_ok(&d, fd, &in, 0);
        frame_header_put(bytes, FRAME_MAX_REQUEST + 1);
        peer_write(fd, bytes, 4);
        expect_refused(&d, fd, &in, PERFD__V1__STATUS__STATUS_INVALID, "exceeds HelloReply.max_request");
        expect_nothing(&d, fd, &in, true);
        close_fd(fd);
        daemon_deinit(&d);
}

/* --- peers who are wrong --- */

static void test_wrong(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
                const char *said;
        } wrong[] = {
                { "\xff\xff\xff\xff", 4, "exceeds HelloReply.max_request" },
                { "GET / HTTP/1.1\r\n\r\n", 18, "exceeds HelloReply.max_request" },
                { "\x05\0\0\0\xff\xff\xff\xff\xff", 9, "not a perfd.v1.Request" },
                { "\x02\0\0\0\x0a\x05\x02\0\0\0\x08\x07", 12, "not a perfd.v1.Request" }, /* with a good one behind it */
        };
        Daemon d;
        PEER_READER(good_in);
        int good;

        daemon_init(&d, LIMITS);
        good = peer_new(&d);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                PEER_READER(in);
                int fd = peer_new(&d);

                peer_write(fd, wrong[i].bytes, wrong[i].n);
                expect_refused(&d, fd, &in, PERFD__V1__STATUS__STATUS_INVALID, wrong[i].said);
                expect_nothing(&d, fd, &in, true);
                assert_int_equal(d.control.n_connections, 1);
                close_fd(fd);
                peer_ask(&d, good, i, PERFD__V1__REQUEST__BODY_STATUS);
                expect_ok(&d, good, &good_in, i);
        }
        assert_int_equal(d.n_handled, ARRAY_SIZE(wrong));
        close_fd(good);
        daemon_deinit(&d);
}

/* --- peers who are slow, silent or gone --- */

static void wait_for_impatience(Daemon *d, unsigned n_left) {
        for (unsigned i = 0; d->control.n_connections > n_left; i++) {
                assert_true(i < 1000);
                assert_true(sd_event_run(d->event, 20000) >= 0);
        }
}

static void test_silence(void **state) {
        uint8_t bytes[64];
        size_t n = put_simple(bytes, 1, PERFD__V1__REQUEST__BODY_STATUS);
        Daemon d;
        PEER_READER(in);
        PEER_READER(half_in);
        int fd, half;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        peer_ask(&d, fd, 5, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, fd, &in, 5);
        assert_int_equal(n_timers, 1); /* for its first request; who owes nothing may be silent for ever */

        is_impatient = true;
        half = peer_new(&d); /* says nothing at all */
        wait_for_impatience(&d, 1);
        assert_int_equal(n_timers, 2);
        expect_refused(&d, half, &half_in, PERFD__V1__STATUS__STATUS_EXHAUSTED, "no request arrived within 10 s");
        expect_nothing(&d, half, &half_in, true);
        close_fd(half);

        half = peer_new_saying(&d, bytes, n - 1);
        wait_for_impatience(&d, 1);
        assert_int_equal(n_timers, 3);
        expect_nothing(&d, half, &half_in, true);
        close_fd(half);

        half = peer_new_saying(&d, bytes, n - 1); /* gone in the middle of a request */
        close_fd(half);
        daemon_run(&d);
        assert_int_equal(d.control.n_connections, 1);
        peer_ask(&d, fd, 6, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, fd, &in, 6);
        assert_int_equal(d.n_handled, 2);
        close_fd(fd);
        daemon_deinit(&d);
}

/* One answer at most is held for whoever does not read, however much he asks. */
static void test_does_not_read(void **state) {
        uint8_t bytes[64 * 50];
        size_t n = 0;
        Daemon d;
        PEER_READER(in);
        PEER_READER(other_in);
        int fd, other;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        other = peer_new(&d);
        for (unsigned i = 1; i <= 50; i++)
                n += put_simple(bytes + n, i, PERFD__V1__REQUEST__BODY_LIST);
        peer_write(fd, bytes, n);
        daemon_run(&d);
        assert_int_equal(d.n_handled, 1);
        peer_ask(&d, other, 1, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, other, &other_in, 1);
        for (unsigned i = 1; i <= 50; i++) /* reads at last: nothing is missing */
                expect_ok(&d, fd, &in, i);
        assert_int_equal(d.n_handled, 51);

        peer_write(fd, bytes, n); /* gone with an answer half sent */
        daemon_run(&d);
        close_fd(fd);
        daemon_run(&d);
        assert_int_equal(d.control.n_connections, 1);
        assert_int_equal(d.n_handled, 52);

        is_impatient = true;
        fd = peer_new_saying(&d, bytes, n);
        wait_for_impatience(&d, 1);
        close_fd(fd);
        peer_ask(&d, other, 2, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, other, &other_in, 2);
        close_fd(other);
        daemon_deinit(&d);
}

/* --- the socket leaves --- */

static void test_give(void **state) {
        uint8_t bytes[256];
        Perfd__V1__ServerMessage *m;
        Daemon d;
        PEER_READER(in);
        size_t n;
        int fd;

        daemon_init(&d, LIMITS);
        d.answer_before_give = true;
        fd = peer_new(&d);
        n = put_simple(bytes, 1, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        peer_write(fd, bytes, n + put_simple(bytes + n, 2, PERFD__V1__REQUEST__BODY_STATUS)); /* more behind it */
        expect_refused(&d, fd, &in, PERFD__V1__STATUS__STATUS_INVALID, NULL);
        expect_ok(&d, fd, &in, 2);
        assert_int_equal(d.n_not_given, 1);
        assert_int_equal(d.control.n_connections, 1);

        peer_ask(&d, fd, 3, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        assert_int_equal(d.n_given, 1);
        assert_int_equal(d.control.n_connections, 0);
        expect_nothing(&d, fd, &in, false); /* the answer is the new owner's to send */
        m = perfd__v1__server_message__unpack(NULL, d.n_unsent - FRAME_HEADER_SIZE, d.unsent + FRAME_HEADER_SIZE);
        assert_non_null(m);
        assert_int_equal(m->response->id, 3);
        perfd__v1__server_message__free_unpacked(m, NULL);
        peer_write(d.given_fd, d.unsent, d.n_unsent);
        expect_ok(&d, fd, &in, 3);
        peer_ask(&d, fd, 4, PERFD__V1__REQUEST__BODY_STATUS);
        assert_int_equal(recv(d.given_fd, bytes, sizeof(bytes), 0), put_simple(bytes + 128, 4, PERFD__V1__REQUEST__BODY_STATUS));
        free(TAKE_PTR(d.unsent));
        d.given_fd = close_fd(d.given_fd);
        close_fd(fd);

        fd = peer_new(&d); /* with nothing to be sent, also behind answers that were */
        d.answer_before_give = false;
        frame_reader_deinit(&in);
        frame_reader_init(&in, FRAME_MAX_SERVER);
        peer_ask(&d, fd, 5, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, fd, &in, 5);
        peer_ask(&d, fd, 6, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        assert_int_equal(d.n_given, 2);
        assert_null(d.unsent);
        assert_int_equal(d.n_unsent, 0);
        close_fd(fd);
        daemon_deinit(&d);
}

/* --- who may come, and what he is called --- */

static void test_limits(void **state) {
        static const struct {
                ControlLimits limits;
                unsigned n;
                const char *said;
        } cases[] = {
                { { .connections = 100, .connections_per_uid = 3 }, 3, "3 connections of your uid" },
                { { .connections = 5, .connections_per_uid = 5 }, 5, "5 connections of your uid" }, /* root, who has a place in all */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int fds[8], extra;
                Daemon d;
                PEER_READER(in);
                PEER_READER(extra_in);

                daemon_init_as(&d, cases[i].limits, false);
                for (unsigned k = 0; k < cases[i].n; k++)
                        fds[k] = peer_new(&d);
                for (unsigned k = 0; k < 20; k++) {
                        extra = peer_new(&d);
                        frame_reader_deinit(&extra_in);
                        frame_reader_init(&extra_in, FRAME_MAX_SERVER);
                        expect_refused(&d, extra, &extra_in, PERFD__V1__STATUS__STATUS_EXHAUSTED, cases[i].said);
                        expect_nothing(&d, extra, &extra_in, true);
                        close_fd(extra);
                }
                assert_int_equal(d.control.n_connections, cases[i].n);
                close_fd(fds[0]);
                daemon_run(&d);
                fds[0] = peer_new(&d); /* who leaves makes room */
                peer_ask(&d, fds[0], 9, PERFD__V1__REQUEST__BODY_STATUS);
                expect_ok(&d, fds[0], &in, 9);
                for (unsigned k = 0; k < cases[i].n; k++)
                        close_fd(fds[k]);
                daemon_deinit(&d); /* with connections that it has not yet seen leave */
        }
}

/* --- who comes first --- */

/* One turn of the loop; the peer takes what it was answered. */
static void run_once(Daemon *d, int fd) {
        uint8_t bytes[4096];

        assert_true(sd_event_run(d->event, 0) > 0);
        while (recv(fd, bytes, sizeof(bytes), 0) > 0)
                ;
}

/* Whatever others have asked before, the control socket is served; one that floods it leaves turns to the others. */
static void test_precedence(void **state) {
        enum { N_STREAM = 20, N_FLOOD = 16 * (PRECEDENCE_TURNS + 2) };
        char path[sizeof(((Daemon *)NULL)->path) + 8];
        uint8_t bytes[64 * N_FLOOD];
        Explanation e = EXPLANATION_NULL;
        int fds[N_STREAM], control;
        size_t n = 0;
        Daemon d;

        daemon_init_as(&d, LIMITS, false);
        for (int i = 0; i < N_STREAM; i++)
                fds[i] = peer_new(&d);
        (void)snprintf(path, sizeof(path), "%s.too", d.path);
        assert_int_equal(control_listen(&d.control, path, 0600, NULL, true, &e), 0);
        for (int i = 0; i < N_STREAM; i++)
                peer_write(fds[i], bytes, put_simple(bytes, 1, PERFD__V1__REQUEST__BODY_STATUS));
        control = peer_socket();
        connect_to(control, path);
        peer_write(control, bytes, put_simple(bytes, 1, PERFD__V1__REQUEST__BODY_STATUS));
        assert_true(sd_event_run(d.event, 0) > 0); /* it is accepted */
        assert_int_equal(d.n_handled, 0);
        assert_true(sd_event_run(d.event, 0) > 0);
        assert_int_equal(d.n_changers, 1);
        assert_int_equal(d.n_handled, 1);

        for (int i = 0; i < N_FLOOD; i++)
                n += put_simple(bytes + n, 2 + (uint64_t)i, PERFD__V1__REQUEST__BODY_STATUS);
        peer_write(control, bytes, n);
        for (unsigned before = 0; d.n_handled == d.n_changers; before = d.n_changers) {
                assert_true(d.n_changers - before <= 16);
                run_once(&d, control);
        }
        assert_true(d.n_changers <= 16 * PRECEDENCE_TURNS);
        n = d.n_changers;
        while (d.n_changers == n) /* it has its next turn before all of them have had one */
                run_once(&d, control);
        assert_int_equal(d.n_handled - d.n_changers, PRECEDENCE_OTHERS);
        while (d.n_changers < 1 + N_FLOOD)
                run_once(&d, control);
        assert_int_equal(d.n_changers, 1 + N_FLOOD);
        close_fd(control);
        for (int i = 0; i < N_STREAM; i++)
                close_fd(fds[i]);
        daemon_deinit(&d);
}

/* --- requests that wait for their turn --- */

static void resume(const Daemon *d) {
        assert_int_equal(connection_resume(d->deferred), 0);
        assert_int_equal(connection_go_on(d->deferred), 0);
}

static void test_deferred(void **state) {
        Daemon d;
        PEER_READER(in);
        int fd;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        d.defers = true;
        peer_ask(&d, fd, 1, PERFD__V1__REQUEST__BODY_AVAILABLE);
        peer_ask(&d, fd, 2, PERFD__V1__REQUEST__BODY_STATUS); /* is not read before the first is answered */
        expect_nothing(&d, fd, &in, false);
        assert_int_equal(d.n_handled, 1);
        assert_int_equal(n_timers, 1); /* until it asked for something: now it is perfd that owes it an answer */
        resume(&d); /* and has to wait once more */
        expect_nothing(&d, fd, &in, false);
        d.defers = false;
        resume(&d);
        expect_ok(&d, fd, &in, 1);
        expect_ok(&d, fd, &in, 2);
        assert_int_equal(d.n_handled, 4);
        close_fd(fd);
        daemon_run(&d);
        assert_int_equal(d.control.n_connections, 0);
        daemon_deinit(&d);
}

static void test_gone_while_deferred(void **state) {
        Daemon d;
        int fd;

        daemon_init(&d, LIMITS);
        fd = peer_new(&d);
        d.defers = true;
        peer_ask(&d, fd, 1, PERFD__V1__REQUEST__BODY_AVAILABLE);
        assert_int_equal(d.gone, 0);
        close_fd(fd);
        daemon_run(&d);
        assert_int_equal(d.gone, 1);
        assert_int_equal(d.control.n_connections, 0);
        daemon_deinit(&d);
}

static int peer_of_the_middle;

/* Others are served while the request runs, and its connection must outlive it. */
static void go_in_the_middle(Daemon *d) {
        assert_false(connection_is_gone(d->deferred));
        close_fd(peer_of_the_middle);
        daemon_run(d);
        assert_true(connection_is_gone(d->deferred));
        assert_int_equal(d->gone, 0);
        assert_int_equal(d->control.n_connections, 1);
}

static void test_gone_in_the_middle(void **state) {
        Daemon d;

        daemon_init(&d, LIMITS);
        peer_of_the_middle = peer_new(&d);
        d.defers = true;
        peer_ask(&d, peer_of_the_middle, 1, PERFD__V1__REQUEST__BODY_AVAILABLE);
        d.defers = false;
        d.in_the_middle = go_in_the_middle;
        resume(&d);
        assert_int_equal(d.gone, 1);
        assert_int_equal(d.control.n_connections, 0);
        daemon_deinit(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pipelined),
                cmocka_unit_test(test_byte_by_byte),
                cmocka_unit_test(test_longest_request),
                cmocka_unit_test(test_wrong),
                cmocka_unit_test(test_silence),
                cmocka_unit_test(test_does_not_read),
                cmocka_unit_test(test_give),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_precedence),
                cmocka_unit_test(test_deferred),
                cmocka_unit_test(test_gone_while_deferred),
                cmocka_unit_test(test_gone_in_the_middle),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
