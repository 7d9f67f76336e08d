/*
 * One connection: whole requests in, responses out, one at a time. A request is only looked at when the response to
 * the one before has left, so that a peer that does not read holds at most one response. The first request, and half a
 * frame, have ten seconds; a whole silence behind them may last until somebody else needs the place (admission.c). A request
 * that has to wait for its turn stays where it was read, as bytes: it costs nothing beside the connection, and is taken out
 * again when it is handled.
 */
#include "daemon/control/connection.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/fd-limit.h"
#include "daemon/base/peer-socket.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "daemon/base/log.h"

#define PATIENCE_USEC 10000000 /* for the first request, for the rest of a frame, and for taking a response */
#define TAKES_MOST NSEC_PER_SEC /* for a response, where somebody else needs the place */
#define REQUESTS_PER_WAKEUP 16
#define SHORT_REQUEST ((size_t)64 << 10)      /* bytes of memory that any connection may have for its request */
#define LONG_REQUESTS_MOST ((size_t)48 << 20) /* that those which have more have together */
#define SHORT_RESPONSE SHORT_REQUEST          /* the same of responses that wait to be taken */
#define LONG_RESPONSES_MOST LONG_REQUESTS_MOST

static int connection_progress(Connection *c);

Connection *connection_free(Connection *c) {
        for (Connection **p = &c->control->connections; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        c->control->n_connections--;
                        break;
                }
        if (c->control->gone)
                c->control->gone(c->control->userdata, c->id);
        precedence_deinit(c->control, &c->precedence);
        sd_event_source_disable_unref(c->source);
        sd_event_source_disable_unref(c->patience);
        frame_reader_deinit(&c->in);
        peer_socket_close(c->fd);
        perfd__v1__limit__free_unpacked(c->limit, NULL);
        free(c->out);
        free(c);
        return NULL;
}

bool connection_is_scarce(const Connection *c) {
        return fd_is_of_reserve(c->fd);
}

Connection *connection_next(const Connection *c) {
        return c->next;
}

nsec_t connection_since(const Connection *c) {
        return c->since;
}

/* What the peer has sent waits in the socket: it was not silent, perfd was elsewhere. */
static bool connection_has_unread(const Connection *c) {
        int n = 0;

        return ioctl(c->fd, FIONREAD, &n) == 0 && n > 0;
}

bool connection_may_end(const Connection *c) {
        if (c->runs || c->more || c->waits || (c->control->keeps && c->control->keeps(c->control->userdata, c->id)))
                return false;
        if (c->out)
                return clock_now(CLOCK_MONOTONIC) - c->since > TAKES_MOST;
        return !connection_has_unread(c);
}

bool connection_is_idle(const Connection *c) {
        return connection_may_end(c) && clock_now(CLOCK_MONOTONIC) - c->since >= c->control->idle_after;
}

void connection_end(Connection *c, const char *reason, const char *text) {
        if (!c->out) /* else it is in the middle of a response */
                peer_tell(c->fd, PERFD__V1__STATUS__STATUS_EXHAUSTED, reason, text);
        connection_free(c);
}

/* Of clients that are limited. */
static bool is_limited(const Connection *c) {
        return !c->peer.may_change && c->peer.uid != 0;
}

/*
 * Whether long responses that wait to be taken, and one of n bytes, are more than those of its uid, or all, may be together. Who is
 * told that something was changed is told so.
 */
static bool holds_too_much(const Connection *c, Perfd__V1__Response__BodyCase body, size_t n) {
        size_t own = n, all = n;

        switch (body) {
        case PERFD__V1__RESPONSE__BODY_ADDED:
        case PERFD__V1__RESPONSE__BODY_SELECTED:
        case PERFD__V1__RESPONSE__BODY_RELOADED:
        case PERFD__V1__RESPONSE__BODY_EMITTED:
                return false;
        default:
                if (n <= SHORT_RESPONSE || !is_limited(c))
                        return false;
        }
        for (const Connection *i = c->control->connections; i; i = i->next)
                if (i->n_out > SHORT_RESPONSE && is_limited(i)) {
                        all += i->n_out;
                        own += i->peer.uid == c->peer.uid ? i->n_out : 0;
                }
        return all > LONG_RESPONSES_MOST || own > LONG_RESPONSES_MOST / 2;
}

