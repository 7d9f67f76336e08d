#include "client/perfctl/fleet-streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/text.h"

#define PACKET_MAX ((size_t)16 << 20) /* bytes: PROTOCOL.md, Frames */
#define PARTS_MAX ((size_t)256 << 20) /* of all streams */

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

/* It is said, if something else had been read meanwhile. */
static void count_damage(FleetStream *s, const char *what) {
        if (!s->has_damage)
                (void)perfctl_fail(s->streams->p, 0, "route %s of %s: a packet cannot be read: %s", s->about.route, s->about.host, what);
        s->has_damage = true;
        s->n_damaged++;
}

/* The next packet begins it again. */
static void spoil(FleetStream *s, const char *what) {
        count_damage(s, what);
        perfd_client_free(s->client);
        s->client = NULL;
}

static bool feed(FleetStream *s, const uint8_t *bytes, size_t length) {
        if (perfd_feed(s->client, bytes, length) == 0)
                return true;
        spoil(s, perfd_client_error(s->client)->message);
        return false;
}

/* One that begins in the middle needs what was described before. */
static bool describe(FleetStream *s, const FleetMessage *m) {
        uint8_t *descriptors;
        size_t n;
        bool is_right;

        if (m->sequence <= 1)
                return true;
        if (strcmp(s->undescribed, m->descriptors) == 0 ||
            !fleet_source_find_descriptors(s->streams->source, m->descriptors, &descriptors, &n)) {
                memcpy(s->undescribed, m->descriptors, sizeof(s->undescribed));
                spoil(s, "the descriptors of its events are not in JetStream");
                return false;
        }
        is_right = feed(s, descriptors, n);
        free(descriptors);
        return is_right;
}

static bool begin(FleetStream *s, const FleetMessage *m) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;

        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        s->client = must_have(perfd_client_new("perfctl"));
        if (perfd_feed_begin(s->client, &callbacks, s) == 0)
                return describe(s, m);
        spoil(s, perfd_client_error(s->client)->message);
        return false;
}

static FleetStream *find(const FleetStreams *l, const FleetMessage *m) {
        for (size_t i = l->n; i > 0; i--)
                if (is_of(l->list[i - 1], m))
                        return l->list[i - 1];
        return NULL;
}

static void stream_free(FleetStream *s) {
        s->streams->n_parts -= s->n_packet;
        perfd_client_free(s->client);
        free(s->packet);
        free(s);
}

static void forget_one(FleetStreams *l) {
        size_t oldest = 0;
        FleetStream *s;

        for (size_t i = 1; i < l->n; i++)
                if (l->list[i]->latest < l->list[oldest]->latest)
                        oldest = i;
        s = l->list[oldest];
        l->has_lost = l->has_lost || s->n_expired > 0 || s->n_damaged > 0 || fleet_stream_lost(s) > 0;
        memmove(&l->list[oldest], &l->list[oldest + 1], (l->n - oldest - 1) * sizeof(FleetStream *));
        l->n--;
        stream_free(s);
}

/* NULL: there are too many. */
static FleetStream *add(FleetStreams *l, const FleetMessage *m) {
        FleetStream *s;

        if (l->n == FLEET_STREAMS_MAX && l->may_forget)
                forget_one(l);
        if (l->n == FLEET_STREAMS_MAX) {
                if (l->n_refused++ == 0)
                        (void)perfctl_fail(l->p, 0, "there are more than %d streams, and the others are not read: name a route, or hosts by "
                                           "--host", FLEET_STREAMS_MAX);
                return NULL;
        }
        l->list = must_have(reallocarray(l->list, l->n + 1, sizeof(*l->list)));
        s = l->list[l->n++] = must_have(calloc(1, sizeof(*s)));
        s->streams = l;
        s->about = *m;
        s->about.bytes = NULL;
        return s;
}

static void drop_parts(FleetStream *s) {
        s->streams->n_parts -= s->n_packet;
        free(s->packet);
        s->packet = NULL;
        s->n_packet = s->n_parts = 0;
}

/* Parts come in their order; one that does not fit begins anew. */
static bool add_part(FleetStream *s, const FleetMessage *m) {
        if (m->part == 1)
                drop_parts(s);
        if (m->part != s->n_parts + 1)
                return false;
        if (s->n_packet + m->length > PACKET_MAX || s->streams->n_parts + m->length > PARTS_MAX) {
                s->streams->n_refused++;
                drop_parts(s);
                return false;
        }
        s->packet = must_have(realloc(s->packet, s->n_packet + m->length + 1));
        memcpy(s->packet + s->n_packet, m->bytes, m->length);
        s->n_packet += m->length;
        s->streams->n_parts += m->length;
        s->n_parts = m->part;
        return m->part == m->n_parts;
}

/* What is missing before the packet, by what its relay says has matched; `before`: what was known of before it was read. */
static void reckon(FleetStream *s, const FleetMessage *m, uint64_t before, bool is_first) {
        uint64_t here = s->consumed + fleet_stream_lost(s) - before, missing;

        if (!m->has_matched)
                return;
        if (is_first && !s->streams->is_from_oldest)
                s->reckoned = m->matched > here ? m->matched - here : 0;
        s->is_wrong = s->is_wrong || m->matched < here || m->matched - here < s->reckoned;
        missing = s->is_wrong ? 0 : m->matched - here - s->reckoned;
        if (missing > 0 && s->has_damage)
                add_loss(s, "damaged", missing);
        else
                s->expired += missing;
        s->reckoned = m->matched;
        s->has_reckoned = true;
}

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret) {
        uint64_t number = 0;

        for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
                uint8_t byte = *(*at)++;

                number |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret = number;
                        return true;
                }
        }
        return false;
}

