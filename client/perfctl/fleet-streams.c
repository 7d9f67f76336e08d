#include "client/perfctl/fleet-streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/text.h"

#define PACKET_MAX ((size_t)16 << 20) /* bytes: PROTOCOL.md, Frames */

static bool is_of(const FleetStream *s, const FleetMessage *m) {
        return s->about.epoch == m->epoch && strcmp(s->about.route, m->route) == 0 && strcmp(s->about.host, m->host) == 0 &&
               strcmp(s->about.machine, m->machine) == 0 && strcmp(s->about.boot, m->boot) == 0;
}

static void add_loss(FleetStream *s, const char *reason, uint64_t items) {
        size_t i = 0;

        while (i < s->n_losses && strcmp(s->losses[i].reason, reason) != 0)
                i++;
        if (i == s->n_losses && i < sizeof(s->losses) / sizeof(s->losses[0])) {
                (void)snprintf(s->losses[i].reason, sizeof(s->losses[i].reason), "%s", reason);
                s->n_losses++;
        }
        s->losses[i < s->n_losses ? i : i - 1].items += items;
}

static void on_item(void *userdata, const perfd_item *item) {
        FleetStream *s = userdata;

        s->consumed++;
        if (s->streams->calls.item)
                s->streams->calls.item(s, item);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        FleetStream *s = userdata;

        if (strcmp(gap->reason, "expired") == 0)
                s->n_expired += gap->last_sequence - gap->first_sequence + 1;
        else
                add_loss(s, gap->reason, gap->items);
        if (s->streams->calls.gap)
                s->streams->calls.gap(s, gap);
}

/* What is "late" is in no gap: perfd never sent it. */
static void on_end(void *userdata, const perfd_end *end) {
        FleetStream *s = userdata;

        s->has_end = end->own != NULL;
        for (size_t i = 0; end->own && i < end->own->n_dropped; i++)
                if (strcmp(end->own->dropped[i].reason, "late") == 0 && end->own->dropped[i].count > 0)
                        add_loss(s, "late", end->own->dropped[i].count);
        s->matched = end->own ? end->own->matched : 0;
        s->sent = end->own ? end->own->sent : 0;
}

static int fail(FleetStream *s, const char *what) {
        s->is_broken = true;
        return perfctl_fail(s->streams->p, 0, "route %s of %s: %s; the rest of this stream is not read", s->about.route, s->about.host, what);
}

static void feed(FleetStream *s, const uint8_t *bytes, size_t length) {
        int r = perfd_feed(s->client, bytes, length);

        if (r != 0)
                (void)fail(s, perfd_client_error(s->client)->message);
}

/* One that begins in the middle needs what was described before. */
static void begin(FleetStream *s, const FleetMessage *m) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        uint8_t *descriptors;
        size_t n;

        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        s->client = must_have(perfd_client_new("perfctl"));
        if (perfd_feed_begin(s->client, &callbacks, s) != 0) {
                (void)fail(s, perfd_client_error(s->client)->message);
                return;
        }
        if (m->sequence <= 1)
                return;
        s->n_expired = s->streams->is_from_oldest ? m->sequence - 1 : 0;
        if (!fleet_source_find_descriptors(s->streams->source, m->descriptors, &descriptors, &n)) {
                (void)fail(s, "the descriptors of its events are not in JetStream any more");
                return;
        }
        feed(s, descriptors, n);
        free(descriptors);
}

/* -1: there are too many. */
static FleetStream *find(FleetStreams *l, const FleetMessage *m) {
        FleetStream *s;

        for (size_t i = l->n; i > 0; i--)
                if (is_of(l->list[i - 1], m))
                        return l->list[i - 1];
        if (l->n == FLEET_STREAMS_MAX)
                return NULL;
        l->list = must_have(reallocarray(l->list, l->n + 1, sizeof(*l->list)));
        s = l->list[l->n++] = must_have(calloc(1, sizeof(*s)));
        s->streams = l;
        s->about = *m;
        s->about.bytes = NULL;
        begin(s, m);
        return s;
}

/* Parts come in their order; one that does not fit begins anew. */
static bool add_part(FleetStream *s, const FleetMessage *m) {
        if (m->part == 1)
                s->n_packet = s->n_parts = 0;
        if (m->part != s->n_parts + 1 || s->n_packet + m->length > PACKET_MAX)
                return false;
        s->packet = must_have(realloc(s->packet, s->n_packet + m->length + 1));
        memcpy(s->packet + s->n_packet, m->bytes, m->length);
        s->n_packet += m->length;
        s->n_parts = m->part;
        return m->part == m->n_parts;
}

int fleet_streams_take(FleetStreams *l, const FleetMessage *m) {
        FleetStream *s = find(l, m);

        if (!s)
                return perfctl_fail(l->p, PERFCTL_FAILED, "there are more than %d streams: name a route, or hosts by --host", FLEET_STREAMS_MAX);
        s->n_messages++;
        s->n_bytes += m->length;
        s->latest = m->stored;
        s->wall_offset = m->wall_offset;
        if (s->is_broken || !s->client || m->sequence <= s->last) /* the last: stored twice */
                return 0;
        if (m->n_parts == 1)
                feed(s, m->bytes, m->length);
        else if (!add_part(s, m))
                return 0;
        else
                feed(s, s->packet, s->n_packet);
        s->last = m->sequence;
        if (s->has_end || s->is_broken) {
                perfd_client_free(s->client);
                s->client = NULL;
        }
        return 0;
}

uint64_t fleet_stream_lost(const FleetStream *s) {
        uint64_t sum = 0;

        for (size_t i = 0; i < s->n_losses; i++)
                sum += s->losses[i].items;
        return sum;
}

uint64_t fleet_stream_expired(const FleetStream *s) {
        uint64_t known = s->consumed + fleet_stream_lost(s);

        return s->has_end && s->n_expired > 0 && s->matched > known ? s->matched - known : 0;
}

void fleet_streams_deinit(FleetStreams *l) {
        for (size_t i = 0; i < l->n; i++) {
                perfd_client_free(l->list[i]->client);
                free(l->list[i]->packet);
                free(l->list[i]);
        }
        free(l->list);
}
