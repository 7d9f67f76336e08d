/* The life of one client: what it waits for in each state, how it ends, and what the log says of it. */
#include "client/relay/connection.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"

#define KEEPALIVE_IDLE 10 /* seconds; and with those below a peer that is gone is noticed within 30, if it is sent nothing */
#define KEEPALIVE_INTERVAL 5
#define KEEPALIVE_PROBES 4
#define SILENCE_LOOK (10 * NSEC_PER_SEC) /* while bytes wait to be taken: whether its host still answers */
#define END_WITHIN NSEC_PER_SEC /* with a reason */
#define FINISH_WITHIN (30 * NSEC_PER_SEC) /* for the next bytes of what perfd has sent to be taken */
#define RETRY_AFTER (20 * NSEC_PER_MSEC) /* if too many wait for perfd */
#define REFUSALS_MOST 100 /* lines about clients that are not admitted, in a window */
#define REFUSALS_WINDOW (10 * NSEC_PER_SEC)

static void on_deadline_over(RelayConnection *c);

static void set_deadline(RelayConnection *c, nsec_t after) {
        c->deadline = after == 0 ? 0 : clock_now(CLOCK_MONOTONIC) + after;
}

static const char *address_of(const RelayConnection *c, char to[static ENDPOINT_TEXT_SIZE]) {
        endpoint_text(&c->address, to);
        return to;
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

void connection_log_refusal(RelayConnection *c, const char *reason, const char *text) {
        char address[ENDPOINT_TEXT_SIZE];
        unsigned n_left_out;

        if (c->is_logged)
                return;
        c->is_logged = true;
        relay_count(&c->relay->counters.n_refused, 1);
        if (!relay_lines_may(&c->relay->refusals, REFUSALS_MOST, REFUSALS_WINDOW, &n_left_out))
                return;
        if (n_left_out > 0)
                log_print_with(LOG_NOTICE, MESSAGE_LINES_LEFT_OUT, LOG_FIELDS({ "LINES", LOG_NUMBER(n_left_out) }),
                               "%u more clients were refused, whose lines are omitted", n_left_out);
        log_print_with(LOG_NOTICE, MESSAGE_REMOTE_REFUSED,
                       LOG_FIELDS({ "ADDRESS", address_of(c, address) }, { "SUBJECT", c->peer.subject }, { "SERIAL", c->peer.serial },
                                  { "CLIENT", c->name }, { "REASON", reason }),
                       "%s is refused: %s%s%s", address, text, c->peer.subject ? "; certificate of " : "",
                       c->peer.subject ? c->peer.subject : "");
}

void connection_log_end(RelayConnection *c, const char *reason, const char *text) {
        char address[ENDPOINT_TEXT_SIZE], compressed[60] = "";

        if (c->is_logged)
                return;
        c->is_logged = true;
        if (c->is_compressed)
                (void)snprintf(compressed, sizeof(compressed), ", compressed from %llu", (unsigned long long)c->n_compressed);
        log_print_with(LOG_INFO, MESSAGE_REMOTE_ENDED,
                       LOG_FIELDS({ "ADDRESS", address_of(c, address) }, { "SUBJECT", c->peer.subject }, { "SERIAL", c->peer.serial },
                                  { "CLIENT", c->name }, { "REASON", reason }, { "BYTES", LOG_NUMBER(c->n_out) }),
                       "%s, %s, has ended after %llu bytes%s: %s", c->name ? c->name : "a client", address,
                       (unsigned long long)c->n_out, compressed, text);
}

/* ---- birth and death --------------------------------------------------------------------------------------------- */

static void close_perfd(RelayConnection *c) {
        socket_set_forget(&c->relay->sockets, &c->perfd_socket);
        c->perfd_fd = close_fd(c->perfd_fd);
        frame_reader_deinit(&c->greeting);
        unwritten_deinit(&c->in);
}

RelayConnection *connection_free(RelayConnection *c) {
        if (!c)
                return NULL;
        *c->place = c->next;
        if (c->next)
                c->next->place = c->place;
        c->relay->n_handshakes -= c->name == NULL; /* it was not admitted */
        relay_count(&c->relay->counters.n_closed, 1);
        relay_count(&c->relay->counters.n_admitted_closed, c->name != NULL);
        socket_set_forget(&c->relay->sockets, &c->socket);
        sd_event_source_disable_unref(c->timer);
        close_perfd(c);
        SSL_free(c->ssl);
        compressor_free(c->compressor);
        close_fd(c->fd);
        tls_peer_deinit(&c->peer);
        unwritten_deinit(&c->out);
        unwritten_deinit(&c->goodbye);
        free(c->name);
        free(c);
        return NULL;
}

static void on_tls(void *userdata, uint32_t revents) {
        RelayConnection *c = userdata;

        if ((revents & (EPOLLERR | EPOLLHUP)) && !(c->socket.events & (EPOLLIN | EPOLLOUT))) {
                int error = 0;
                socklen_t size = sizeof(error);

                (void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
                connection_lose(c, "lost", error != 0 ? strerror(error) : "it has closed the connection");
                return;
        }
        connection_progress(c);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        RelayConnection *c = userdata;

        if (c->deadline != 0 && clock_now(CLOCK_MONOTONIC) >= c->deadline)
                on_deadline_over(c);
        else if (c->state == RELAY_PUMPING && !unwritten_is_empty(&c->out) && connection_is_silent(c))
                connection_lose(c, "lost", "its host has not answered for 30 s");
        else
                connection_progress(c);
        return 0;
}

/* A peer that is gone is noticed, and small frames do not wait. What an old kernel does not know stays as it was. */
static void set_options(int fd) {
        static const struct {
                int level, name, value;
        } options[] = {
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE },
                { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL },
                { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
                { IPPROTO_TCP, TCP_NODELAY, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

void connection_new(Relay *r, int fd, const struct sockaddr_storage *address) {
        RelayConnection *c = calloc(1, sizeof(*c));
        int k;

        if (!c) {
                close_fd(fd);
                return;
        }
        *c = (RelayConnection){ .relay = r, .fd = fd, .perfd_fd = -1, .address = *address, .next = r->connections,
                                .place = &r->connections, .generation = r->generation,
                                .socket = { .fd = fd, .ready = on_tls, .userdata = c } };
        if (c->next)
                c->next->place = &c->next;
        r->connections = c;
        r->n_handshakes++;
        relay_count(&r->counters.n_accepted, 1);
        set_options(fd);
        c->ssl = SSL_new(r->tls);
        k = c->ssl && SSL_set_fd(c->ssl, fd) == 1 ? 0 : -ENOMEM;
        if (k >= 0)
                k = sd_event_add_time(r->event, &c->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, c);
        if (k < 0) {
                ERR_clear_error();
                connection_log_refusal(c, "no-memory", strerror(-k));
                connection_free(c);
                return;
        }
        SSL_set_app_data(c->ssl, &c->peer);
        SSL_set_accept_state(c->ssl);
        set_deadline(c, r->config->handshake_timeout);
        connection_watch(c); /* OpenSSL gets its buffers when the first byte is there */
}

/* ---- what it waits for ------------------------------------------------------------------------------------------- */

static uint32_t tls_events(const RelayConnection *c) {
        uint32_t out = unwritten_is_empty(&c->out) ? 0 : EPOLLOUT;

        switch (c->state) {
        case RELAY_HANDSHAKE:
                return SSL_want_write(c->ssl) ? EPOLLOUT : EPOLLIN;
        case RELAY_GREETING:
                return 0;
        case RELAY_PUMPING:
                if (c->wants_write) /* nothing more is read before, so what there is to read must not wake it */
                        return EPOLLOUT;
                return out | (unwritten_is_empty(&c->in) && !c->has_ended && !c->perfd_is_deaf ? EPOLLIN : 0);
        case RELAY_ENDING:
                return out;
        case RELAY_LINGERING:
                return EPOLLIN;
        case _RELAY_STATE_MAX:
                break;
        }
        return 0;
}

static uint32_t perfd_events(const RelayConnection *c, nsec_t *ret_wait) {
        uint32_t out = unwritten_is_empty(&c->in) ? 0 : EPOLLOUT;
        TokenBucket bucket = c->bucket;

        *ret_wait = 0;
        if (c->perfd_fd < 0 || c->perfd_has_ended)
                return 0;
        if (c->state == RELAY_GREETING)
                return c->is_pending ? 0 : out ? out : EPOLLIN;
        if (c->state == RELAY_PUMPING && unwritten_is_empty(&c->out) &&
            token_bucket_peek(&bucket, RELAY_PLAIN_MAX, clock_now(CLOCK_MONOTONIC), ret_wait) == 0)
                return out;
        return out | (c->state <= RELAY_ENDING && unwritten_is_empty(&c->out) ? EPOLLIN : 0);
}

/* The end of perfd's side is told even to who asks for nothing, so then it is not asked at all. */
static int watch_perfd(RelayConnection *c, uint32_t events) {
        if (events != 0)
                return socket_set_watch(&c->relay->sockets, &c->perfd_socket, events);
        socket_set_forget(&c->relay->sockets, &c->perfd_socket);
        return 0;
}

static int watch_timer(RelayConnection *c, nsec_t wait) {
        nsec_t at = c->deadline;
        int r;

        if (wait > 0 && (at == 0 || clock_now(CLOCK_MONOTONIC) + wait < at))
                at = clock_now(CLOCK_MONOTONIC) + wait;
        if (at == 0)
                return sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        r = sd_event_source_set_time(c->timer, (at + NSEC_PER_USEC - 1) / NSEC_PER_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

void connection_watch(RelayConnection *c) {
        nsec_t wait;
        uint32_t events = perfd_events(c, &wait);
        int r = socket_set_watch(&c->relay->sockets, &c->socket, tls_events(c));

        if (c->state == RELAY_PUMPING && !unwritten_is_empty(&c->out))
                wait = SILENCE_LOOK;

        if (r >= 0)
                r = watch_perfd(c, events);
        if (r >= 0)
                r = watch_timer(c, c->is_pending ? RETRY_AFTER : wait);
        if (r < 0) /* of epoll_ctl(2): no memory */
                connection_lose(c, "no-memory", strerror(-r));
}

/* What each state does is above this file (relay.c), so that it knows none of them. */
void connection_progress(RelayConnection *c) {
        c->relay->steps[c->state](c);
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

static void on_deadline_over(RelayConnection *c) {
        switch (c->state) {
        case RELAY_HANDSHAKE:
                connection_log_refusal(c, "handshake-timeout", "it has not authenticated in time");
                connection_free(c);
                break;
        case RELAY_GREETING:
                connection_refuse(c, PERFD__V1__STATUS__STATUS_INTERNAL, "no-perfd", "perfd on this host does not answer");
                break;
        case RELAY_PUMPING:
                connection_finish(c);
                break;
        case RELAY_ENDING:
        case RELAY_LINGERING:
                connection_log_end(c, "lost", "it does not take what it is sent");
                connection_free(c);
                break;
        case _RELAY_STATE_MAX:
                break;
        }
}

void connection_lose(RelayConnection *c, const char *reason, const char *text) {
        if (c->may_pass)
                connection_log_end(c, reason, text);
        else
                connection_log_refusal(c, reason, text);
        connection_free(c);
}

/* Drops what is behind the end of the frame that is on its way. */
static void cut_at_frame(RelayConnection *c) {
        size_t begin = c->out.begin + c->n_committed, rest;

        if (unwritten_is_empty(&c->out) || c->is_compressed)
                return;
        rest = frame_track_rest(&c->track, c->out.bytes + begin, c->out.end - begin);
        c->out.end = begin + rest;
        if (unwritten_is_empty(&c->out))
                unwritten_deinit(&c->out);
}

/* In the middle of an answer of HTTP there is no place for it. */
static int tell(RelayConnection *c, Perfd__V1__Status status, const char *reason, const char *text) {
        if (!c->is_http)
                return tell_refusal(status, reason, text, &c->goodbye);
        return c->may_pass ? 0 : tell_http(text, &c->goodbye);
}

void connection_end(RelayConnection *c, Perfd__V1__Status status, const char *reason, const char *text) {
        if (c->state == RELAY_HANDSHAKE && !SSL_is_init_finished(c->ssl)) {
                connection_log_refusal(c, reason, text);
                connection_free(c);
                return;
        }
        if (c->state >= RELAY_ENDING)
                return;
        connection_log_end(c, reason, text);
        c->rule = NULL;
        c->state = RELAY_ENDING;
        set_deadline(c, END_WITHIN);
        cut_at_frame(c);
        if (!c->may_pass)
                close_perfd(c);
        if (tell(c, status, reason, text) < 0)
                connection_free(c);
        else
                connection_progress(c);
}

void connection_refuse(RelayConnection *c, Perfd__V1__Status status, const char *reason, const char *text) {
        connection_log_refusal(c, reason, text);
        connection_end(c, status, reason, text);
}

void connection_finish(RelayConnection *c) {
        connection_log_end(c, c->is_http ? "answered" : "perfd",
                           c->has_ended ? "the client has closed the connection" : c->is_http ? "metrics were answered" : "perfd has ended it");
        c->rule = NULL;
        c->state = RELAY_ENDING;
        c->perfd_has_ended = true;
        set_deadline(c, FINISH_WITHIN);
        connection_progress(c);
}
