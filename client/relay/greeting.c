/*
 * The first frame on a connection to perfd is the relay's, before any byte of the client: what this client may do. perfd holds the
 * connection to it from then on, on parsed expressions, so the relay need not understand a request. Who reads metrics is connected with
 * the relay's own server of them instead.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/relay/connection.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"

#define GREETING_WITHIN (10 * NSEC_PER_SEC)
#define GREETING_MAX ((size_t)64 << 10) /* bytes of perfd's response */

static void refuse_by_system(RelayConnection *c, const char *what, int error) {
        char text[200];

        (void)snprintf(text, sizeof(text), "perfd on this host cannot be reached: %s: %s", what, strerror(error));
        connection_refuse(c, error == EMFILE || error == ENFILE ? PERFD__V1__STATUS__STATUS_EXHAUSTED : PERFD__V1__STATUS__STATUS_INTERNAL,
                          "no-perfd", text);
}

static void on_perfd(void *userdata, uint32_t revents) {
        connection_progress(userdata);
}

static void log_connected(RelayConnection *c) {
        char address[ENDPOINT_TEXT_SIZE];

        endpoint_text(&c->address, address);
        log_print_with(LOG_INFO, MESSAGE_REMOTE_CONNECTED,
                       LOG_FIELDS({ "ADDRESS", address }, { "SUBJECT", c->peer.subject }, { "SERIAL", c->peer.serial },
                                  { "CLIENT", c->name }),
                       "%s, %s, is connected%s, by the item '%s' of 'clients'", c->name, address, c->is_http ? " for metrics" : "",
                       c->rule->name);
}

/* 0; -1: it has ended. */
static int try_connect(RelayConnection *c) {
        const RelayConfig *config = c->relay->config;
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        memccpy(address.sun_path, c->rule->control ? config->control : config->stream, '\0', sizeof(address.sun_path) - 1); /* the table of keys knows its length */
        c->is_pending = false;
        if (connect(c->perfd_fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
                return 0;
        if (errno == EAGAIN) { /* unix(7): so many wait to be accepted */
                c->is_pending = true;
                return 0;
        }
        refuse_by_system(c, address.sun_path, errno);
        return -1;
}

/* Nothing is waited for yet. */
static void take_perfd(RelayConnection *c, int fd) {
        c->perfd_fd = fd;
        c->perfd_socket = (WatchedSocket){ .fd = fd, .ready = on_perfd, .userdata = c };
}

/* There is nobody to greet. */
void connection_serve_metrics(RelayConnection *c) {
        int ends[2];

        c->state = RELAY_GREETING;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
                connection_refuse(c, PERFD__V1__STATUS__STATUS_EXHAUSTED, "no-metrics", strerror(errno));
                return;
        }
        take_perfd(c, ends[0]);
        if (!metrics_server_give(c->relay->metrics, ends[1])) {
                connection_refuse(c, PERFD__V1__STATUS__STATUS_EXHAUSTED, "no-metrics", "too many requests of metrics wait");
                return;
        }
        c->may_pass = true;
        c->state = RELAY_PUMPING;
        log_connected(c);
        connection_progress(c);
}

void connection_greet(RelayConnection *c) {
        int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        c->state = RELAY_GREETING;
        c->deadline = clock_now(CLOCK_MONOTONIC) + GREETING_WITHIN;
        if (fd < 0) {
                refuse_by_system(c, "socket(2)", errno);
                return;
        }
        take_perfd(c, fd);
        frame_reader_init(&c->greeting, GREETING_MAX);
        r = tell_hello(c, &c->in);
        if (r < 0) {
                connection_lose(c, "no-memory", strerror(-r));
                return;
        }
        c->is_pending = true;
        connection_progress(c);
}

/* perfd's response: what is behind it, which is nothing, would be passed on. -1: it has ended. */
static int take_response(RelayConnection *c, const uint8_t *message, size_t length) {
        Perfd__V1__ServerMessage *m = perfd__v1__server_message__unpack(NULL, length, message);
        bool is_accepted = m && m->body_case == PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE &&
                           m->response->status == PERFD__V1__STATUS__STATUS_OK;

        if (is_accepted) {
                perfd__v1__server_message__free_unpacked(m, NULL);
                c->may_pass = true;
                return 0;
        }
        if (m && m->body_case == PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE)
                connection_refuse(c, m->response->status, m->response->reason, m->response->message);
        else
                connection_refuse(c, PERFD__V1__STATUS__STATUS_INTERNAL, "no-perfd", "what answers in the place of perfd is not perfd");
        if (m)
                perfd__v1__server_message__free_unpacked(m, NULL);
        return -1;
}

/* 1: perfd has accepted; 0: not yet; -1: it has ended. */
static int read_response(RelayConnection *c) {
        const uint8_t *message;
        size_t length, size;
        uint8_t *room;
        ssize_t n;
        int r;

        if (frame_reader_room(&c->greeting, &room, &size) < 0) {
                connection_lose(c, "no-memory", strerror(ENOMEM));
                return -1;
        }
        n = recv(c->perfd_fd, room, size, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                connection_refuse(c, PERFD__V1__STATUS__STATUS_INTERNAL, "no-perfd", "perfd on this host has closed the connection");
                return -1;
        }
        frame_reader_fed(&c->greeting, (size_t)n);
        r = frame_reader_next(&c->greeting, &message, &length);
        if (r == FRAME_E_TOO_LONG) {
                connection_refuse(c, PERFD__V1__STATUS__STATUS_INTERNAL, "no-perfd", "what answers in the place of perfd is not perfd");
                return -1;
        }
        return r == 0 ? (take_response(c, message, length) < 0 ? -1 : 1) : 0;
}

static void begin_pumping(RelayConnection *c) {
        size_t behind = c->greeting.end - c->greeting.begin, made;
        const uint8_t *bytes = c->greeting.buffer + c->greeting.begin;

        connection_begin_compression(c);
        if (behind > 0 && (c->is_compressed ? connection_compress(c, bytes, behind, false, &made)
                                            : unwritten_add(&c->out, bytes, behind)) < 0) {
                connection_lose(c, "no-memory", strerror(ENOMEM));
                return;
        }
        frame_reader_deinit(&c->greeting);
        c->state = RELAY_PUMPING;
        c->deadline = 0;
        log_connected(c);
        connection_progress(c);
}

void connection_go_on_greeting(RelayConnection *c) {
        int r;

        if (c->is_pending && try_connect(c) < 0)
                return;
        if (!c->is_pending && !unwritten_is_empty(&c->in)) {
                ssize_t n = send(c->perfd_fd, c->in.bytes + c->in.begin, c->in.end - c->in.begin, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE) {
                        refuse_by_system(c, "send(2)", errno);
                        return;
                }
                if (n < 0 && errno == EPIPE) /* it says why before it closes */
                        unwritten_deinit(&c->in);
                else if (n > 0)
                        unwritten_drop(&c->in, (size_t)n);
        }
        r = c->is_pending || !unwritten_is_empty(&c->in) ? 0 : read_response(c);
        if (r > 0)
                begin_pumping(c);
        else if (r == 0)
                connection_watch(c);
}
