/*
 * perfd is asked when somebody asks the relay, and then not again for a second: all who come meanwhile share an answer, also the one that
 * perfd is away. Asking waits, for some seconds at most, which is why this is no part of the relay's loop; the loop ends the wait
 * by shutting the socket down.
 */
#include "client/relay/metrics-collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "client/relay/metrics-accept.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

#define FRESH_FOR NSEC_PER_SEC
#define COLLECT_WITHIN (5 * NSEC_PER_SEC)
#define CONNECT_WITHIN 1 /* seconds, if perfd does not accept */

void collector_init(Collector *c, const char *stream, size_t n_series_max, const RelayCounters *relay) {
        *c = (Collector){ .stream = stream, .n_series_max = n_series_max, .relay = relay, .perfd_fd = -1,
                          .lock = PTHREAD_MUTEX_INITIALIZER };
}

static void forget(Collector *c) {
        perfd_result_free(c->status);
        perfd_result_free(c->list);
        perfd_result_free(c->ledger);
        c->status = c->list = c->ledger = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(c->answers); i++) {
                if (c->answers[i])
                        MHD_destroy_response(c->answers[i]);
                c->answers[i] = NULL;
        }
}

void collector_deinit(Collector *c) {
        forget(c);
        pthread_mutex_destroy(&c->lock);
}

void collector_interrupt(Collector *c) {
        pthread_mutex_lock(&c->lock);
        c->is_interrupted = true;
        if (c->perfd_fd >= 0)
                (void)shutdown(c->perfd_fd, SHUT_RDWR);
        pthread_mutex_unlock(&c->lock);
}

/* ---- asking perfd ------------------------------------------------------------------------------------------------ */

/* -1: errno. */
static int connect_perfd(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const struct timeval most = { .tv_sec = CONNECT_WITHIN };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -1;
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path); /* as long as KEY_PATH allows */
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
            connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -1;
        return TAKE_FD(fd);
}

/* False: interrupted. */
static bool set_perfd_fd(Collector *c, int fd) {
        bool may;

        pthread_mutex_lock(&c->lock);
        may = !c->is_interrupted;
        c->perfd_fd = may ? fd : -1;
        pthread_mutex_unlock(&c->lock);
        return may;
}

/* What is left of the time. */
static void set_timeout(perfd_client *client, nsec_t deadline) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        perfd_client_set_timeout(client, now < deadline ? (int)((deadline - now) / NSEC_PER_MSEC) : 0);
}

static bool ask(Collector *c, perfd_client *client, int fd, char *why, size_t size) {
        nsec_t deadline = clock_now(CLOCK_MONOTONIC) + COLLECT_WITHIN;
        int r;

        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the client closes its own: the other one is the collector's to shut down */
        if (fd < 0) {
                (void)snprintf(why, size, "%s", strerror(errno));
                return false;
        }
        set_timeout(client, deadline);
        r = perfd_client_connect_fd(client, fd);
        if (r == 0) {
                set_timeout(client, deadline);
                r = perfd_status(client, &c->status);
        }
        if (r == 0 && perfd_result_status(c->status)->access && !perfd_result_status(c->status)->access->status) {
                (void)snprintf(why, size, "access.rules of perfd do not grant `status` to the user of the relay: perfd.yaml(5)");
                return false;
        }
        if (r == 0) {
                set_timeout(client, deadline);
                r = perfd_list(client, NULL, &c->list);
        }
        if (r == 0) {
                set_timeout(client, deadline);
                r = perfd_ledger(client, &c->ledger);
        }
        if (r != 0)
                (void)snprintf(why, size, "%s", perfd_client_error(client)->message);
        return r == 0;
}

/* All that perfd has to say, or nothing: then `why` says why. */
static bool collect(Collector *c, char *why, size_t size) {
        perfd_client *client = perfd_client_new("perfd-relay " PERFD_VERSION ", metrics");
        _cleanup_close_ int fd = client ? connect_perfd(c->stream) : -1;
        bool is_whole = false;

        if (fd < 0)
                (void)snprintf(why, size, "%s: %s", c->stream, client ? strerror(errno) : strerror(ENOMEM));
        else if (set_perfd_fd(c, fd))
                is_whole = ask(c, client, fd, why, size);
        (void)set_perfd_fd(c, -1); /* before it is closed */
        perfd_client_free(client);
        if (!is_whole)
                forget(c);
        return is_whole;
}

