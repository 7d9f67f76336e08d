/* When the spool is full (spooling.h), routes leave what comes in perfd's queues, whose gaps have numbers. */
#include "client/relay/publish/publishing.h"

#include <stdlib.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "client/relay/publish/status.h"
#include "daemon/base/log.h"

static bool routes_are_done(const Publishing *p) {
        for (size_t i = 0; i < p->n_routes; i++)
                if (!route_is_done(p->routes[i]))
                        return false;
        return true;
}

static bool all_is_stored(const Publishing *p) {
        return p->n_held == 0 && !p->spooling.waiting && (!p->spooling.spool || spool_count(p->spooling.spool) == 0);
}

/* The last word has to be true: it is said when all is stored. */
static void say_end(Publishing *p) {
        if (p->is_stopping && all_is_stored(p) && routes_are_done(p))
                status_post(p->status, STATUS_END);
}

/* perfd.HOST.ROUTE; descriptors are of no route. */
static Route *route_of(const Publishing *p, const Message *m) {
        const char *name = strncmp(m->subject, "perfd.", strlen("perfd.")) == 0 ? strrchr(m->subject, '.') + 1 : "";

        for (size_t i = 0; i < p->n_routes; i++)
                if (strcmp(route_state(p->routes[i])->config->name, name) == 0)
                        return p->routes[i];
        return NULL;
}

static void count_stored(Publishing *p, const Message *m) {
        Route *route = route_of(p, m);

        if (!route)
                return;
        p->n_stored++;
        p->stored_bytes += m->length;
        p->published += route_counts_store(&route_state(route)->counts, m);
}

/* Once for each connection: others may follow. */
static void take_refused(Publishing *p, const Message *m) {
        Route *route = route_of(p, m);

        if (route)
                route_counts_refuse(&route_state(route)->counts, m, &p->lost);
        if (!p->has_said_refused)
                log_print_with(LOG_WARNING, MESSAGE_NOT_PUBLISHING, LOG_FIELDS({ "REASON", "too-long" }, { "ROUTE", route ? route_state(route)->config->name : "" }),
                               "a message on %s, of %zu bytes and its headers, is longer than the server takes, and is lost, like each that is: "
                               "raise max_payload of the server to 1MB, and max_msg_size of the stream to at least 600KB", m->subject, m->length);
        p->has_said_refused = true;
}

static void on_stored(void *userdata, Message *m) {
        Publishing *p = userdata;

        if (m->is_refused)
                take_refused(p, m);
        if (m->is_status) {
                status_take_stored(p->status, m);
                return;
        }
        if (!m->is_refused)
                count_stored(p, m);
        p->held -= message_size(m);
        p->n_held--;
        spooling_forget(p, m);
        message_free(m);
}

static void go_on(Publishing *p, bool was_full) {
        spooling_go_on(p);
        say_end(p);
        for (size_t i = 0; was_full && !publishing_is_full(p) && i < p->n_routes; i++)
                route_resume(p->routes[i]);
}

static void on_look(Publishing *p) {
        go_on(p, publishing_is_full(p));
}

/* Of one server the same refusal comes in other words, by where the connection was: what is to be done, which stands last, is the same. */
static bool is_same_notice(const char *a, const char *b) {
        const char *last_a = strstr(a, "; ") ? NULL : strrchr(a, ':'), *last_b = strstr(b, "; ") ? NULL : strrchr(b, ':');

        return strcmp(a, b) == 0 || (last_a && last_b && strlen(last_a) > strlen(": ") && strcmp(last_a, last_b) == 0);
}

/* A server that is away would say the same each five seconds. */
static void on_changed(void *userdata, bool is_connected, const char *text) {
        Publishing *p = userdata;

        if (is_connected)
                log_print_with(LOG_INFO, MESSAGE_PUBLISHING, LOG_FIELDS({ "ADDRESS", text }), "publishing to %s", text);
        else if (p->is_connected || !is_same_notice(p->notice, text))
                log_print_with(LOG_WARNING, MESSAGE_NOT_PUBLISHING, LOG_FIELDS({ "REASON", "no-server" }),
                               "nothing is published now, and what comes is kept until there is a server: %s", text);
        p->is_connected = is_connected;
        p->has_said_refused = p->has_said_refused && !is_connected;
        for (size_t i = 0; is_connected && !p->is_stopping && i < p->n_routes; i++)
                route_describe(p->routes[i]);
        (void)snprintf(p->notice, sizeof(p->notice), "%s", text);
}

static int on_publisher(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Publishing *p = userdata;
        bool was_full = publishing_is_full(p);

        p->publisher->dispatch(p->publisher);
        go_on(p, was_full);
        return 0;
}

void publishing_tell_route(Publishing *p) {
        if (p->is_stopping)
                say_end(p);
        else
                status_post(p->status, STATUS_ROUTE);
}

void publishing_publish(Publishing *p, Message *m) {
        spooling_publish(p, m);
}

