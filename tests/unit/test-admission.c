/*
 * Who gets a connection when all are taken, and who loses one for it: peers of any uid, by a getsockopt(2) that says who they
 * are. A letter is a peer of that uid: 'r' is root, 'a' to 'h' are others.
 */
#include "tests/unit/control-rig.h"

#include <sys/resource.h>

#include "daemon/base/fd-limit.h"
#include "daemon/control/listener.h"

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);

static uid_t next_uid;

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length) {
        int r = __real_getsockopt(fd, level, name, value, length);

        if (r == 0 && level == SOL_SOCKET && name == SO_PEERCRED)
                ((struct ucred *)value)->uid = next_uid;
        return r;
}

#define PEERS 32

typedef struct Peers {
        Daemon daemon;
        int fds[PEERS];
        FrameReader in[PEERS];
        char uids[PEERS];
        size_t n;
} Peers;

static uint64_t kept_id; /* an event ends with this connection */

static bool keeps(void *userdata, uint64_t id) {
        return id == kept_id;
}

static void peers_init(Peers *p, ControlLimits limits, bool may_change) {
        *p = (Peers){ .n = 0 };
        daemon_init_as(&p->daemon, limits, may_change);
        p->daemon.control.keeps = keeps;
        p->daemon.control.idle_after = 0;
        kept_id = 0;
}

static void peers_deinit(Peers *p) {
        for (size_t i = 0; i < p->n; i++) {
                close_fd(p->fds[i]);
                frame_reader_deinit(&p->in[i]);
        }
        daemon_deinit(&p->daemon);
}

/* Each says something at once, so that the first of them is the one that was idle for longest. */
static void come(Peers *p, const char *uids) {
        for (; *uids; uids++, p->n++) {
                assert_true(p->n < PEERS);
                next_uid = *uids == 'r' ? 0 : 1000 + (uid_t)*uids;
                p->uids[p->n] = *uids;
                frame_reader_init(&p->in[p->n], FRAME_MAX_SERVER);
                p->fds[p->n] = peer_new(&p->daemon);
        }
}

static bool is_open(Peers *p, size_t i, const char *says) {
        bool is_end = false;
        uint8_t bytes[64];
        Perfd__V1__ServerMessage *m;

        (void)send(p->fds[i], bytes, put_simple(bytes, 5, PERFD__V1__REQUEST__BODY_STATUS), MSG_NOSIGNAL);
        daemon_run(&p->daemon);
        m = peer_read(&p->daemon, p->fds[i], &p->in[i], &is_end);
        if (m && m->response->id == 5) {
                perfd__v1__server_message__free_unpacked(m, NULL);
                return true;
        }
        assert_non_null(m); /* whoever is closed is told */
        assert_int_equal(m->response->id, 0);
        assert_int_equal(m->response->status, PERFD__V1__STATUS__STATUS_EXHAUSTED);
        if (!strstr(m->response->message, says))
                fail_msg("'%s' does not say '%s'", m->response->message, says);
        perfd__v1__server_message__free_unpacked(m, NULL);
        return false;
}

/* The uids of all, '-' in the place of one that was closed for another one, 'x' of one that found no place. */
static void expect(Peers *p, const char *expected) {
        char found[PEERS + 1] = "";

        for (size_t i = 0; i < p->n; i++) {
                const char *says = expected[i] == 'x' ? "which is the limit: close some" : "all connections were in use";

                found[i] = is_open(p, i, says) ? p->uids[i] : expected[i] == 'x' ? 'x' : '-';
        }
        assert_string_equal(found, expected);
}

static void test_each_socket_for_itself(void **state) {
        Explanation e = EXPLANATION_NULL;
        Peers p;

        peers_init(&p, (ControlLimits){ .connections = 4, .connections_per_uid = 4, .changers = 2 }, false);
        come(&p, "rrrrr"); /* slow clients of root, on the stream socket */
        strcat(p.daemon.path, "2");
        assert_int_equal(control_listen(&p.daemon.control, p.daemon.path, 0600, NULL, true, &e), 0);
        come(&p, "rr");
        expect(&p, "rrrrxrr");
        p.daemon.path[strlen(p.daemon.path) - 1] = '\0';
        peers_deinit(&p);
}

