/*
 * Readings of wall time as subscribers hear them, by a line of what is in their packets: `w` a reading, `w!` one that says that wall
 * time was set, `i` an item, `s` something else, with blanks between packets.
 */
#include "tests/unit/dispatcher-rig.h"

#include <stdio.h>

#include "proto/perfd.pb-c.h"

static struct {
        nsec_t now, offset;
} host;

static nsec_t play_read(clockid_t clock) {
        host.now += 10;
        return clock == CLOCK_REALTIME ? host.now + host.offset : host.now;
}

static bool play_adjustment(nsec_t *ret_error, bool *ret_is_synchronized) {
        *ret_error = 1000;
        *ret_is_synchronized = true;
        return true;
}

static const WallSource played = { play_read, play_adjustment };

static char said[256];
static Perfd__V1__WallReading last;

static void say(const char *what) {
        (void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s", what);
}

static void take_packet(const Perfd__V1__Packet *p) {
        if (*said)
                say(" ");
        if (p->wall) {
                say(p->wall->since > 0 ? "w!" : "w");
                last = *p->wall;
        }
        for (size_t i = 0; i < p->n_items; i++)
                say("i");
        if (!p->wall && p->n_items == 0)
                say("s");
}

/* What has come since it was asked last. */
static const char *heard(int fd) {
        static uint8_t bytes[65536];
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

        *said = '\0';
        for (const uint8_t *at = bytes; n > 0 && at < bytes + n;) {
                Perfd__V1__ServerMessage *m;
                uint32_t length;

                memcpy(&length, at, sizeof(length));
                length = le32toh(length);
                m = perfd__v1__server_message__unpack(NULL, length, at + sizeof(length));
                assert_non_null(m);
                assert_non_null(m->packet);
                take_packet(m->packet);
                perfd__v1__server_message__free_unpacked(m, NULL);
                at += sizeof(length) + length;
        }
        return said;
}

static void push(Rig *r, nsec_t time) {
        assert_true(queue_push(&r->full[0], make_batch(0, time, &time, 1)));
        assert_true(queue_push(&r->full[1], make_batch(1, time, NULL, 0)));
        assert_int_equal(dispatcher_run_cycle(&r->dispatcher, false), 0);
}

static void test_readings(void **state) {
        Rig r;

        host.now = 1000;
        host.offset = 1 << 30;
        rig_init_wall(&r, &played);
        assert_string_equal(heard(r.peer), "w"); /* at the beginning, before anything happens */
        assert_int_equal(last.wall - last.time, host.offset);
        assert_int_equal(last.host_error, 1000);
        assert_true(last.synchronized);
        push(&r, 500);
        push(&r, 600);
        assert_string_equal(heard(r.peer), "i i");
        host.now += WALL_READING_AGE; /* nobody is told before there is something to be told */
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        assert_string_equal(heard(r.peer), "");
        push(&r, 700);
        push(&r, 800);
        assert_string_equal(heard(r.peer), "w i i");
        host.offset += NSEC_PER_SEC;
        push(&r, 900); /* the next item comes behind the reading that says so */
        assert_string_equal(heard(r.peer), "w! i");
        assert_int_equal(last.wall - last.time, host.offset);
        rig_deinit(&r);
}

/* The kernel says that it was set: a quiet stream is told at once, and once. */
static void test_quiet(void **state) {
        Rig r;

        host.now = 1000;
        host.offset = 1 << 30;
        rig_init_wall(&r, &played);
        assert_string_equal(heard(r.peer), "w");
        host.offset -= NSEC_PER_SEC / 2;
        r.dispatcher.is_wall_set = true;
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        assert_string_equal(heard(r.peer), "w!");
        r.dispatcher.is_wall_set = true; /* to what it was already */
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        assert_string_equal(heard(r.peer), "");
        push(&r, 900);
        assert_string_equal(heard(r.peer), "i");
        rig_deinit(&r);
}

/* One that comes later to the same channel gets its own; that wall time was set before it came is not news to it. */
static void test_later(void **state) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];
        Rig r;

        host.now = 1000;
        host.offset = 1 << 30;
        rig_init_wall(&r, &played);
        assert_string_equal(heard(r.peer), "w");
        host.offset += NSEC_PER_SEC;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        *s = (Subscriber){ .id = 2, .fd = fds[0], .order = STREAM_BY_TIME, .since = 1, .queue_bytes = 1 << 20 };
        assert_int_equal(dispatcher_subscribe(&r.dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r.dispatcher, 2), 0);
        assert_string_equal(heard(fds[1]), "w!");
        assert_int_equal(last.wall - last.time, host.offset);
        push(&r, 900);
        assert_string_equal(heard(r.peer), "w! i"); /* the first one has not heard it yet */
        assert_int_equal(last.wall - last.time, host.offset);
        rig_deinit(&r);
        close_fd(fds[1]);
}

/* None are wanted. */
static void test_none(void **state) {
        Rig r;

        rig_init(&r);
        push(&r, 900);
        assert_string_equal(heard(r.peer), "i");
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_readings), cmocka_unit_test(test_quiet), cmocka_unit_test(test_later),
                cmocka_unit_test(test_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
