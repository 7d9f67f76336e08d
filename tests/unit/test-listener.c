/* Sockets: what is found at their path, who may open them, what is left of them; and refusals as wire statuses. */
#include "tests/unit/control-rig.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "daemon/base/fd-limit.h"

static void address_of(const Daemon *d, struct sockaddr_un *ret) {
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        strcpy(ret->sun_path, d->path);
}

static void expect_refusal(Daemon *d, const char *path, mode_t mode, const char *group, int refusal, const char *said) {
        Explanation e = EXPLANATION_NULL;
        struct Listener *before = d->control.listeners;

        assert_int_equal(control_listen(&d->control, path, mode, group, true, &e), refusal);
        if (!strstr(e.text, said))
                fail_msg("'%s' does not say '%s'", e.text, said);
        assert_ptr_equal(d->control.listeners, before);
}

static void test_paths(void **state) {
        char long_path[200], path[128];
        Daemon d;

        daemon_init(&d, LIMITS);
        memset(long_path, 'a', sizeof(long_path) - 1);
        long_path[sizeof(long_path) - 1] = '\0';
        expect_refusal(&d, long_path, 0600, NULL, REFUSED_INVALID, "longer than the 107 bytes");
        (void)snprintf(path, sizeof(path), "%s/no/socket", d.folder);
        expect_refusal(&d, path, 0600, NULL, REFUSED_DENIED, "does its directory exist?");
        expect_refusal(&d, d.path, 0600, NULL, REFUSED_EXISTS, "another daemon already listens");
        (void)snprintf(path, sizeof(path), "%s/other", d.folder);
        assert_int_equal(chmod(d.folder, 0777), 0);
        expect_refusal(&d, path, 0600, NULL, REFUSED_DENIED, "all users may write into");
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(chmod(d.folder, 0700), 0);
        daemon_deinit(&d);
}

static void test_modes(void **state) {
        static const mode_t modes[] = { 0600, 0660, 0666 };
        mode_t mask = umask(0077);

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                Explanation e = EXPLANATION_NULL;
                char path[128];
                struct stat s;
                Daemon d;

                daemon_init(&d, LIMITS);
                (void)snprintf(path, sizeof(path), "%s/other", d.folder);
                assert_int_equal(control_listen(&d.control, path, modes[i], i == 0 ? "no-such-group-here" : NULL, false, &e), 0);
                assert_int_equal(stat(path, &s), 0);
                assert_int_equal(s.st_mode & 07777, modes[i]);
                daemon_deinit(&d); /* removes the folder, so both paths are gone */
        }
        assert_int_equal(umask(mask), 0077); /* it is as it was */
}

/* The socket is there, and its group has no access that others have not: who may is never more than was asked for. */
static void test_group_that_is_not_there(void **state) {
        static const mode_t modes[][2] = { { 0660, 0600 }, { 0664, 0604 }, { 0666, 0666 }, { 0600, 0600 } };

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                Explanation e = EXPLANATION_NULL;
                char path[128];
                struct stat s;
                Daemon d;

                daemon_init(&d, LIMITS);
                (void)snprintf(path, sizeof(path), "%s/other", d.folder);
                assert_int_equal(control_listen(&d.control, path, modes[i][0], "no-such-group-here", false, &e), 0);
                assert_int_equal(stat(path, &s), 0);
                assert_int_equal(s.st_mode & 07777, modes[i][1]);
                assert_int_equal(s.st_gid, getegid());
                daemon_deinit(&d);
        }
}

static void test_left_behind(void **state) {
        _cleanup_close_ int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        Explanation e = EXPLANATION_NULL;
        struct sockaddr_un address;
        Daemon d;
        PEER_READER(in);
        int fd;

        daemon_init(&d, LIMITS);
        control_deinit(&d.control);
        address_of(&d, &address);
        assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof(address)), 0);
        dead = close_fd(dead);
        control_init(&d.control, d.event, LIMITS, handle, &d);
        assert_int_equal(control_listen(&d.control, d.path, 0600, NULL, false, &e), 0);
        fd = peer_new(&d);
        peer_ask(&d, fd, 3, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, fd, &in, 3);
        close_fd(fd);
        daemon_deinit(&d);
}