void connection_give_up(Connection *c, const char *why) {
        LogCause charged = log_charge(connection_cause(c));

        log_print(LOG_ERR, MESSAGE_CONNECTION_CLOSED, "closed %s: %s", c->peer.text, why);
        (void)log_charge(charged);
        c->closed = true;
}

static int respond_exhausted(Connection *c, uint64_t id, const char *reason, const char *text) {
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        Perfd__V1__Response refused = PERFD__V1__RESPONSE__INIT;

        refused.id = id;
        refused.status = PERFD__V1__STATUS__STATUS_EXHAUSTED;
        refused.message = (char *)text;
        refused.reason = (char *)reason;
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = &refused;
        if (frame_pack(&m, &c->out, &c->n_out) < 0)
                connection_give_up(c, "no memory for its response");
        return 0;
}

static int respond_without_memory(Connection *c, uint64_t id) {
        return respond_exhausted(c, id, "response-memory", "long responses that clients have not read use all the memory for them: "
                                 "read those of your other connections, try again, or request less");
}

int connection_respond(Connection *c, Perfd__V1__Response *response) {
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        size_t n;

        assert(!c->out);
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = response;
        c->sent = 0;
        n = perfd__v1__server_message__get_packed_size(&m);
        if (n > FRAME_MAX_SERVER)
                return respond_exhausted(c, response->id, "too-long", TOO_LONG_FOR_FRAME);
        if (holds_too_much(c, response->body_case, n))
                return respond_without_memory(c, response->id);
        if (frame_pack_sized(&m, n, &c->out, &c->n_out) < 0)
                connection_give_up(c, "no memory for its response");
        return 0;
}

int connection_respond_frame(Connection *c, uint64_t id, Perfd__V1__Response__BodyCase body, uint8_t *frame, size_t begin, size_t end) {
        assert(!c->out);
        c->sent = 0;
        if (holds_too_much(c, body, end - begin)) {
                free(frame);
                return respond_without_memory(c, id);
        }
        c->out = frame;
        c->n_out = end;
        c->sent = begin;
        return 0;
}

bool connection_may_give(const Connection *c) {
        return frame_reader_is_empty(&c->in) && !c->ended;
}

bool connection_give(Connection *c, int *ret_fd, uint8_t **ret_unsent, size_t *ret_n_unsent) {
        if (!connection_may_give(c))
                return false;
        *ret_unsent = TAKE_PTR(c->out);
        *ret_n_unsent = c->n_out;
        precedence_deinit(c->control, &c->precedence);
        c->source = sd_event_source_disable_unref(c->source);
        *ret_fd = TAKE_FD(c->fd);
        c->given = true;
        return true;
}

/* Says in a response of its own what cannot be answered as a request, and ends the connection: what follows is lost. */
static int connection_reject(Connection *c, const char *text) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;

        frame_reader_deinit(&c->in);
        frame_reader_init(&c->in, FRAME_MAX_REQUEST);
        response.status = PERFD__V1__STATUS__STATUS_INVALID;
        response.message = (char *)text;
        response.reason = (char *)"bad-request";
        c->ended = true;
        return connection_respond(c, &response);
}

/* In the response of a request that is not even unpacked. */
static int connection_refuse(Connection *c, uint64_t id, int refusal, const Explanation *e) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;

        response.id = id;
        response.status = status_of_refusal(refusal);
        response.message = (char *)e->text;
        response.reason = (char *)e->reason;
        response.position = e->position;
        return connection_respond(c, &response);
}

static int connection_handle(Connection *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__Request *request = perfd__v1__request__unpack(NULL, length, bytes);
        int r;

        if (!request)
                return connection_reject(c, "the frame is not a perfd.v1.Request: see PROTOCOL.md");
        r = error_trace_of(c->control->handler(c->control->userdata, c, request), "a request by %s", c->peer.text);
        perfd__v1__request__free_unpacked(request, NULL);
        c->request = c->waits ? bytes : NULL;
        c->n_request = c->waits ? length : 0;
        return r;
}