/* Once for each change. */
static void log_change(Collector *c, bool is_up, const char *why) {
        if (c->has_been_asked && c->is_up == is_up)
                return;
        if (!is_up)
                log_print(LOG_WARNING, MESSAGE_NOTE, "metrics have perfd_up 0: %s", why);
        else if (c->has_been_asked)
                log_print(LOG_INFO, MESSAGE_NOTE, "metrics have perfd_up 1 again");
        c->has_been_asked = true;
        c->is_up = is_up;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static uint64_t difference(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0; /* they are not of one moment */
}

static struct MHD_Response *answer_new(Collector *c, MetricsForm form) {
        const RelayCounters *relay = c->relay;
        uint64_t n_closed = relay_counted(&relay->n_closed), n_admitted_closed = relay_counted(&relay->n_admitted_closed),
                 n_admitted = relay_counted(&relay->n_admitted), n_accepted = relay_counted(&relay->n_accepted),
                 n_clients = difference(n_admitted, n_admitted_closed);
        const MetricsNumber numbers[] = {
                { "relay_info", "The relay that serves these metrics: always 1.", false, "version", PERFD_VERSION, 1 },
                { "relay_clients", "Connections of clients that are admitted.", false, NULL, NULL, n_clients },
                { "relay_handshakes", "Connections that are not admitted yet.", false, NULL, NULL,
                  difference(difference(n_accepted, n_closed), n_clients) },
                { "relay_accepted", "Connections by TLS.", true, NULL, NULL, n_accepted },
                { "relay_admitted", "Those that relay.yaml permits.", true, NULL, NULL, n_admitted },
                { "relay_refused", "Those that were refused.", true, NULL, NULL, relay_counted(&relay->n_refused) },
                { "relay_overloads", "Connections that were closed at once, by limits before authentication.", true, NULL, NULL,
                  relay_counted(&relay->n_overloads) },
                { "relay_sent_bytes", "Bytes to clients, without what TLS adds.", true, NULL, NULL, relay_counted(&relay->n_sent) },
                { "relay_received_bytes", "Bytes from clients, without what TLS adds.", true, NULL, NULL,
                  relay_counted(&relay->n_received) },
                { "relay_reloads", "Reloads of the configuration, by result.", true, "result", "done", relay_counted(&relay->n_reloads) },
                { "relay_reloads", NULL, true, "result", "refused", relay_counted(&relay->n_reloads_refused) },
                { "relay_http_requests", "Requests of metrics, by result.", true, "result", "served", c->http.n_served },
                { "relay_http_requests", NULL, true, "result", "refused", c->http.n_refused },
                { "relay_http_closed", "Connections for metrics that were closed early, by reason.", true, "reason", "connections",
                  c->http.n_overloads },
                { "relay_http_closed", NULL, true, "reason", "timeout", c->http.n_timeouts },
                { "relay_collections", "How often perfd was asked for these metrics, by result.", true, "result", "done",
                  c->http.n_collections },
                { "relay_collections", NULL, true, "result", "failed", c->http.n_collections_failed },
                { "relay_collection_seconds", "How long perfd took to answer.", false, NULL, NULL,
                  c->http.collection_time, true },
                { "relay_certificate_end_timestamp_seconds", "When the certificate of the relay ends.", false, NULL, NULL,
                  relay_counted(&relay->certificate_end) }, /* the last one: without 'listen' there is none */
        };
        const MetricsSource source = { .status = c->status, .list = c->list, .ledger = c->ledger, .numbers = numbers,
                                       .n_numbers = ARRAY_SIZE(numbers) - (relay_counted(&relay->certificate_end) == 0) };
        struct MHD_Response *answer = NULL;
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);
        bool is_whole;

        if (!f)
                return NULL;
        metrics_write(f, &source, form, c->n_series_max);
        is_whole = !ferror(f);
        if (fclose(f) != 0 || !is_whole) {
                free(text);
                return NULL;
        }
        answer = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
        if (!answer) {
                free(text);
                return NULL;
        }
        if (MHD_add_response_header(answer, MHD_HTTP_HEADER_CONTENT_TYPE, metrics_content_type(form)) != MHD_YES ||
            MHD_add_response_header(answer, MHD_HTTP_HEADER_CONNECTION, "close") != MHD_YES) {
                MHD_destroy_response(answer);
                return NULL;
        }
        return answer;
}

/* False: interrupted; that perfd does not answer would not be true. */
static bool renew(Collector *c) {
        nsec_t begin = clock_now(CLOCK_MONOTONIC);
        char why[512] = "";
        bool is_up;

        forget(c);
        is_up = collect(c, why, sizeof(why));
        if (!set_perfd_fd(c, -1))
                return false;
        c->http.n_collections += is_up;
        c->http.n_collections_failed += !is_up;
        c->at = clock_now(CLOCK_MONOTONIC);
        c->http.collection_time = c->at - begin;
        log_change(c, is_up, why);
        return true;
}

struct MHD_Response *collector_get(Collector *c, MetricsForm form) {
        if ((c->at == 0 || clock_now(CLOCK_MONOTONIC) - c->at >= FRESH_FOR) && !renew(c))
                return NULL;
        if (!c->answers[form])
                c->answers[form] = answer_new(c, form);
        return c->answers[form];
}