/* A daemon that accepts nobody, with all places before it taken, is not dead, and is not waited for. */
/* What somebody else keeps there is not removed, whatever connect(2) says of it. */
static void test_no_socket(void **state) {
        Explanation e = EXPLANATION_NULL;
        Daemon d;
        FILE *f;

        daemon_init(&d, LIMITS);
        control_deinit(&d.control);
        control_init(&d.control, d.event, LIMITS, handle, &d);
        f = fopen(d.path, "w");
        assert_non_null(f);
        fclose(f);
        assert_int_equal(control_listen(&d.control, d.path, 0600, NULL, false, &e), REFUSED_EXISTS);
        assert_non_null(strstr(e.text, "is not a socket"));
        assert_int_equal(access(d.path, F_OK), 0);
        assert_int_equal(unlink(d.path), 0);
        daemon_deinit(&d);
}

static void test_alive_but_busy(void **state) {
        _cleanup_close_ int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;
        int waiting[64];
        size_t n = 0;
        Daemon d;

        daemon_init(&d, LIMITS);
        control_deinit(&d.control);
        address_of(&d, &address);
        assert_int_equal(bind(busy, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(busy, 0), 0);
        for (;; n++) {
                assert_true(n < 64);
                waiting[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                if (connect(waiting[n], (struct sockaddr *)&address, sizeof(address)) < 0)
                        break;
        }
        assert_int_equal(errno, EAGAIN);
        control_init(&d.control, d.event, LIMITS, handle, &d);
        alarm(20); /* instead of a test that hangs */
        expect_refusal(&d, d.path, 0600, NULL, REFUSED_EXISTS, "another daemon already listens");
        alarm(0);
        assert_int_equal(access(d.path, F_OK), 0);
        for (size_t i = 0; i <= n; i++)
                close_fd(waiting[i]);
        unlink(d.path);
        daemon_deinit(&d);
}

/* As systemd gives it: it blocks, and its file is not ours. */
static void test_given(void **state) {
        struct sockaddr_un address;
        Daemon d;
        PEER_READER(in);
        int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

        daemon_init(&d, LIMITS);
        control_deinit(&d.control);
        address_of(&d, &address);
        assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listening, 10), 0);
        control_init(&d.control, d.event, LIMITS, handle, &d);
        assert_int_equal(control_listen_fd(&d.control, listening, false), 0);
        fd = peer_new(&d);
        peer_ask(&d, fd, 3, PERFD__V1__REQUEST__BODY_STATUS);
        expect_ok(&d, fd, &in, 3);
        control_deinit(&d.control);
        assert_int_equal(access(d.path, F_OK), 0);
        unlink(d.path);
        expect_nothing(&d, fd, &in, true);
        close_fd(fd);
        daemon_deinit(&d);
}

static void check_given(int fd, const char *expected) {
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(control_check_given(fd, "control", &e), expected ? REFUSED_INVALID : 0);
        if (expected)
                assert_non_null(strstr(e.text, expected));
        close_fd(fd);
}

/* Only a peer on a stream socket of AF_UNIX is somebody. */
static void test_given_others(void **state) {
        static const struct {
                int family, type;
                bool listens;
                const char *expected;
        } cases[] = {
                { AF_UNIX, SOCK_STREAM, true, NULL },
                { AF_UNIX, SOCK_STREAM, false, "does not listen" },
                { AF_UNIX, SOCK_DGRAM, false, "is a datagram socket" },
                { AF_UNIX, SOCK_SEQPACKET, true, "is a SOCK_SEQPACKET socket" },
                { AF_INET, SOCK_STREAM, true, "is a socket of the network" },
                { AF_INET6, SOCK_STREAM, false, "is a socket of the network" },
                { AF_NETLINK, SOCK_RAW, false, "another family" },
        };
        int pair[2];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct sockaddr_storage address = { .ss_family = (sa_family_t)cases[i].family }; /* any port; an abstract name */
                socklen_t size = cases[i].family == AF_UNIX ? sizeof(sa_family_t) : sizeof(address);
                int fd = socket(cases[i].family, cases[i].type | SOCK_CLOEXEC, 0);

                if (fd < 0 && cases[i].family == AF_INET6 && errno == EAFNOSUPPORT)
                        continue; /* a kernel without */
                assert_true(fd >= 0);
                if (cases[i].listens) {
                        assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
                        assert_int_equal(listen(fd, 1), 0);
                }
                check_given(fd, cases[i].expected);
        }
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        check_given(pair[0], "does not listen");
        close_fd(pair[1]);
        check_given(open("/dev/null", O_RDONLY | O_CLOEXEC), "is a file, not a socket");
        check_given(-1, "is not open");
}

