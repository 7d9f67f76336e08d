/*
 * For tests of control/: a supervisor of a few lines on a socket in a temporary folder, and its peers, all in one
 * thread. Link with --wrap=sd_event_add_time_relative, by which patience is counted and can be cut.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/control/control.h"

#define LONG ((size_t)1 << 20)

/* --- the daemon's side --- */

int __real_sd_event_add_time_relative(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                                      sd_event_time_handler_t callback, void *userdata);
int __wrap_sd_event_add_time_relative(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                                      sd_event_time_handler_t callback, void *userdata);

static unsigned n_timers;
static bool is_impatient;

int __wrap_sd_event_add_time_relative(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                                      sd_event_time_handler_t callback, void *userdata) {
        assert_int_equal(usec, 10000000);
        n_timers++;
        return __real_sd_event_add_time_relative(e, ret, clock, is_impatient ? 1000 : usec, accuracy, callback, userdata);
}

typedef struct Daemon {
        char folder[64], path[96];
        sd_event *event;
        Control control;
        unsigned n_handled, n_changers, n_given, n_not_given; /* n_changers: of n_handled, by a socket that may change something */
        int given_fd;
        uint8_t *unsent;
        size_t n_unsent;
        bool answer_before_give;
        bool defers;          /* available: each time that it is handled, until this is false */
        Connection *deferred;
        uint64_t gone;        /* id of the connection that went last */
        void (*in_the_middle)(struct Daemon *d); /* of a deferred request */
} Daemon;

/* Answers each request by its id and the size of what it said; `list` gets a long answer, `subscribe` the socket. */
static inline int handle(void *userdata, Connection *c, const Perfd__V1__Request *request) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Daemon *d = userdata;
        char text[64] = "";
        _cleanup_free_ char *long_text = NULL;
        int r;

        d->n_handled++;
        d->n_changers += connection_peer(c)->may_change;
        if (request->body_case == PERFD__V1__REQUEST__BODY_AVAILABLE && d->defers) {
                connection_defer(c);
                d->deferred = c;
                return 0;
        }
        if (request->body_case == PERFD__V1__REQUEST__BODY_AVAILABLE && d->in_the_middle)
                d->in_the_middle(d);
        response.id = request->id;
        response.message = text;
        if (request->body_case == PERFD__V1__REQUEST__BODY_VALIDATE)
                (void)snprintf(text, sizeof(text), "%zu", strlen(request->validate->yaml));
        if (request->body_case == PERFD__V1__REQUEST__BODY_HELLO) {
                connection_set_program(c, request->hello->program);
                assert_true(snprintf(text, sizeof(text), "%s", connection_peer(c)->text) < (int)sizeof(text));
        }
        if (request->body_case == PERFD__V1__REQUEST__BODY_LIST) {
                long_text = malloc(LONG + 1);
                assert_non_null(long_text);
                memset(long_text, 'x', LONG);
                long_text[LONG] = '\0';
                response.message = long_text;
        }
        if (request->body_case != PERFD__V1__REQUEST__BODY_SUBSCRIBE)
                return connection_respond(c, &response);
        if (!connection_may_give(c)) {
                d->n_not_given++;
                response.status = PERFD__V1__STATUS__STATUS_INVALID;
                return connection_respond(c, &response);
        }
        r = d->answer_before_give ? connection_respond(c, &response) : 0;
        assert_true(connection_give(c, &d->given_fd, &d->unsent, &d->n_unsent));
        d->n_given++;
        return r;
}

static inline void note_gone(void *userdata, uint64_t id) {
        ((Daemon *)userdata)->gone = id;
}

static inline void daemon_init_as(Daemon *d, ControlLimits limits, bool may_change) {
        Explanation e = EXPLANATION_NULL;

        *d = (Daemon){ .given_fd = -1 };
        n_timers = 0;
        is_impatient = false;
        strcpy(d->folder, "/tmp/test-connection.XXXXXX");
        assert_non_null(mkdtemp(d->folder));
        (void)snprintf(d->path, sizeof(d->path), "%s/socket", d->folder);
        assert_true(sd_event_new(&d->event) >= 0);
        control_init(&d->control, d->event, limits, handle, d);
        d->control.gone = note_gone;
        assert_int_equal(control_listen(&d->control, d->path, 0600, NULL, may_change, &e), 0);
}

static inline void daemon_init(Daemon *d, ControlLimits limits) {
        daemon_init_as(d, limits, true);
}

static inline void daemon_deinit(Daemon *d) {
        control_deinit(&d->control);
        assert_int_equal(access(d->path, F_OK), -1);
        assert_int_equal(rmdir(d->folder), 0);
        sd_event_unref(d->event);
        free(d->unsent);
        close_fd(d->given_fd);
}

/* Everything that can be done now. */
static inline void daemon_run(Daemon *d) {
        for (unsigned turns = 0;; turns++) {
                unsigned before = d->n_handled;
                int r = sd_event_run(d->event, 0);

                assert_true(r >= 0);
                assert_true(d->n_handled - before <= 16); /* others have their turn in between */
                assert_true(turns < 100000);
                if (r == 0)
                        return;
        }
}

