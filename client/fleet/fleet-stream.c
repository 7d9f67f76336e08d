/*
 * A stream of a fleet: its packets are fed to a client without a connection. What a packet that cannot be read leaves of that client is
 * thrown away, and the next packet is read by a new one, as from the middle of the stream: so nothing that one message says can end the
 * stream of a host.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet.h"
#include "client/stream/stream.h"

#define HASH_BASE UINT32_C(2166136261) /* FNV-1a */
#define HASH_FACTOR UINT32_C(16777619)

static uint32_t hash_add(uint32_t hash, const void *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                hash = (hash ^ ((const uint8_t *)bytes)[i]) * HASH_FACTOR;
        return hash;
}

static uint32_t hash_word(uint32_t hash, const char *word) {
        return hash_add(hash, word, strlen(word) + 1);
}

static uint32_t route_hash_of(const FleetHead *h) {
        return hash_word(hash_word(hash_word(HASH_BASE, h->host), h->route), h->machine);
}

static uint32_t hash_of(uint32_t route_hash, const FleetHead *h) {
        return hash_add(hash_word(route_hash, h->boot), &h->epoch, sizeof(h->epoch));
}

static bool is_of_route(const FleetStream *s, const FleetHead *h) {
        return strcmp(s->host, h->host) == 0 && strcmp(s->route, h->route) == 0 && strcmp(s->machine, h->machine) == 0;
}

FleetStream *fleet_stream_find(perfd_fleet *f, const FleetHead *h) {
        uint32_t hash = hash_of(route_hash_of(h), h);
        FleetStream *s = f->buckets[hash % FLEET_BUCKETS];

        while (s && !(s->hash == hash && s->row.epoch == h->epoch && strcmp(s->boot, h->boot) == 0 && is_of_route(s, h)))
                s = s->next;
        return s;
}

static void stop_reading(FleetStream *s) {
        perfd_client_free(s->client);
        s->client = NULL;
        s->fleet->counts.waiting -= s->parts.n;
        packet_parts_deinit(&s->parts);
}

static void cut(FleetStream *s) {
        s->row.state = PERFD_FLEET_CUT;
        stop_reading(s);
}

/*
 * A route has one stream at a time: of those without an end only the newest goes on. The server drops the oldest messages first, so one
 * of which nothing has come is older than those of which something has.
 */
static void cut_others(perfd_fleet *f, FleetStream *s, const FleetHead *h, bool has_come) {
        for (size_t i = 0; i < f->n; i++) {
                FleetStream *o = f->streams[i];

                if (o->route_hash != s->route_hash || o->row.state == PERFD_FLEET_CUT || !is_of_route(o, h))
                        continue;
                if ((strcmp(o->boot, s->boot) == 0 && o->row.epoch > s->row.epoch) || (!has_come && o->row.messages > 0))
                        s->row.state = PERFD_FLEET_CUT;
                else if (o->row.state == PERFD_FLEET_OPEN)
                        cut(o);
        }
}

int fleet_stream_new(perfd_fleet *f, const FleetHead *h, bool has_come, FleetStream **ret) {
        FleetStream *s, **list = f->streams;

        if (f->n == f->room) {
                list = reallocarray(f->streams, 2 * f->room + 16, sizeof(FleetStream *));
                if (!list)
                        return -ENOMEM;
                f->streams = list;
                f->room = 2 * f->room + 16;
        }
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->fleet = f;
        memcpy(s->host, h->host, sizeof(s->host));
        memcpy(s->route, h->route, sizeof(s->route));
        memcpy(s->machine, h->machine, sizeof(s->machine));
        memcpy(s->boot, h->boot, sizeof(s->boot));
        s->row = (perfd_fleet_stream){ .host = s->host, .route = s->route, .machine = s->machine, .boot = s->boot, .epoch = h->epoch };
        s->row.lost = s->sum.rows;
        s->route_hash = route_hash_of(h);
        s->hash = hash_of(s->route_hash, h);
        cut_others(f, s, h, has_come);
        s->next = f->buckets[s->hash % FLEET_BUCKETS];
        f->buckets[s->hash % FLEET_BUCKETS] = s;
        list[f->n++] = s;
        *ret = s;
        return 0;
}