/* Who has no credentials gets nothing, even if its socket were listened on. */
static void test_given_network(void **state) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t size = sizeof(address);
        Daemon d;
        PEER_READER(in);
        int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        daemon_init(&d, LIMITS);
        assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listening, 10), 0);
        assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
        assert_int_equal(control_listen_fd(&d.control, listening, true), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
        expect_nothing(&d, fd, &in, true);
        assert_int_equal(d.control.n_connections, 0);
        close_fd(fd);
        daemon_deinit(&d);
}

/* TargetRef the log names, whatever the program calls itself. */
static void test_peer_text(void **state) {
        static const struct {
                const char *program, *expected;
        } cases[] = {
                { "perfctl 0.1", "perfctl 0.1, pid " }, { "", "pid " }, { "a\nb\x1b[31m", "a\\x0ab\\x1b[31m, pid " },
                { "a name that is longer than it may be", "a name that is longer t, pid " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
                Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;
                Perfd__V1__ServerMessage *m;
                uint8_t bytes[256];
                char expected[128];
                Daemon d;
                PEER_READER(in);
                bool is_end;
                int fd;

                daemon_init(&d, LIMITS);
                fd = peer_new(&d);
                request.body_case = PERFD__V1__REQUEST__BODY_HELLO;
                request.hello = &hello;
                hello.program = (char *)cases[i].program;
                peer_write(fd, bytes, put_request(bytes, &request));
                m = peer_read(&d, fd, &in, &is_end);
                assert_non_null(m);
                (void)snprintf(expected, sizeof(expected), "%s%d, uid %u", cases[i].expected, (int)getpid(), (unsigned)getuid());
                assert_string_equal(m->response->message, expected);
                perfd__v1__server_message__free_unpacked(m, NULL);
                close_fd(fd);
                daemon_deinit(&d);
        }
}

/* --- on stopping, another daemon starts on the same path --- */

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);

static Daemon *successor; /* starts when the next path is about to be removed */
static int successor_says;

int __wrap_unlink(const char *path) {
        Daemon *d = successor;
        Explanation e = EXPLANATION_NULL;

        successor = NULL;
        if (d)
                successor_says = control_listen(&d->control, d->path, 0600, NULL, true, &e);
        return __real_unlink(path);
}

static bool can_connect(const Daemon *d) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address;

        address_of(d, &address);
        return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

/* Whoever starts while the other one stops either is told that it is there, or keeps its socket. */
static void test_successor(void **state) {
        Explanation e = EXPLANATION_NULL;
        Daemon old, next = { .given_fd = -1 };

        daemon_init(&old, LIMITS);
        strcpy(next.path, old.path);
        assert_true(sd_event_new(&next.event) >= 0);
        control_init(&next.control, next.event, LIMITS, handle, &next);
        successor = &next;
        control_deinit(&old.control);
        assert_null(successor); /* it came in between */
        if (successor_says != 0) {
                assert_int_equal(successor_says, REFUSED_EXISTS);
                assert_int_equal(control_listen(&next.control, next.path, 0600, NULL, true, &e), 0);
        }
        assert_true(can_connect(&next));
        control_deinit(&next.control);
        sd_event_unref(next.event);
        daemon_deinit(&old);
}

/* What is there was made by somebody else, after ours was removed by hand: it is left alone. */
static void test_not_ours(void **state) {
        Explanation e = EXPLANATION_NULL;
        Daemon old, next = { .given_fd = -1 };

        daemon_init(&old, LIMITS);
        strcpy(next.path, old.path);
        assert_int_equal(unlink(old.path), 0);
        assert_true(sd_event_new(&next.event) >= 0);
        control_init(&next.control, next.event, LIMITS, handle, &next);
        assert_int_equal(control_listen(&next.control, next.path, 0600, NULL, true, &e), 0);
        control_deinit(&old.control);
        assert_true(can_connect(&next));
        control_deinit(&next.control);
        sd_event_unref(next.event);
        daemon_deinit(&old);
}

/* --- without fds --- */

int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

static int accept_fails;       /* errno of the next calls */
static unsigned n_fail;        /* how many of them */

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
        if (n_fail == 0)
                return __real_accept4(fd, address, length, flags);
        n_fail--;
        errno = accept_fails;
        return -1;
}

