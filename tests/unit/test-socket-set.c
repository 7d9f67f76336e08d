/* The sockets of a relay's connections as one source: who is called when, and who no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "client/relay/socket-set.h"

#define PAIRS (2 * SOCKETS_PER_TURN + 1)

/* A socket of a pair, and how often it was called. */
typedef struct Pair {
        WatchedSocket socket;
        SocketSet *set;
        struct Pair *victim; /* that it ends */
        int other;           /* end */
        unsigned n;
        uint32_t revents;
} Pair;

typedef struct Loop {
        sd_event *event;
        SocketSet set;
        Pair pairs[PAIRS];
} Loop;

static void on_ready(void *userdata, uint32_t revents) {
        Pair *p = userdata;

        p->n++;
        p->revents |= revents;
        if (p->victim)
                socket_set_forget(p->set, &p->victim->socket);
}

static int begin(void **state) {
        static Loop l;

        l = (Loop){ .event = NULL };
        assert_int_equal(sd_event_new(&l.event), 0);
        assert_int_equal(socket_set_open(&l.set, l.event), 0);
        for (size_t i = 0; i < PAIRS; i++) {
                int ends[2];

                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
                l.pairs[i] = (Pair){ .set = &l.set, .other = ends[1] };
                l.pairs[i].socket = (WatchedSocket){ .fd = ends[0], .ready = on_ready, .userdata = &l.pairs[i] };
        }
        *state = &l;
        return 0;
}

static int end(void **state) {
        Loop *l = *state;

        for (size_t i = 0; i < PAIRS; i++) {
                socket_set_forget(&l->set, &l->pairs[i].socket);
                close(l->pairs[i].socket.fd);
                close(l->pairs[i].other);
        }
        socket_set_close(&l->set);
        sd_event_unref(l->event);
        return 0;
}

static void watch(Loop *l, size_t i, uint32_t events) {
        assert_int_equal(socket_set_watch(&l->set, &l->pairs[i].socket, events), 0);
}

static void make_ready(Loop *l, size_t i) {
        assert_int_equal(write(l->pairs[i].other, "x", 1), 1);
}

/* One turn of the loop: false, if there was nothing to do. */
static bool turn(Loop *l) {
        int r = sd_event_run(l->event, 0);

        assert_true(r >= 0);
        return r > 0;
}

static void test_every_one_in_turns(void **state) {
        Loop *l = *state;

        for (size_t i = 0; i < PAIRS; i++) {
                watch(l, i, EPOLLIN);
                make_ready(l, i);
        }
        for (size_t turns = 1; turns <= 3; turns++) {
                unsigned n = 0;

                assert_true(turn(l));
                for (size_t i = 0; i < PAIRS; i++)
                        n += l->pairs[i].n;
                assert_int_equal(n, turns * SOCKETS_PER_TURN);
        }
        for (size_t i = 0; i < PAIRS; i++) { /* nobody twice before everybody once */
                assert_in_range(l->pairs[i].n, 1, 2);
                assert_int_equal(l->pairs[i].revents, EPOLLIN);
        }
}

/* Of two that are ready in one turn the first that is called ends the other. */
static void test_forgotten_meanwhile(void **state) {
        Loop *l = *state;

        l->pairs[0].victim = &l->pairs[1];
        l->pairs[1].victim = &l->pairs[0];
        for (size_t i = 0; i < 2; i++) {
                watch(l, i, EPOLLIN);
                make_ready(l, i);
        }
        assert_true(turn(l));
        assert_int_equal(l->pairs[0].n + l->pairs[1].n, 1);
        assert_true(turn(l)); /* the other is still there */
        assert_int_equal(l->pairs[0].n + l->pairs[1].n, 2);
        assert_true(l->pairs[0].n == 0 || l->pairs[1].n == 0);
}

/* What is waited for changes; hang-ups are told to who waits for nothing, and nothing at all to who was forgotten. */
static void test_events(void **state) {
        Loop *l = *state;

        watch(l, 0, 0);
        make_ready(l, 0);
        assert_false(turn(l));
        watch(l, 0, EPOLLIN);
        assert_true(turn(l));
        assert_int_equal(l->pairs[0].n, 1);
        watch(l, 0, 0);
        assert_false(turn(l));
        assert_int_equal(shutdown(l->pairs[0].other, SHUT_RDWR), 0);
        assert_true(turn(l));
        assert_true(l->pairs[0].revents & EPOLLHUP);
        socket_set_forget(&l->set, &l->pairs[0].socket);
        socket_set_forget(&l->set, &l->pairs[0].socket); /* the same again */
        assert_false(turn(l));
        assert_int_equal(l->pairs[0].n, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_every_one_in_turns, begin, end),
                cmocka_unit_test_setup_teardown(test_forgotten_meanwhile, begin, end),
                cmocka_unit_test_setup_teardown(test_events, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