void fleet_stream_free(FleetStream *s) {
        FleetStream **place = &s->fleet->buckets[s->hash % FLEET_BUCKETS];

        while (*place != s)
                place = &(*place)->next;
        *place = s->next;
        stop_reading(s);
        free(s);
}

/* ---- packets that did not come, or cannot be read ------------------------------------------------------------------ */

static void show(FleetStream *s) {
        fleet_sum_show(&s->sum, &s->row, s->fleet->missing, !s->is_partial);
}

/* Before what came first: only who wants all of it misses it. */
static void begin_at(FleetStream *s, uint64_t sequence) {
        if (s->accounted == 0 && sequence > 1 && s->fleet->options.from_oldest)
                s->row.missing = sequence - 1;
        else if (s->accounted == 0 && sequence > 1)
                s->is_partial = s->sum.is_rest_unknown = true;
        if (s->accounted == 0)
                s->accounted = sequence - 1;
}

static void tell_missing(FleetStream *s, uint64_t last) {
        perfd_gap gap = { .reason = s->fleet->missing, .first_sequence = s->accounted + 1, .last_sequence = last };

        s->row.missing = add_saturating(s->row.missing, last - s->accounted);
        s->accounted = last;
        if (s->fleet->callbacks.gap)
                s->fleet->callbacks.gap(s->fleet->userdata, &s->row, &gap);
}

/* The packet has come, in whatever state. */
static void account(FleetStream *s, uint64_t sequence) {
        begin_at(s, sequence);
        if (sequence > s->accounted + 1)
                tell_missing(s, sequence - 1);
        s->accounted = s->row.last_sequence = sequence;
        if (s->row.first_sequence == 0)
                s->row.first_sequence = sequence;
}

static void refuse(FleetStream *s, const char *why) {
        show(s);
        if (s->fleet->callbacks.refused)
                s->fleet->callbacks.refused(s->fleet->userdata, &s->row, why);
}

static uint64_t items_of(const FleetHead *h) {
        return h->items < FLEET_ITEMS_MAX ? h->items : FLEET_ITEMS_MAX;
}

static void damage(FleetStream *s, const FleetHead *h, const char *why) {
        uint64_t n = s->row.consumed - s->before, items = items_of(h);

        s->row.damaged++;
        s->sum.damaged += items > n ? items - n : 0;
        account(s, h->sequence);
        refuse(s, why);
        stop_reading(s);
}

/* ---- what is in a packet ------------------------------------------------------------------------------------------- */

/* Its own sequence number is known before anything but gaps is called back. */
static bool is_right(FleetStream *s) {
        if (s->reading > 0 && s->client->stream->sequence != s->reading)
                s->wrong = "its sequence number is not the one of its header";
        return !s->wrong;
}

static void on_event(void *userdata, const perfd_event *event) {
        FleetStream *s = userdata;

        if (is_right(s) && s->fleet->callbacks.event)
                s->fleet->callbacks.event(s->fleet->userdata, &s->row, event);
}

static void on_item(void *userdata, const perfd_item *item) {
        FleetStream *s = userdata;

        if (!is_right(s))
                return;
        s->row.consumed++;
        if (s->fleet->callbacks.item)
                s->fleet->callbacks.item(s->fleet->userdata, &s->row, item);
}

static void on_batch(void *userdata, const perfd_batch *batch) {
        FleetStream *s = userdata;

        if (!is_right(s))
                return;
        s->row.consumed += batch->n;
        s->fleet->callbacks.batch(s->fleet->userdata, &s->row, batch);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        FleetStream *s = userdata;

        if (s->wrong || gap->last_sequence >= s->reading) {
                s->wrong = "a gap in it goes beyond it";
                return;
        }
        if (gap->reason == stream_expired) {
                tell_missing(s, gap->last_sequence);
                return;
        }
        begin_at(s, gap->first_sequence);
        s->accounted = gap->last_sequence;
        fleet_sum_add(&s->sum, gap->reason, gap->items);
        if (s->fleet->callbacks.gap)
                s->fleet->callbacks.gap(s->fleet->userdata, &s->row, gap);
}

