/*
 * libmicrohttpd parses what comes, and is run by this thread, so that it starts none. It limits the bytes of a request, and how long
 * a connection is silent; a client of one byte a second is never silent, so each connection has a time here in which it has to be over,
 * whatever happens on it. One connection is one request, which costs the next scrape a connect(2) and lets that time hold for everything.
 */
#include "client/relay/metrics-server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/relay/listening-socket.h"
#include "client/relay/metrics-accept.h"
#include "client/relay/metrics-collector.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"
#include "daemon/base/strings.h"
#include "daemon/base/thread.h"

#define REQUEST_MAX ((size_t)16 << 10) /* bytes of memory for a request: its line, its headers, and those of the answer */
#define SEND_BUFFER (128 << 10) /* of a socket: else Linux keeps megabytes for a client that does not read */
#define ACCEPTS_PER_TURN 16
#define PAUSE (200 * NSEC_PER_MSEC) /* without an fd for a connection */

/* One that is there. In the order of their deadlines, because each has the same time. */
typedef struct HttpConnection {
        struct HttpConnection *next;
        int fd; /* of libmicrohttpd; it is open as long as this is there */
        nsec_t deadline;
        bool is_over;
} HttpConnection;

struct MetricsServer {
        Thread thread;
        struct MHD_Daemon *http;
        Collector collector;
        char *stream;
        Strings addresses; /* as relay.yaml has them */
        struct pollfd *polls; /* stop_fd, libmicrohttpd's epoll, given_fds[0], and a socket for each address */
        int stop_fd;
        int given_fds[2];   /* a pipe of fds: metrics_server_give() */
        bool is_for_clients; /* by TLS */
        uint64_t n_connections_max, n_connections;
        nsec_t request_timeout;
        uint64_t n_series_max;
        HttpConnection *first, **last;
        nsec_t pause_until; /* of accepting */
        struct MHD_Response *not_found, *not_allowed, *unavailable;
};

enum { POLL_STOP, POLL_HTTP, POLL_GIVEN, N_POLLS };

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static enum MHD_Result answer(MetricsServer *s, struct MHD_Connection *connection, unsigned status, struct MHD_Response *response) {
        s->collector.http.n_served += status == MHD_HTTP_OK;
        s->collector.http.n_refused += status != MHD_HTTP_OK;
        return response ? MHD_queue_response(connection, status, response) : MHD_NO; /* closes the connection */
}

/* Answered by its line and headers; a body is not read. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *body, size_t *n_body, void **of_request) {
        MetricsServer *s = userdata;
        struct MHD_Response *metrics;

        if (strcmp(path, "/metrics") != 0)
                return answer(s, connection, MHD_HTTP_NOT_FOUND, s->not_found);
        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
                return answer(s, connection, MHD_HTTP_METHOD_NOT_ALLOWED, s->not_allowed);
        metrics = collector_get(&s->collector, metrics_accept(MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                                                          MHD_HTTP_HEADER_ACCEPT)));
        return metrics ? answer(s, connection, MHD_HTTP_OK, metrics)
                       : answer(s, connection, MHD_HTTP_SERVICE_UNAVAILABLE, s->unavailable);
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void connection_remove(MetricsServer *s, HttpConnection *c) {
        HttpConnection **place = &s->first;

        while (*place != c)
                place = &(*place)->next;
        *place = c->next;
        if (s->last == &c->next)
                s->last = place;
        s->n_connections--;
        free(c);
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **of_connection,
                          enum MHD_ConnectionNotificationCode what) {
        MetricsServer *s = userdata;
        HttpConnection *c;
        int fd;

        if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
                if (*of_connection)
                        connection_remove(s, *of_connection);
                *of_connection = NULL;
                return;
        }
        fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        *of_connection = c = calloc(1, sizeof(*c));
        if (!c) {
                (void)shutdown(fd, SHUT_RDWR);
                return;
        }
        c->fd = fd;
        c->deadline = clock_now(CLOCK_MONOTONIC) + s->request_timeout;
        *s->last = c;
        s->last = &c->next;
        s->n_connections++;
}

/* libmicrohttpd sees the end of a socket that is shut down, and closes it. */
static void end_late_ones(MetricsServer *s) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        for (HttpConnection *c = s->first; c && c->deadline <= now; c = c->next)
                if (!c->is_over) {
                        c->is_over = true;
                        s->collector.http.n_timeouts++;
                        (void)shutdown(c->fd, SHUT_RDWR);
                }
}