#define LIMITS ((ControlLimits){ .connections = 100, .connections_per_uid = 50, .changers = 100 })

/* --- a peer's side --- */

static inline void connect_to(int fd, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        strcpy(address.sun_path, path);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

/* It waits to be accepted. */
static inline void peer_connect_first(const Daemon *d, int fd) {
        connect_to(fd, d->path);
}

static inline void peer_connect(Daemon *d, int fd) {
        peer_connect_first(d, fd);
        daemon_run(d);
}

static inline int peer_socket(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        assert_true(fd >= 0);
        return fd;
}

static inline int peer_new(Daemon *d) {
        int fd = peer_socket();

        peer_connect(d, fd);
        return fd;
}

/* Appends a request as a frame; the room is the caller's to know. */
static inline size_t put_request(uint8_t *to, Perfd__V1__Request *request) {
        size_t n = perfd__v1__request__pack(request, to + FRAME_HEADER_SIZE);

        frame_header_put(to, (uint32_t)n);
        return FRAME_HEADER_SIZE + n;
}

static inline size_t put_simple(uint8_t *to, uint64_t id, Perfd__V1__Request__BodyCase body) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ListRequest list = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__SubscribeRequest subscribe = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__AvailableRequest available = PERFD__V1__AVAILABLE_REQUEST__INIT;
        Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

        request.id = id;
        request.body_case = body;
        if (body == PERFD__V1__REQUEST__BODY_LIST)
                request.list = &list;
        else if (body == PERFD__V1__REQUEST__BODY_SUBSCRIBE)
                request.subscribe = &subscribe;
        else if (body == PERFD__V1__REQUEST__BODY_AVAILABLE)
                request.available = &available;
        else
                request.status = &empty;
        return put_request(to, &request);
}

static inline void peer_write(int fd, const void *bytes, size_t n) {
        assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

/* It has said this before it is accepted, so that no patience is over before. */
static inline int peer_new_saying(Daemon *d, const void *bytes, size_t n) {
        int fd = peer_socket();

        peer_connect_first(d, fd);
        peer_write(fd, bytes, n);
        daemon_run(d);
        return fd;
}

static inline void peer_ask(Daemon *d, int fd, uint64_t id, Perfd__V1__Request__BodyCase body) {
        uint8_t bytes[64];

        peer_write(fd, bytes, put_simple(bytes, id, body));
        daemon_run(d);
}

/* What has arrived, the daemon's turns in between; false at the end of the stream. */
static inline bool peer_fill(Daemon *d, int fd, FrameReader *in) {
        for (;;) {
                uint8_t *room;
                size_t size;
                ssize_t n;

                daemon_run(d);
                assert_int_equal(frame_reader_room(in, &room, &size), 0);
                n = recv(fd, room, size, 0);
                if (n > 0)
                        frame_reader_fed(in, (size_t)n);
                else
                        return n < 0 && errno == EAGAIN;
                if ((size_t)n < size)
                        return true;
        }
}

/* The next response, or NULL if nothing more comes; is_end: of the stream. */
static inline Perfd__V1__ServerMessage *peer_read(Daemon *d, int fd, FrameReader *in, bool *ret_is_end) {
        Perfd__V1__ServerMessage *m;
        const uint8_t *message;
        size_t length;
        bool goes_on = true;

        for (size_t held; frame_reader_next(in, &message, &length) != 0;) {
                held = in->end - in->begin;
                goes_on = peer_fill(d, fd, in);
                if (in->end - in->begin == held) {
                        *ret_is_end = !goes_on;
                        return NULL;
                }
        }
        m = perfd__v1__server_message__unpack(NULL, length, message);
        assert_non_null(m);
        assert_int_equal(m->body_case, PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE);
        return m;
}

static inline void expect_ok(Daemon *d, int fd, FrameReader *in, uint64_t id) {
        bool is_end;
        Perfd__V1__ServerMessage *m = peer_read(d, fd, in, &is_end);

        assert_non_null(m);
        assert_int_equal(m->response->id, id);
        assert_int_equal(m->response->status, PERFD__V1__STATUS__STATUS_OK);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

/* text: in its message, NULL for any. */
static inline void expect_refused(Daemon *d, int fd, FrameReader *in, Perfd__V1__Status status, const char *text) {
        bool is_end;
        Perfd__V1__ServerMessage *m = peer_read(d, fd, in, &is_end);

        assert_non_null(m);
        assert_int_equal(m->response->status, status);
        if (text && !strstr(m->response->message, text))
                fail_msg("'%s' does not say '%s'", m->response->message, text);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

static inline void expect_nothing(Daemon *d, int fd, FrameReader *in, bool end) {
        bool is_end;

        assert_null(peer_read(d, fd, in, &is_end));
        assert_int_equal(is_end, end);
}

#define PEER_READER(name) _cleanup_(frame_reader_deinit) FrameReader name = { .limit = FRAME_MAX_SERVER }