/* What was late has matched, and is in no gap. */
static void compare_with_end(FleetStream *s, const perfd_subscriber_ledger *own) {
        uint64_t late = 0;

        for (size_t i = 0; i < own->n_dropped; i++)
                if (strcmp(own->dropped[i].reason, "late") == 0)
                        late = add_saturating(late, own->dropped[i].count);
        fleet_sum_compare(&s->sum, &s->row, own->matched > late ? own->matched - late : 0);
}

static void on_end(void *userdata, const perfd_end *end) {
        FleetStream *s = userdata;

        if (!is_right(s) || s->row.state == PERFD_FLEET_ENDED)
                return;
        account(s, s->reading);
        s->row.state = PERFD_FLEET_ENDED;
        s->row.has_matched = end->own != NULL;
        s->row.matched = end->own ? end->own->matched : 0;
        if (end->own)
                compare_with_end(s, end->own);
        if (end->own)
                fleet_sum_close(&s->sum, end->own->dropped, end->own->n_dropped, &s->row, !s->is_partial);
        show(s);
        if (s->fleet->callbacks.end)
                s->fleet->callbacks.end(s->fleet->userdata, &s->row, end);
}

/* ---- reading it ---------------------------------------------------------------------------------------------------- */

static int begin(FleetStream *s, const FleetHead *h) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        const DescriptorsOfDigest *d = h->sequence > 1 ? known_descriptors_find(&s->fleet->known, h->digest) : NULL;
        int r;

        s->client = perfd_client_new("");
        if (!s->client)
                return -ENOMEM;
        callbacks.event = on_event;
        callbacks.item = s->fleet->callbacks.batch ? NULL : on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        r = perfd_feed_begin(s->client, &callbacks, s);
        s->client->stream->sequence = s->accounted;
        s->reading = 0;
        return r == 0 && d ? perfd_feed(s->client, d->bytes, d->length) : r;
}

static bool is_undescribed(const FleetStream *s, const FleetHead *h) {
        const DescriptorsOfDigest *d = s->client || h->sequence == 1 ? NULL : known_descriptors_find(&s->fleet->known, h->digest);

        return d && !d->bytes;
}

static void leave_undescribed(FleetStream *s, const FleetHead *h) {
        s->row.undescribed++;
        s->sum.undescribed += items_of(h);
        account(s, h->sequence);
        refuse(s, "the descriptors of its events are not there, or not what their digest says");
}

static int feed(FleetStream *s, const uint8_t *bytes, size_t length) {
        int r;

        if (!s->fleet->batch)
                return perfd_feed(s->client, bytes, length);
        stream_lend_batch(s->client, s->fleet->batch, on_batch);
        r = perfd_feed(s->client, bytes, length);
        stream_give_batch_back(s->client);
        return r;
}

/* What its relay says has matched holds until the next packet; the closing ledger is the last word. */
static void reckon(FleetStream *s, const FleetHead *h) {
        uint64_t known;

        if (s->row.state == PERFD_FLEET_ENDED)
                return;
        s->row.has_matched = h->has_matched;
        s->row.matched = h->has_matched ? h->matched : 0;
        known = fleet_sum_known(&s->sum, &s->row);
        if (s->is_partial && h->has_matched && !s->sum.is_skipped_known) { /* it is the first one */
                s->sum.skipped = h->matched > known ? h->matched - known : 0;
                s->sum.is_skipped_known = true;
        }
        s->sum.is_wrong = false;
        if (h->has_matched)
                fleet_sum_compare(&s->sum, &s->row, h->matched);
        if (s->row.has_matched || s->row.n_lost > 0 || s->sum.n_reasons > 0)
                show(s);
}