/* Takes the fd. */
static void add_connection(MetricsServer *s, int fd, const struct sockaddr_storage *address, socklen_t size) {
        static const int send_buffer = SEND_BUFFER;

        if (s->n_connections >= s->n_connections_max) {
                s->collector.http.n_overloads++;
                close_fd(fd);
                return;
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
        (void)MHD_add_connection(s->http, fd, (const struct sockaddr *)address, size); /* closes it where it fails */
}

/* -1: none is there. */
static int read_given(const MetricsServer *s) {
        int fd;

        return read(s->given_fds[0], &fd, sizeof(fd)) == sizeof(fd) ? fd : -1;
}

static void take_given(MetricsServer *s) {
        const struct sockaddr_storage address = { .ss_family = AF_UNIX };

        for (int i = 0, fd; i < ACCEPTS_PER_TURN && (fd = read_given(s)) >= 0; i++)
                add_connection(s, fd, &address, sizeof(sa_family_t));
}

static void accept_some(MetricsServer *s, int listen_fd) {
        for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
                struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
                socklen_t size = sizeof(address);
                int fd = accept4(listen_fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                        s->pause_until = clock_now(CLOCK_MONOTONIC) + PAUSE;
                if (fd < 0 && errno != ECONNABORTED)
                        return;
                if (fd >= 0)
                        add_connection(s, fd, &address, size);
        }
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Milliseconds until something is to be done without an event; -1: nothing is. */
static int time_to_wait(MetricsServer *s) {
        nsec_t now = clock_now(CLOCK_MONOTONIC), at = s->pause_until > now ? s->pause_until : UINT64_MAX;
        MHD_UNSIGNED_LONG_LONG of_http;
        const HttpConnection *c = s->first;

        while (c && c->is_over)
                c = c->next;
        if (c && c->deadline < at)
                at = c->deadline;
        if (MHD_get_timeout(s->http, &of_http) == MHD_YES && now + of_http * NSEC_PER_MSEC < at)
                at = now + of_http * NSEC_PER_MSEC;
        if (at == UINT64_MAX)
                return -1;
        return at <= now ? 0 : (int)((at - now) / NSEC_PER_MSEC) + 1;
}

static int run(void *userdata) {
        MetricsServer *s = userdata;
        size_t n = N_POLLS + s->addresses.n;

        for (;;) {
                bool accepts = clock_now(CLOCK_MONOTONIC) >= s->pause_until;

                if (poll(s->polls, accepts ? n : N_POLLS, time_to_wait(s)) < 0 && errno != EINTR)
                        log_print(LOG_ERR, MESSAGE_FAILED, "metrics: poll(2): %m"); /* ENOMEM: it is tried again */
                if (s->polls[POLL_STOP].revents)
                        return 0;
                for (size_t i = N_POLLS; accepts && i < n; i++)
                        if (s->polls[i].revents)
                                accept_some(s, s->polls[i].fd);
                if (s->polls[POLL_GIVEN].revents)
                        take_given(s);
                end_late_ones(s);
                (void)MHD_run(s->http);
        }
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static struct MHD_Response *text_new(const char *text, const char *methods) {
        struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);

        if (r && (MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") != MHD_YES ||
                  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8") != MHD_YES ||
                  (methods && MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, methods) != MHD_YES))) {
                MHD_destroy_response(r);
                return NULL;
        }
        return r;
}

MetricsServer *metrics_server_stop(MetricsServer *s) {
        if (!s)
                return NULL;
        if (s->thread.started) {
                collector_interrupt(&s->collector);
                (void)eventfd_write(s->stop_fd, 1); /* it has room for one */
                (void)thread_join(&s->thread);
        }
        if (s->http)
                MHD_stop_daemon(s->http);
        collector_deinit(&s->collector);
        for (int fd; s->given_fds[0] >= 0 && (fd = read_given(s)) >= 0;)
                close_fd(fd);
        close_fd(s->given_fds[0]);
        close_fd(s->given_fds[1]);
        for (size_t i = N_POLLS; s->polls && i < N_POLLS + s->addresses.n; i++)
                close_fd(s->polls[i].fd);
        if (s->not_found)
                MHD_destroy_response(s->not_found);
        if (s->not_allowed)
                MHD_destroy_response(s->not_allowed);
        if (s->unavailable)
                MHD_destroy_response(s->unavailable);
        close_fd(s->stop_fd);
        strings_deinit(&s->addresses);
        free(s->polls);
        free(s->stream);
        free(s);
        return NULL;
}
DEFINE_CLEANUP(MetricsServer *, metrics_server_stop)

static int find_socket(const MetricsServer *s, const GivenSockets *given, const char *address) {
        const GivenSocket *of_systemd = given_sockets_find(given, GIVEN_METRICS, address);

        for (size_t i = 0; s && i < s->addresses.n; i++)
                if (strcmp(s->addresses.items[i], address) == 0)
                        return s->polls[N_POLLS + i].fd;
        return of_systemd ? of_systemd->fd : -1;
}

/* Of `before` where it has the address: both listen then, for as long as both are there. */
static int open_sockets(MetricsServer *s, const RelayConfig *config, const GivenSockets *given, const MetricsServer *before,
                        Explanation *e) {
        int r = 0;

        s->polls = calloc(N_POLLS + config->metrics_listen.n, sizeof(*s->polls));
        if (!s->polls)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < config->metrics_listen.n && r == 0; i++) {
                const char *address = config->metrics_listen.items[i];
                int fd = find_socket(before, given, address);

                if (fd >= 0) {
                        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
                        r = fd < 0 ? error_origin(-errno) : 0;
                } else {
                        r = listening_socket_open("metrics.listen", address, &fd, e);
                }
                if (r != 0)
                        return r;
                s->polls[N_POLLS + s->addresses.n] = (struct pollfd){ .fd = fd, .events = POLLIN };
                r = strings_add(&s->addresses, address);
                if (r != 0)
                        close_fd(fd);
        }
        return r;
}