/* Whether a packet is what its headers say, before any of it is shown: Packet.sequence and Packet.items of perfd.proto. */
static bool is_as_said(const FleetMessage *m, const uint8_t *at, size_t length) {
        enum { SEQUENCE = 1 << 3, ITEMS = 4 << 3 | 2 };
        const uint8_t *end = at + length;
        uint64_t key, number, sequence = 0, n_items = 0;

        while (at < end) {
                if (!take_varint(&at, end, &key) || ((key & 7) != 0 && (key & 7) != 2) || !take_varint(&at, end, &number))
                        return false;
                if ((key & 7) == 2 && number > (size_t)(end - at))
                        return false;
                at += (key & 7) == 2 ? number : 0;
                sequence = key == SEQUENCE ? number : sequence;
                n_items += key == ITEMS;
        }
        return sequence == m->sequence && n_items == m->items;
}

/* What it has counted is taken back: its items are damaged. */
static bool read_packet(FleetStream *s, const uint8_t *bytes, size_t length) {
        FleetStream before = *s;

        if (feed(s, bytes, length))
                return true;
        s->consumed = before.consumed;
        s->n_expired = before.n_expired;
        s->has_end = false;
        memcpy(s->losses, before.losses, sizeof(s->losses));
        s->n_losses = before.n_losses;
        return false;
}

static void take_packet(FleetStream *s, const FleetMessage *m, const uint8_t *bytes, size_t length) {
        uint64_t before = s->consumed + fleet_stream_lost(s);
        bool is_first = s->last == 0;

        if (!is_as_said(m, bytes, length)) {
                count_damage(s, "it is not what its headers say");
                return;
        }
        if ((!s->client && !begin(s, m)) || !read_packet(s, bytes, length))
                return;
        if (is_first && s->streams->is_from_oldest && !s->has_damage)
                s->n_expired = m->sequence - 1;
        reckon(s, m, before, is_first);
        s->last = m->sequence;
        s->has_damage = false;
        if (s->has_end) {
                perfd_client_free(s->client);
                s->client = NULL;
        }
}

/* One that was stored twice, or is given again, has a number that was read. */
void fleet_streams_take(FleetStreams *l, const FleetMessage *m) {
        FleetStream *s = find(l, m);

        if (!s)
                s = add(l, m);
        if (!s)
                return;
        s->n_messages++;
        s->n_bytes += m->length;
        s->latest = m->stored;
        if (s->has_end || m->sequence <= s->last)
                return;
        s->wall_offset = m->wall_offset;
        if (m->n_parts == 1) {
                drop_parts(s);
                take_packet(s, m, m->bytes, m->length);
        } else if (add_part(s, m)) {
                take_packet(s, m, s->packet, s->n_packet);
                drop_parts(s);
        }
}

bool fleet_streams_wait_for_part(const FleetStreams *l) {
        return l->n_parts > 0;
}

static void take_losses(FleetStream *s, const perfd_route_status *status) {
        for (size_t i = 0; i < status->n_lost; i++)
                add_loss(s, status->lost[i].reason, status->lost[i].count);
}

/* It is believed as far as its sums are right: they say what should be there. */
void fleet_streams_reckon(FleetStreams *l, const FleetMessage *about, const perfd_route_status *status) {
        FleetStream *s = find(l, about);
        bool is_all = status->stored == status->sequence;

        if (status->stored == 0 || !status->balanced || status->stored_matched > status->matched || status->stored > status->sequence ||
            (s && (s->has_end || status->stored <= s->last)))
                return;
        if (!s) {
                s = add(l, about);
                if (!s)
                        return;
                if (is_all)
                        take_losses(s, status);
                s->reckoned = fleet_stream_lost(s);
                s->has_reckoned = true;
        }
        if (!s->has_reckoned || status->stored_matched < s->reckoned) {
                s->is_wrong = true;
                return;
        }
        s->n_expired += status->stored - s->last;
        s->expired += status->stored_matched - s->reckoned;
        s->reckoned = status->stored_matched;
        s->last = status->stored;
        s->has_end = is_all && status->ended;
        s->matched = status->matched;
}

uint64_t fleet_stream_lost(const FleetStream *s) {
        uint64_t sum = 0;

        for (size_t i = 0; i < s->n_losses; i++)
                sum += s->losses[i].items;
        return sum;
}

bool fleet_stream_matched(const FleetStream *s, uint64_t *ret) {
        if (s->has_end)
                *ret = s->matched;
        else if (s->has_reckoned)
                *ret = s->reckoned;
        return s->has_end || s->has_reckoned;
}

uint64_t fleet_stream_expired(const FleetStream *s) {
        uint64_t known = s->consumed + fleet_stream_lost(s);

        if (s->has_reckoned)
                return s->expired;
        return s->has_end && s->n_expired > 0 && s->matched > known ? s->matched - known : 0;
}

void fleet_streams_say(const FleetStreams *l) {
        if (l->n_alien > 0)
                (void)perfctl_fail(l->p, 0, "%zu messages are not of a relay, and were skipped", l->n_alien);
        if (l->n_refused > 0)
                (void)perfctl_fail(l->p, 0, "%zu messages are of too many streams or too large packets, and were skipped", l->n_refused);
        for (size_t i = 0; i < l->n; i++)
                if (l->list[i]->n_damaged > 1)
                        (void)perfctl_fail(l->p, 0, "route %s of %s: %llu packets cannot be read", l->list[i]->about.route,
                                           l->list[i]->about.host, (unsigned long long)l->list[i]->n_damaged);
}

void fleet_streams_deinit(FleetStreams *l) {
        for (size_t i = 0; i < l->n; i++)
                stream_free(l->list[i]);
        free(l->list);
}