/*
 * Both tell hosts apart whose names are the same. Where /proc has only processes, as in the relay's unit, systemd has told the id of the
 * boot; without either, one of this run of the relay is as unique.
 */
static void find_ids(Publishing *p) {
        const char *told = getenv("PERFD_BOOT_ID");
        sd_id128_t id;

        if (sd_id128_get_machine(&id) < 0)
                id = SD_ID128_NULL;
        sd_id128_to_string(id, p->machine);
        if (sd_id128_get_boot(&id) < 0 && (!told || sd_id128_from_string(told, &id) < 0) && sd_id128_randomize(&id) < 0)
                id = SD_ID128_NULL;
        sd_id128_to_string(id, p->boot);
}

static int start_spooling(Publishing *p) {
        Explanation e = EXPLANATION_NULL;
        int r = spooling_start(p, on_look, &e);

        if (r > 0)
                log_print_with(LOG_ERR, MESSAGE_FAILED, LOG_FIELDS({ "REASON", e.reason }), "publish.spool.path: %s", e.text);
        return r;
}

static int start(Publishing *p, const char *perfd) {
        const PublisherCallbacks callbacks = { .stored = on_stored, .changed = on_changed, .userdata = p };
        int r;

        find_ids(p);
        r = start_spooling(p);
        if (r != 0)
                return r;
        p->perfd = strdup(perfd);
        r = p->perfd ? nats_open(&p->config, &callbacks, &p->publisher) : error_origin(-ENOMEM);
        if (r == 0)
                r = sd_event_add_io(p->event, &p->source, p->publisher->fd, EPOLLIN, on_publisher, p);
        if (r >= 0) {
                p->routes = calloc(p->config.n_routes, sizeof(Route *));
                r = p->routes ? 0 : error_origin(-ENOMEM);
        }
        for (size_t i = 0; r == 0 && i < p->config.n_routes; i++) {
                p->routes[i] = route_new(p, &p->config.routes[i]);
                if (p->routes[i])
                        p->n_routes++;
                else
                        r = error_origin(-ENOMEM);
        }
        return r == 0 ? status_start(p, &p->status) : r;
}

int publishing_start(sd_event *event, const char *perfd, const PublishConfig *config, Publishing **ret) {
        Publishing *p;
        int r;

        *ret = NULL;
        if (config->n_routes == 0)
                return 0;
        p = calloc(1, sizeof(*p));
        if (!p)
                return error_origin(-ENOMEM);
        p->event = event;
        p->config = *config;
        perfd__v1__wall_reading__init(&p->reading);
        r = start(p, perfd);
        if (r != 0)
                publishing_free(p);
        else
                *ret = p;
        return r;
}

void publishing_stop(Publishing *p) {
        p->is_stopping = true;
        spooling_begin_closing(p);
        for (size_t i = 0; i < p->n_routes; i++)
                route_stop(p->routes[i]);
        for (size_t i = 0; p->spooling.is_closing && i < p->n_routes; i++)
                route_resume(p->routes[i]);
        say_end(p);
}

/* Without a server, what is in files is as good as stored. */
bool publishing_is_done(const Publishing *p) {
        if (!p || !routes_are_done(p))
                return !p;
        if (p->spooling.spool && !p->is_connected)
                return spooling_count_unsafe(p) == 0;
        return all_is_stored(p) && status_is_done(p->status);
}

/* What perfd still had for a route was never held here, so nothing else would tell that it is missing. */
static void say_unfinished(const Publishing *p) {
        size_t n = 0;

        for (size_t i = 0; i < p->n_routes; i++)
                n += !route_is_done(p->routes[i]);
        if (p->is_stopping && n > 0)
                log_print_with(LOG_WARNING, MESSAGE_NOT_PUBLISHING, LOG_FIELDS({ "REASON", "shutdown" }),
                               "%zu routes did not come to their end in time: their last items, and their ledgers, were not stored, and are lost", n);
}

void publishing_free(Publishing *p) {
        if (!p)
                return;
        say_unfinished(p);
        if (spooling_count_unsafe(p) > 0)
                log_print_with(LOG_WARNING, MESSAGE_NOT_PUBLISHING, LOG_FIELDS({ "REASON", "shutdown" }),
                               "%llu messages were not stored, and are lost", (unsigned long long)spooling_count_unsafe(p));
        for (size_t i = 0; i < p->n_routes; i++)
                route_free(p->routes[i]);
        free(p->routes);
        status_free(p->status);
        free(p->perfd);
        sd_event_source_disable_unref(p->source);
        spooling_stop(p);
        if (p->publisher)
                p->publisher->close(p->publisher);
        free(p);
}

void publishing_keep(PublishConfig *running, PublishConfig *loaded) {
        PublishConfig other = *loaded;

        if (!publish_config_equal(running, loaded))
                log_print_with(LOG_WARNING, MESSAGE_NEEDS_RESTART, LOG_FIELDS({ "REASON", "needs-restart" }),
                               "'publish' has changed, which needs a restart of the relay: it is published as before");
        *loaded = *running;
        *running = other;
}