void connection_defer(Connection *c) {
        c->waits = true;
}

bool connection_is_gone(const Connection *c) {
        return c->closed;
}

int connection_resume(Connection *c) {
        int r;

        assert(c->waits && c->request);
        c->waits = false;
        c->runs = true;
        r = connection_handle(c, c->request, c->n_request);
        c->runs = false;
        return r;
}

int connection_go_on(Connection *c) {
        return connection_progress(c);
}

/* Sends what there is to send; true if all of it left. */
static bool connection_send(Connection *c) {
        while (c->out && c->sent < c->n_out) {
                ssize_t n = send(c->fd, c->out + c->sent, c->n_out - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        if (errno != EAGAIN)
                                c->closed = true; /* the peer is gone: nothing to tell it any more */
                        return false;
                }
                c->sent += (size_t)n;
        }
        if (c->out)
                c->since = clock_now(CLOCK_MONOTONIC);
        free(TAKE_PTR(c->out));
        c->n_out = 0;
        return true;
}

/* Handles whole requests while their responses leave at once. */
static int connection_work(Connection *c) {
        Explanation e = EXPLANATION_NULL;
        const uint8_t *message;
        size_t length;
        uint64_t id;
        int r;

        c->more = false;
        if (c->given || c->waits)
                return 0;
        for (int i = 0; i < REQUESTS_PER_WAKEUP; i++) {
                if (!connection_send(c) || c->closed)
                        return 0;
                if (c->ended && frame_reader_is_empty(&c->in)) {
                        c->closed = true;
                        return 0;
                }
                r = frame_reader_next(&c->in, &message, &length);
                if (r == FRAME_E_NEED_MORE) {
                        c->closed = c->ended;
                        return 0;
                }
                if (r == FRAME_E_TOO_LONG)
                        r = connection_reject(c, "the frame exceeds HelloReply.max_request: send shorter requests");
                else {
                        r = request_check_size(message, length, c->peer.may_change, &id, &e);
                        r = r > 0 ? connection_refuse(c, id, r, &e) : connection_handle(c, message, length);
                }
                c->has_asked = true;
                c->since = clock_now(CLOCK_MONOTONIC);
                if (r < 0 || c->given || c->waits)
                        return r;
                c->patience = sd_event_source_disable_unref(c->patience); /* it paid: the next debt is a new one */
        }
        c->more = true;
        return 0;
}

static int on_impatience(sd_event_source *source, uint64_t usec, void *userdata) {
        Connection *c = userdata;
        LogCause charged = log_charge(connection_cause(c));
        bool asked = c->has_asked || !frame_reader_is_empty(&c->in);

        log_print(LOG_NOTICE, MESSAGE_CONNECTION_CLOSED,
                  asked ? "closed %s: an incomplete request, or an unread response, for %d s" : "closed %s: no request for %d s",
                  c->peer.text, PATIENCE_USEC / 1000000);
        (void)log_charge(charged);
        if (!asked) {
                connection_end(c, "idle", "no request arrived within 10 s: connect again");
                return 0;
        }
        connection_free(c);
        return 0;
}

/* The timer runs only while the peer owes us something: an idle connection costs no wakeup. */
static int connection_set_patience(Connection *c) {
        bool owes = !c->waits && (c->out || !frame_reader_is_empty(&c->in) || !c->has_asked);

        if (!owes) {
                c->patience = sd_event_source_disable_unref(c->patience);
                return 0;
        }
        if (c->patience)
                return 0;
        return error_origin(sd_event_add_time_relative(c->control->event, &c->patience, CLOCK_MONOTONIC, PATIENCE_USEC, 0,
                                          on_impatience, c));
}

/*
 * Whether long requests that are half there, or wait, take more memory together than clients of the stream socket may have of it.
 * Those of one uid may take half of that.
 */