static void test_control(void **state) {
        static const struct {
                const char *come, *stay;
        } cases[] = {
                { "rrrr", "rrrr" },     /* all */
                { "rrrrr", "-rrrr" },   /* who was idle for longest goes */
                { "arrr" "r", "-rrrr" }, /* for root anybody */
                { "aaa", "-aa" },       /* half for each other uid */
                { "aabb" "c", "aabbx" }, /* who has none gets none of others */
                { "aabb" "r", "-abbr" },
                { "aabb" "a", "-abba" },
                { "rrrr" "a", "rrrrx" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Peers p;

                peers_init(&p, (ControlLimits){ .connections = 1, .connections_per_uid = 1, .changers = 4 }, true);
                come(&p, cases[i].come);
                expect(&p, cases[i].stay);
                peers_deinit(&p);
        }
}

/* Where nobody is idle root has one more, and others do not. */
static void test_one_more(void **state) {
        Peers p;

        peers_init(&p, (ControlLimits){ .connections = 1, .connections_per_uid = 1, .changers = 1 }, true);
        come(&p, "a");
        kept_id = 1;
        come(&p, "brr");
        expect(&p, "ax-r"); /* the second root needs no place beyond that one */
        peers_deinit(&p);

        peers_init(&p, (ControlLimits){ .connections = 1, .connections_per_uid = 1, .changers = 1 }, true);
        come(&p, "r");
        kept_id = 1;
        come(&p, "r");
        expect(&p, "rr");
        peers_deinit(&p);
}

static void test_stream(void **state) {
        static const struct {
                const char *come, *stay;
        } cases[] = {
                { "aaa" "a", "aaax" },     /* three of one uid */
                { "aaabbb" "c", "-aabbbc" }, /* two uids have taken all: the third has a place */
                { "aaabbb" "cc", "-aa-bbcc" }, /* and another one, so that all have as many */
                { "aaabbb" "ccc", "-aa-bbccx" },
                { "abcdef" "g", "-bcdefg" }, /* one for each: whoever has none comes in for who was idle for longest */
                { "abcdef" "gg", "-bcdefgx" },
                { "abcdef" "rr", "--cdefrr" }, /* for root anybody */
                { "aabbcc" "d", "-abbccd" },
                { "aabbcd" "d", "aabbcdx" }, /* it would only be taken back */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Peers p;

                peers_init(&p, (ControlLimits){ .connections = 6, .connections_per_uid = 3, .changers = 1 }, false);
                come(&p, cases[i].come);
                expect(&p, cases[i].stay);
                peers_deinit(&p);
        }
}

/* Who has only just begun, or waits for perfd, is not idle: neither goes for another one, whoever that is. */
static void test_at_work(void **state) {
        static const struct {
                const char *come, *stay;
                bool may_change;
        } cases[] = {
                { "rrrr" "rrr", "rrrrrrr", true }, /* root has more */
                { "aa" "a", "aax", true },
                { "rrrr" "a", "rrrrx", true },
                { "abcd" "e", "abcdx", false },
                { "abcd" "rrr", "abcdrrr", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Peers p;

                peers_init(&p, (ControlLimits){ .connections = 4, .connections_per_uid = 3, .changers = 4 }, cases[i].may_change);
                p.daemon.control.idle_after = 1000 * NSEC_PER_SEC;
                come(&p, cases[i].come);
                expect(&p, cases[i].stay);
                peers_deinit(&p);
        }
}

/* Of two that were silent for as long, the one whose request is in its socket stays, or whose request waits for its turn. */
static void test_request_in_socket(void **state) {
        static const bool kinds[] = { true, false };

        for (size_t i = 0; i < ARRAY_SIZE(kinds) * 2; i++) {
                bool may_change = kinds[i % 2], is_deferred = i >= ARRAY_SIZE(kinds);
                sd_event_source *listens;
                uint8_t bytes[64];
                Peers p;

                peers_init(&p, (ControlLimits){ .connections = 2, .connections_per_uid = 2, .changers = 2 }, may_change);
                come(&p, may_change ? "rr" : "aa");
                p.daemon.defers = is_deferred;
                peer_write(p.fds[0], bytes, put_simple(bytes, 7, PERFD__V1__REQUEST__BODY_AVAILABLE));
                if (is_deferred)
                        daemon_run(&p.daemon);
                listens = p.daemon.control.listeners->source; /* who comes is looked at before what is read */
                assert_true(sd_event_source_set_priority(listens, SD_EVENT_PRIORITY_IMPORTANT) >= 0);
                come(&p, may_change ? "r" : "b");
                if (is_deferred) {
                        p.daemon.defers = false;
                        assert_non_null(p.daemon.deferred);
                        assert_int_equal(connection_resume(p.daemon.deferred), 0);
                        assert_int_equal(connection_go_on(p.daemon.deferred), 0);
                }
                expect_ok(&p.daemon, p.fds[0], &p.in[0], 7);
                expect(&p, may_change ? "r-r" : "a-b");
                peers_deinit(&p);
        }
}

/*
 * Where the fds are gone too, root waits in the queue of the socket, for those that are at work: nobody is ended for it, and who
 * leaves makes room. The peers' own fds are of this process as well, so they are made first.
 */
static void test_waits(void **state) {
        enum { COME = 20, SERVED = FD_RESERVE / 2, LEAVE = 10 };
        struct rlimit few = { .rlim_cur = 200, .rlim_max = 200 }; /* for good, in this process */
        int fds[COME], taken[200], n = 0;
        Daemon d;

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(fd_limit_init(), 0);
        daemon_init_as(&d, LIMITS, true);
        d.control.idle_after = 1000 * NSEC_PER_SEC;
        next_uid = 0;
        for (size_t i = 0; i < COME; i++) {
                fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                assert_true(fds[i] >= 0);
        }
        while ((taken[n] = dup(STDERR_FILENO)) >= 0)
                n++;
        for (size_t i = 0; i < COME; i++)
                peer_connect(&d, fds[i]);
        assert_int_equal(d.control.n_connections, SERVED);
        for (size_t i = 0; i < LEAVE; i++)
                fds[i] = close_fd(fds[i]);
        for (unsigned turns = 0; d.control.last_id < COME; turns++) {
                assert_true(turns < 1000);
                assert_true(sd_event_run(d.event, 1000000) >= 0);
        }
        daemon_run(&d);
        assert_int_equal(d.control.n_connections, COME - LEAVE);
        for (size_t i = LEAVE; i < COME; i++) {
                PEER_READER(in);

                peer_ask(&d, fds[i], 1, PERFD__V1__REQUEST__BODY_STATUS);
                expect_ok(&d, fds[i], &in, 1);
                close_fd(fds[i]);
        }
        while (n > 0)
                close_fd(taken[--n]);
        daemon_deinit(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_socket_for_itself),
                cmocka_unit_test(test_control),
                cmocka_unit_test(test_one_more),
                cmocka_unit_test(test_stream),
                cmocka_unit_test(test_at_work),
                cmocka_unit_test(test_request_in_socket),
                cmocka_unit_test(test_waits), /* the last: its limit stays */
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
