/*
 * Who is not authenticated costs a connection of few bytes, and of those there are so many at a time and no more, from one address and
 * from all. One that is above that is closed at once: it may come back. Without an fd for it accepting pauses, because the socket
 * stays readable and would be all that the loop does.
 */
#include "client/relay/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/relay/connection.h"
#include "client/relay/listening-socket.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"

#define ACCEPTS_PER_TURN 16
#define PAUSE_USEC 200000
#define OVERLOAD_WINDOW NSEC_PER_SEC

static RelayListener *listener_free(RelayListener *l) {
        for (RelayListener **p = &l->relay->listeners; *p; p = &(*p)->next)
                if (*p == l) {
                        *p = l->next;
                        break;
                }
        sd_event_source_disable_unref(l->source);
        sd_event_source_disable_unref(l->pause);
        if (l->text)
                close_fd(l->fd);
        free(l->text);
        free(l);
        return NULL;
}

static void log_overload(Relay *r, const struct sockaddr_storage *address, const char *reason, const char *text) {
        char peer[ENDPOINT_TEXT_SIZE];
        unsigned n_left_out;

        if (!relay_lines_may(&r->overloads, 1, OVERLOAD_WINDOW, &n_left_out))
                return;
        endpoint_text(address, peer);
        log_print_with(LOG_WARNING, MESSAGE_REMOTE_OVERLOAD,
                       LOG_FIELDS({ "ADDRESS", peer }, { "REASON", reason }, { "LINES", n_left_out > 0 ? LOG_NUMBER(n_left_out) : NULL }),
                       "%s is closed at once: %s; %u others were since the last such line", peer, text, n_left_out);
}

static uint64_t handshakes_from(const Relay *r, const struct sockaddr_storage *address) {
        uint64_t n = 0;

        for (const RelayConnection *c = r->connections; c; c = c->next)
                n += c->name == NULL && endpoint_is_same_host(&c->address, address);
        return n;
}

static void close_at_once(Relay *r, int fd, const struct sockaddr_storage *address, const char *reason, const char *text) {
        relay_count(&r->counters.n_overloads, 1);
        log_overload(r, address, reason, text);
        close_fd(fd);
}

static void take(Relay *r, int fd, const struct sockaddr_storage *address) {
        if (r->n_handshakes >= r->config->handshakes) {
                close_at_once(r, fd, address, "handshakes", "as many clients authenticate as listen.handshakes permits");
        } else if (handshakes_from(r, address) >= r->config->handshakes_per_address) {
                close_at_once(r, fd, address, "handshakes-per-address", "as many clients of its address authenticate as "
                              "listen.handshakes-per-address permits");
        } else {
                connection_new(r, fd, address);
        }
}

static void pause_listener(RelayListener *l) {
        if (sd_event_source_set_time_relative(l->pause, PAUSE_USEC) >= 0 &&
            sd_event_source_set_enabled(l->pause, SD_EVENT_ONESHOT) >= 0)
                (void)sd_event_source_set_enabled(l->source, SD_EVENT_OFF); /* removes from epoll, which needs nothing */
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata) {
        RelayListener *l = userdata;

        if (sd_event_source_set_enabled(l->source, SD_EVENT_ON) < 0) /* epoll_ctl(2) had no memory */
                pause_listener(l);
        return 0;
}

static int on_connect(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata) {
        RelayListener *l = userdata;
        unsigned n_left_out;

        for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
                struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
                socklen_t size = sizeof(address);
                int fd = accept4(l->fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0) {
                        take(l->relay, fd, &address);
                        continue;
                }
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                        if (relay_lines_may(&l->relay->overloads, 1, OVERLOAD_WINDOW, &n_left_out))
                                log_print(LOG_WARNING, MESSAGE_NO_CONNECTIONS, "accepting connections pauses: accept4(2): %m");
                        pause_listener(l);
                        return 0;
                }
                if (errno == EAGAIN)
                        return 0;
                /* accept(2): else it is an error of that connection, which is gone, and counts as one */
        }
        return 0;
}

static int listener_new(Relay *r, int fd, char *text) {
        RelayListener *l = calloc(1, sizeof(*l));
        int k;

        if (!l)
                return error_origin(-ENOMEM);
        *l = (RelayListener){ .relay = r, .next = r->listeners, .fd = fd, .text = text, .is_kept = true };
        r->listeners = l;
        k = sd_event_add_io(r->event, &l->source, fd, EPOLLIN, on_connect, l);
        if (k >= 0)
                k = sd_event_add_time(r->event, &l->pause, CLOCK_MONOTONIC, 0, 0, on_pause_over, l);
        if (k >= 0)
                k = sd_event_source_set_enabled(l->pause, SD_EVENT_OFF);
        if (k >= 0)
                return 0;
        l->text = NULL; /* and the fd: the caller's still */
        listener_free(l);
        return error_origin(k);
}

int listeners_add_given(Relay *r) {
        int k = 0;

        for (size_t i = 0; i < r->given.n && k == 0; i++)
                if (r->given.items[i].purpose == GIVEN_TLS)
                        k = listener_new(r, r->given.items[i].fd, NULL);
        return k;
}

/* On an address of relay.yaml. */
static int listener_open(Relay *r, const char *address, Explanation *e) {
        _cleanup_free_ char *text = strdup(address);
        _cleanup_close_ int fd = -1;
        int k = text ? listening_socket_open("listen.tls", address, &fd, e) : error_origin(-ENOMEM);

        if (k == 0)
                k = listener_new(r, fd, text);
        if (k == 0) {
                (void)TAKE_FD(fd);
                (void)TAKE_PTR(text);
        }
        return k;
}

static RelayListener *find(const Relay *r, const char *text) {
        for (RelayListener *l = r->listeners; l; l = l->next)
                if (l->text && strcmp(l->text, text) == 0)
                        return l;
        return NULL;
}

/* is_kept: false for what is there, until the configuration has it; true for what is made. */
int listeners_prepare(Relay *r, const RelayConfig *config, Explanation *e) {
        RelayListener *before = r->listeners;
        int k = 0;

        if (!config->has_listen && given_sockets_have(&r->given, GIVEN_TLS))
                return refuse(e, REFUSED_INVALID, "bad-config", "'listen' is missing, but systemd has given the relay its sockets: stop "
                              "them, and restart the relay");
        for (RelayListener *l = r->listeners; l; l = l->next)
                l->is_kept = false;
        for (size_t i = 0; i < config->listen.n && k == 0; i++) {
                const char *address = config->listen.items[i];
                RelayListener *l = find(r, address);

                if (l)
                        l->is_kept = true;
                else if (!given_sockets_find(&r->given, GIVEN_TLS, address))
                        k = listener_open(r, address, e);
        }
        while (k != 0 && r->listeners != before) /* the new ones are in front */
                listener_free(r->listeners);
        return k;
}

void listeners_commit(Relay *r) {
        for (RelayListener *l = r->listeners, *next; l; l = next) {
                next = l->next;
                if (l->text && !l->is_kept)
                        listener_free(l);
        }
}

void listeners_close(Relay *r) {
        while (r->listeners)
                listener_free(r->listeners);
}