static bool reads_too_much(const Connection *c) {
        size_t own = 0, all = 0;

        if (c->in.size <= SHORT_REQUEST || !is_limited(c))
                return false;
        for (const Connection *i = c->control->connections; i; i = i->next)
                if (i->in.size > SHORT_REQUEST && is_limited(i)) {
                        all += i->in.size;
                        own += i->peer.uid == c->peer.uid ? i->in.size : 0;
                }
        return all > LONG_REQUESTS_MOST || own > LONG_REQUESTS_MOST / 2;
}

static int connection_read(Connection *c) {
        const size_t before = c->in.size;
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r;

        r = frame_reader_room(&c->in, &room, &size);
        if (r < 0 || (c->in.size > before && reads_too_much(c))) {
                peer_tell(c->fd, PERFD__V1__STATUS__STATUS_EXHAUSTED, "request-memory",
                          "long requests that have begun use all the memory for such requests: try again, or send shorter ones");
                c->closed = true;
                return 0;
        }
        n = peer_socket_receive(c->fd, room, size);
        if (n > 0)
                frame_reader_fed(&c->in, (size_t)n);
        else if (n < 0 && errno == EBADMSG) {
                peer_tell(c->fd, PERFD__V1__STATUS__STATUS_INVALID, "files", "a request came with file descriptors: send frames "
                        "only");
                c->closed = true;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                c->ended = true;
        return 0;
}

/* After anything happened. The connection may be gone afterwards. */
static int connection_progress(Connection *c) {
        int r = connection_work(c);

        if (r < 0)
                return r;
        if (c->closed || c->given) {
                connection_free(c);
                return 0;
        }
        r = connection_set_patience(c);
        if (r < 0)
                return r;
        if (c->waits)
                return error_origin(sd_event_source_set_io_events(c->source, 0)); /* epoll tells of its end all the same */
        return error_origin(sd_event_source_set_io_events(c->source, c->out || c->more ? EPOLLOUT : EPOLLIN));
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Connection *c = userdata;
        int r = precedence_count(c->control, &c->precedence, source);

        if (r < 0)
                return r;
        if (c->runs) {
                c->closed = true; /* freed when its request has ended */
                return error_origin(sd_event_source_set_enabled(source, SD_EVENT_OFF));
        }
        if (c->waits) {
                connection_free(c);
                return 0;
        }
        if ((revents & (EPOLLHUP | EPOLLERR)) && c->out)
                c->closed = true; /* nobody is there to take the response */
        if ((revents & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !c->out) {
                r = connection_read(c);
                if (r < 0)
                        return r;
        }
        if (c->closed) {
                connection_free(c);
                return 0;
        }
        return connection_progress(c);
}

void connection_new(Control *control, int fd, const Peer *peer) {
        Connection *c = calloc(1, sizeof(*c));
        int r;

        if (!c) {
                peer_socket_close(fd);
                return;
        }
        *c = (Connection){ .control = control, .id = ++control->last_id, .fd = fd, .peer = *peer,
                            .next = control->connections, .since = clock_now(CLOCK_MONOTONIC) };
        control->connections = c;
        control->n_connections++;
        frame_reader_init(&c->in, FRAME_MAX_REQUEST);
        r = error_origin(sd_event_add_io(control->event, &c->source, fd, EPOLLIN, on_io, c));
        if (r >= 0)
                r = error_origin(sd_event_source_set_exit_on_failure(c->source, true)); /* otherwise it would never be answered */
        if (r >= 0 && peer->may_change)
                r = precedence_set(&c->precedence, c->source);
        if (r >= 0)
                r = connection_set_patience(c);
        if (r < 0) { /* epoll_ctl(2): ENOMEM, or ENOSPC by fs.epoll.max_user_watches */
                LogCause charged = log_charge(connection_cause(c));

                log_print(LOG_NOTICE, MESSAGE_CONNECTION_REFUSED, "a connection of %s is refused: %s", peer->text, error_text(r));
                (void)log_charge(charged);
                peer_tell(fd, PERFD__V1__STATUS__STATUS_EXHAUSTED, "no-memory", "there is no memory for this connection now: try "
                        "again");
                connection_free(c);
        }
}