/* Of errors of the client only -ENOMEM is none of the packet. */
static int read_packet(FleetStream *s, const FleetHead *h, const uint8_t *bytes, size_t length) {
        int r = s->client ? 0 : begin(s, h);

        s->before = s->row.consumed;
        s->wrong = NULL;
        if (r == 0) {
                if (s->client->stream->wall.n == 0)
                        s->client->stream->wall.offset = h->wall_offset;
                s->reading = h->sequence;
                r = feed(s, bytes, length);
        }
        if (r == 0 && is_right(s) && s->row.consumed - s->before != h->items)
                s->wrong = "it has not as many items as its header says";
        if (r != 0 || s->wrong) {
                damage(s, h, r == -ENOMEM ? "there is no memory to read it" : s->wrong ? s->wrong : perfd_client_error(s->client)->message);
                return r == -ENOMEM ? r : 0;
        }
        account(s, h->sequence);
        s->row.packets++;
        reckon(s, h);
        if (s->row.state == PERFD_FLEET_ENDED)
                stop_reading(s);
        return 0;
}

/* Until all that wait for their last part are within the budget. */
static void make_room(perfd_fleet *f) {
        while (f->counts.waiting > FLEET_PACKETS_MAX) {
                FleetStream *oldest = NULL;

                for (size_t i = 0; i < f->n; i++)
                        if (f->streams[i]->parts.n > 0 && (!oldest || f->streams[i]->parts.turn < oldest->parts.turn))
                                oldest = f->streams[i];
                f->counts.waiting -= oldest->parts.n;
                packet_parts_deinit(&oldest->parts);
        }
}

static int take_part(FleetStream *s, const FleetHead *h, const perfd_fleet_message *m) {
        bool is_whole;
        int r;

        s->fleet->counts.waiting -= s->parts.n;
        r = packet_parts_add(&s->parts, h, m, &is_whole);
        s->fleet->counts.waiting += s->parts.n;
        if (h->part == 1)
                s->parts.turn = ++s->fleet->turn;
        if (r == 0 && is_whole) {
                r = read_packet(s, h, s->parts.bytes, s->parts.n);
                s->fleet->counts.waiting -= s->parts.n;
                packet_parts_deinit(&s->parts);
        }
        make_room(s->fleet);
        return r;
}

bool fleet_stream_needs(FleetStream *s, const FleetHead *h) {
        KnownDescriptors *k = &s->fleet->known;

        if (s->client || s->row.state == PERFD_FLEET_ENDED || h->sequence <= s->accounted || h->sequence == 1 ||
            known_descriptors_find(k, h->digest))
                return false;
        if (strcmp(k->wanted, h->digest) != 0)
                known_descriptors_want(k, h->digest);
        return true;
}

int fleet_stream_take(FleetStream *s, const FleetHead *h, const perfd_fleet_message *m) {
        if (s->row.messages++ == 0)
                s->row.first_stored = m->stored;
        s->row.bytes += m->length;
        s->row.last_stored = m->stored;
        if (h->sequence <= s->accounted) {
                s->row.repeated++;
                return 0;
        }
        s->row.wall_offset = h->wall_offset;
        s->before = s->row.consumed;
        if (s->row.state == PERFD_FLEET_ENDED) {
                damage(s, h, "it comes behind the end of its stream");
        } else if (is_undescribed(s, h)) {
                if (h->part == h->n_parts)
                        leave_undescribed(s, h);
        } else {
                return h->n_parts == 1 ? read_packet(s, h, m->bytes, m->length) : take_part(s, h, m);
        }
        return 0;
}

bool fleet_stream_reckon(FleetStream *s, const perfd_fleet_reckoning *r) {
        if (s->row.state == PERFD_FLEET_ENDED || r->sequence < s->accounted)
                return true;
        if (fleet_sum_known(&s->sum, &s->row) > r->matched)
                return false;
        begin_at(s, r->sequence + 1);
        if (r->sequence > s->accounted)
                tell_missing(s, r->sequence);
        if (s->client)
                s->client->stream->sequence = s->accounted;
        s->sum.is_rest_unknown = true; /* with what is late, or would have been in gaps */
        s->sum.is_wrong = false;
        if (r->lost)
                fleet_sum_close(&s->sum, r->lost, r->n_lost, &s->row, !s->is_partial);
        s->row.has_matched = true;
        s->row.matched = r->matched;
        show(s);
        if (r->ended) {
                s->row.state = PERFD_FLEET_ENDED;
                stop_reading(s);
        }
        return true;
}