/* A peer of the stream socket gets an fd of the reserve for as long as it takes to tell it; the reserve is that of the kernel. */
static void test_no_fds(void **state) {
        static const bool kinds[] = { false, true };
        struct rlimit before, few;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        few = before;
        few.rlim_max = 100; /* for good, in this process: root could raise it, nobody has to */
        few.rlim_cur = 100;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(fd_limit_init(), 0);
        assert_int_equal(fd_limit(), 100);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                int taken[200], fd, n = 0;
                Daemon d;
                PEER_READER(in);

                daemon_init_as(&d, LIMITS, kinds[i]);
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* the peer, whose fds are ours */
                assert_true(fd >= 0);
                while ((taken[n] = dup(STDERR_FILENO)) >= 0)
                        n++;
                assert_int_equal(errno, EMFILE);
                assert_int_equal(taken[n - 1], 100 - FD_RESERVE - 1);
                peer_connect(&d, fd);
                if (kinds[i] && getuid() == 0) { /* root is served */
                        peer_ask(&d, fd, 1, PERFD__V1__REQUEST__BODY_STATUS);
                        expect_ok(&d, fd, &in, 1);
                } else {
                        expect_refused(&d, fd, &in, PERFD__V1__STATUS__STATUS_EXHAUSTED, "no fd left for this connection");
                        expect_nothing(&d, fd, &in, true);
                        assert_int_equal(d.control.n_connections, 0);
                }
                assert_int_equal(dup(STDERR_FILENO), -1); /* the reserve is closed again */
                while (n > 0)
                        close_fd(taken[--n]);
                close_fd(fd);
                fd = peer_new(&d); /* and everything is as before */
                frame_reader_deinit(&in);
                frame_reader_init(&in, FRAME_MAX_SERVER);
                peer_ask(&d, fd, 2, PERFD__V1__REQUEST__BODY_STATUS);
                expect_ok(&d, fd, &in, 2);
                close_fd(fd);
                daemon_deinit(&d);
        }
}

/* Where not even the system has any, nobody is accepted for a moment; nothing that this needs is made then. */
static void test_pause(void **state) {
        static const int errors[] = { ENFILE, ENOMEM, ENOBUFS, EMFILE };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                PEER_READER(in);
                unsigned n_before;
                Daemon d;
                int fd;

                daemon_init(&d, LIMITS);
                n_before = n_timers;
                accept_fails = errors[i];
                n_fail = 2;
                fd = peer_new(&d);
                assert_int_equal(d.control.n_connections, 0);
                assert_int_equal(n_timers, n_before);
                for (unsigned turns = 0; d.control.n_connections == 0; turns++) {
                        assert_true(turns < 100);
                        assert_true(sd_event_run(d.event, 1000000) >= 0);
                }
                peer_ask(&d, fd, 1, PERFD__V1__REQUEST__BODY_STATUS);
                expect_ok(&d, fd, &in, 1);
                close_fd(fd);
                daemon_deinit(&d);
        }
}

static void test_statuses(void **state) {
        static const Perfd__V1__Status expected[] = {
                [0] = PERFD__V1__STATUS__STATUS_INTERNAL,
                [REFUSED_INVALID] = PERFD__V1__STATUS__STATUS_INVALID,
                [REFUSED_NOT_FOUND] = PERFD__V1__STATUS__STATUS_NOT_FOUND,
                [REFUSED_EXISTS] = PERFD__V1__STATUS__STATUS_EXISTS,
                [REFUSED_DENIED] = PERFD__V1__STATUS__STATUS_DENIED,
                [REFUSED_EXHAUSTED] = PERFD__V1__STATUS__STATUS_EXHAUSTED,
                [REFUSED_UNSUPPORTED] = PERFD__V1__STATUS__STATUS_UNSUPPORTED,
                [REFUSED_CANCELLED] = PERFD__V1__STATUS__STATUS_EXHAUSTED,
                [_REFUSED_MAX] = PERFD__V1__STATUS__STATUS_INTERNAL,
        };

        for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
                assert_int_equal(status_of_refusal((int)i), expected[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_modes),
                cmocka_unit_test(test_group_that_is_not_there),
                cmocka_unit_test(test_left_behind),
                cmocka_unit_test(test_no_socket),
                cmocka_unit_test(test_alive_but_busy),
                cmocka_unit_test(test_given),
                cmocka_unit_test(test_given_others),
                cmocka_unit_test(test_given_network),
                cmocka_unit_test(test_peer_text),
                cmocka_unit_test(test_statuses),
                cmocka_unit_test(test_successor),
                cmocka_unit_test(test_not_ours),
                cmocka_unit_test(test_pause),
                cmocka_unit_test(test_no_fds), /* the last: its limit stays */
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
