/*
 * A server that is away must not fill the spool with these: the next one is made when the last one is stored, with what is known then.
 * They are beside what `held` counts.
 */
#include "client/relay/publish/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "proto/perfd.pb-c.h"

#define INTERVAL_USEC UINT64_C(10000000)

struct Status {
        Publishing *publishing;
        sd_event_source *timer;
        uint64_t epoch;    /* ns of CLOCK_BOOTTIME, when the relay began */
        uint64_t start;    /* the same, since 1970 */
        uint64_t sequence; /* of the last one */
        bool is_pending;   /* it is not stored */
        bool is_due;       /* another one has to follow, for this reason: */
        StatusReason reason;
        bool has_end, is_done;
};

/* What one message is made of; all of it points into the relay, or here. */
typedef struct Parts {
        Perfd__V1__RouteStatus routes[PUBLISH_ROUTES_MAX], *list[PUBLISH_ROUTES_MAX];
        Perfd__V1__Count counts[PUBLISH_ROUTES_MAX + 1][LOSS_REASONS_MAX], *lists[PUBLISH_ROUTES_MAX + 1][LOSS_REASONS_MAX];
} Parts;

static const char *const reasons[] = { [STATUS_INTERVAL] = "interval", [STATUS_ROUTE] = "route", [STATUS_START] = "start", [STATUS_END] = "end" };

static size_t fill_counts(LossCounts *l, Perfd__V1__Count counts[], Perfd__V1__Count *list[]) {
        for (size_t i = 0; i < l->n; i++) {
                perfd__v1__count__init(&counts[i]);
                counts[i].reason = l->items[i].reason;
                counts[i].count = l->items[i].items;
                list[i] = &counts[i];
        }
        return l->n;
}

static void fill_route(RouteState *r, Parts *parts, size_t i) {
        Perfd__V1__RouteStatus *m = &parts->routes[i];
        RouteCounts *c = &r->counts;

        perfd__v1__route_status__init(m);
        m->name = r->config->name;
        m->events = r->config->events.items;
        m->n_events = r->config->events.n;
        if (r->config->where)
                m->where = r->config->where;
        m->connected = r->is_connected;
        m->since = r->since;
        m->text = r->text;
        m->epoch = c->epoch;
        m->sequence = c->sequence;
        m->matched = c->matched;
        m->n_lost = fill_counts(&c->lost, parts->counts[i], parts->lists[i]);
        m->lost = parts->lists[i];
        m->published = c->published;
        m->held = route_counts_held(c);
        m->stored = c->stored;
        m->stored_matched = c->stored_matched;
        m->ended = c->has_end;
        parts->list[i] = m;
}

static void fill_relay(Status *s, Parts *parts, Perfd__V1__RelayStatus *m) {
        Publishing *p = s->publishing;

        m->host = p->config.host;
        m->machine = p->machine;
        m->boot = p->boot;
        m->relay = (char *)PERFD_VERSION;
        m->perfd = p->perfd_version;
        m->reason = (char *)reasons[s->reason];
        m->start = s->start;
        m->wall = clock_now(CLOCK_REALTIME);
        m->held_bytes = p->held;
        m->spool_bytes = p->config.spool;
        for (size_t i = 0; i < p->n_routes; i++)
                fill_route(route_state(p->routes[i]), parts, i);
        m->routes = parts->list;
        m->n_routes = p->n_routes;
        m->published = p->published;
        m->n_lost = fill_counts(&p->lost, parts->counts[PUBLISH_ROUTES_MAX], parts->lists[PUBLISH_ROUTES_MAX]);
        m->lost = parts->lists[PUBLISH_ROUTES_MAX];
        m->messages = p->n_stored;
        m->bytes = p->stored_bytes;
}

static Message *pack(Status *s) {
        Perfd__V1__RelayStatus relay = PERFD__V1__RELAY_STATUS__INIT;
        Perfd__V1__WallReading reading = s->publishing->reading;
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        _cleanup_free_ Parts *parts = calloc(1, sizeof(*parts));
        _cleanup_free_ uint8_t *bytes = NULL;

        if (!parts)
                return NULL;
        fill_relay(s, parts, &relay);
        if (reading.time > 0)
                relay.clock = &reading;
        packet.sequence = s->sequence;
        packet.relay = &relay;
        bytes = malloc(perfd__v1__packet__get_packed_size(&packet));
        return bytes ? message_new(bytes, perfd__v1__packet__pack(&packet, bytes)) : NULL;
}

static void publish(Status *s) {
        const Publishing *p = s->publishing;
        Message *m;

        s->is_due = false;
        s->sequence++;
        m = pack(s);
        if (!m) {
                log_print(LOG_WARNING, MESSAGE_NOT_PUBLISHING, "the state of this host is not published: out of memory");
                return;
        }
        m->is_status = true;
        (void)snprintf(m->subject, sizeof(m->subject), "perfd.%s.status.%s.%s", p->config.host, p->machine, p->boot);
        (void)snprintf(m->id, sizeof(m->id), "%s.%s.status.%" PRIu64 ".%" PRIu64 ".1", p->machine, p->boot, s->epoch, s->sequence);
        message_add_header(m, "Perfd-Machine", "%s", p->machine);
        message_add_header(m, "Perfd-Boot", "%s", p->boot);
        message_add_header(m, "Perfd-Epoch", "%" PRIu64, s->epoch);
        message_add_header(m, "Perfd-Sequence", "%" PRIu64, s->sequence);
        message_add_header(m, "Perfd-Items", "0");
        message_add_header(m, "Perfd-Clock", "realtime");
        message_add_header(m, "Perfd-Wall-Offset", "0");
        message_add_header(m, "Perfd-Part", "1/1");
        s->is_pending = true;
        s->has_end = s->reason == STATUS_END;
        p->publisher->publish(p->publisher, m);
}

void status_post(Status *s, StatusReason reason) {
        if (!s || s->has_end)
                return;
        if (!s->is_due || reason > s->reason)
                s->reason = reason;
        s->is_due = true;
        if (!s->is_pending)
                publish(s);
}

void status_take_stored(Status *s, Message *m) {
        message_free(m);
        s->is_pending = false;
        s->is_done = s->has_end;
        if (s->is_due)
                publish(s);
}

bool status_is_done(const Status *s) {
        return !s || s->is_done;
}

static int on_interval(sd_event_source *source, uint64_t usec, void *userdata) {
        Status *s = userdata;

        status_post(s, STATUS_INTERVAL);
        (void)sd_event_source_set_time_relative(source, INTERVAL_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int status_start(Publishing *p, Status **ret) {
        Status *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return error_origin(-ENOMEM);
        s->publishing = p;
        s->epoch = clock_now(CLOCK_BOOTTIME);
        s->start = clock_now(CLOCK_REALTIME);
        r = sd_event_add_time_relative(p->event, &s->timer, CLOCK_MONOTONIC, INTERVAL_USEC, 0, on_interval, s);
        if (r < 0) {
                free(s);
                return error_origin(r);
        }
        *ret = s;
        status_post(s, STATUS_START);
        return 0;
}

void status_free(Status *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->timer);
        free(s);
}