static int start_http(MetricsServer *s) {
        const union MHD_DaemonInfo *epoll;

        s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, s,
                                   MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_MAX, MHD_OPTION_CONNECTION_LIMIT,
                                   (unsigned)s->n_connections_max, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
        epoll = s->http ? MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        s->not_found = text_new("The metrics of perfd are at /metrics.\n", NULL);
        s->not_allowed = text_new("Metrics are only read, by GET or HEAD.\n", "GET, HEAD");
        s->unavailable = text_new("There are no metrics at this moment: the relay stops or is reloaded, or has no memory.\n", NULL);
        if (!epoll || !s->not_found || !s->not_allowed || !s->unavailable)
                return error_origin(-ENOMEM);
        s->polls[POLL_STOP] = (struct pollfd){ .fd = s->stop_fd, .events = POLLIN };
        s->polls[POLL_HTTP] = (struct pollfd){ .fd = epoll->epoll_fd, .events = POLLIN };
        s->polls[POLL_GIVEN] = (struct pollfd){ .fd = s->given_fds[0], .events = POLLIN };
        return thread_start(&s->thread, THREAD_METRICS, "metrics", -1, run, s);
}

static bool is_needed(const RelayConfig *config) {
        return config->metrics_listen.n > 0 || relay_config_has_metrics_clients(config);
}

int metrics_server_start(const RelayConfig *config, const RelayCounters *counters, const GivenSockets *given, const MetricsServer *before,
                         MetricsServer **ret, Explanation *e) {
        _cleanup_(metrics_server_stopp) MetricsServer *s = NULL;
        int r;

        *ret = NULL;
        if (!is_needed(config))
                return 0;
        s = calloc(1, sizeof(*s));
        if (!s)
                return error_origin(-ENOMEM);
        *s = (MetricsServer){ .last = &s->first, .n_connections_max = config->metrics_connections,
                              .request_timeout = config->metrics_request_timeout, .n_series_max = config->metrics_series,
                              .is_for_clients = relay_config_has_metrics_clients(config), .given_fds = { -1, -1 } };
        s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        s->stream = strdup(config->stream);
        collector_init(&s->collector, s->stream, s->n_series_max, counters);
        r = !s->stream ? error_origin(-ENOMEM)
            : s->stop_fd < 0 || pipe2(s->given_fds, O_CLOEXEC | O_NONBLOCK) < 0 ? error_origin(-errno) : 0;
        if (r == 0)
                r = open_sockets(s, config, given, before, e);
        if (r == 0)
                r = start_http(s);
        if (r == 0)
                *ret = TAKE_PTR(s);
        return r;
}

bool metrics_server_give(MetricsServer *s, int fd) {
        if (s && write(s->given_fds[1], &fd, sizeof(fd)) == sizeof(fd)) /* all of it or nothing: pipe(7), PIPE_BUF */
                return true;
        close_fd(fd);
        return false;
}

bool metrics_server_is_of(const MetricsServer *s, const RelayConfig *config) {
        if (!s || !is_needed(config))
                return !s && !is_needed(config);
        return s->is_for_clients == relay_config_has_metrics_clients(config) &&
               strings_equal(&s->addresses, &config->metrics_listen) && strcmp(s->stream, config->stream) == 0 &&
               s->n_connections_max == config->metrics_connections && s->request_timeout == config->metrics_request_timeout &&
               s->n_series_max == config->metrics_series;
}
