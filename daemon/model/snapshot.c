/* The hash is at most half full, so that a miss ends soon. */
#include "daemon/model/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

Snapshot *snapshot_new(uint64_t generation, uint32_t n_cpus, size_t n_events) {
        _cleanup_(snapshot_unrefp) Snapshot *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->n_refs = 1;
        s->generation = generation;
        s->cpus = calloc(n_cpus, sizeof(*s->cpus));
        s->events = calloc(n_events ? n_events : 1, sizeof(*s->events));
        if (!s->cpus || !s->events)
                return NULL;
        s->n_cpus = n_cpus;
        s->n_events = n_events;
        return TAKE_PTR(s);
}

Snapshot *snapshot_ref(Snapshot *s) {
        if (s)
                atomic_fetch_add_explicit(&s->n_refs, 1, memory_order_relaxed);
        return s;
}

Snapshot *snapshot_unref(Snapshot *s) {
        if (!s || atomic_fetch_sub_explicit(&s->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        for (size_t i = 0; i < s->n_events; i++) {
                event_unref(s->events[i].event);
                route_table_unref(s->events[i].table);
                read_budget_unref(s->events[i].budget);
                free(s->events[i].closed);
        }
        for (uint32_t i = 0; i < s->n_cpus; i++) {
                free(s->cpus[i].streams);
                free(s->cpus[i].slots);
        }
        free(s->events);
        free(s->cpus);
        free(s);
        return NULL;
}

RouteTable *route_table_new(size_t n_routes, size_t n_encodings) {
        _cleanup_(route_table_unrefp) RouteTable *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->n_refs = 1;
        t->routes = calloc(n_routes ? n_routes : 1, sizeof(*t->routes));
        t->encodings = calloc(n_encodings ? n_encodings : 1, sizeof(*t->encodings));
        t->ends = calloc(n_encodings ? n_encodings : 1, sizeof(*t->ends));
        return t->routes && t->encodings && t->ends ? TAKE_PTR(t) : NULL;
}

RouteTable *route_table_ref(RouteTable *t) {
        if (t)
                atomic_fetch_add_explicit(&t->n_refs, 1, memory_order_relaxed);
        return t;
}

RouteTable *route_table_unref(RouteTable *t) {
        if (!t || atomic_fetch_sub_explicit(&t->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        if (t->deinit)
                t->deinit(t);
        free(t->routes);
        free(t->encodings);
        free(t->ends);
        free(t->first);
        free(t);
        return NULL;
}

static int compare_routes(const void *a, const void *b) {
        const Route *x = a, *y = b;

        if (x->encoding != y->encoding)
                return x->encoding < y->encoding ? -1 : 1;
        return (x->number > y->number) - (x->number < y->number);
}

/* Mostly they are: who comes last has the highest number. */
static bool are_in_order(const RouteTable *t) {
        for (size_t i = 1; i < t->n_routes; i++)
                if (compare_routes(&t->routes[i - 1], &t->routes[i]) > 0)
                        return false;
        return true;
}

void route_table_finish(RouteTable *t) {
        if (!are_in_order(t))
                qsort(t->routes, t->n_routes, sizeof(*t->routes), compare_routes);
        t->is_grouped = false;
        t->is_of_one_group = true;
        for (size_t i = 0; i < t->n_routes; i++) {
                Route *route = &t->routes[i];

                assert(route->number < SUBSCRIPTIONS_MAX);
                route->plan = t->encodings[route->encoding];
                route->bit = BATCH_BIT(route->number);
                t->ends[route->encoding] = i + 1;
                t->is_grouped |= BATCH_GROUP(route->number) > 0;
                t->is_of_one_group &= BATCH_GROUP(route->number) == BATCH_GROUP(t->routes[0].number);
        }
}

void snapshot_set_routes(SnapshotEvent *e, RouteTable *table) {
        const Plan *plan = e->event->plan;

        e->table = table;
        e->routes = table ? table->routes : NULL;
        e->n_routes = table ? table->n_routes : 0;
        e->is_special = table && (table->needs_comm || table->conditional_groups);
        e->latency = table ? table->latency : 0;
        e->has_fixed_plan = true;
        for (size_t i = 0; plan && i < plan->n_fields; i++)
                e->has_fixed_plan = e->has_fixed_plan && plan->fields[i].place == PLACE_FIXED;
}

SnapshotStream *snapshot_streams_new(size_t n) {
        size_t size = (n ? n : 1) * sizeof(SnapshotStream);
        SnapshotStream *streams = aligned_alloc(_Alignof(SnapshotStream), size);

        return streams ? memset(streams, 0, size) : NULL;
}

static RouteShape event_route_shape(const SnapshotEvent *e) {
        if (e->is_special)
                return ROUTES_ANY;
        if (e->n_routes <= 1)
                return ROUTES_ONE;
        return e->table->is_of_one_group ? ROUTES_ONE_GROUP : ROUTES_ANY;
}

/* Only what counts each sample as one occurrence, and has all at fixed places, need not be looked at one by one. */
static uint8_t stream_path(const SnapshotStream *stream, const SnapshotEvent *e) {
        bool is_each = !stream->is_standby && !stream->is_sampling && stream->period <= 1 && e->has_fixed_plan;

        return (uint8_t)sample_path(is_each ? stream->record_layout : RECORD_LAYOUT_ANY,
                                    e->n_routes > 0 ? e->table->encoding : ITEM_ONE_COPY, event_route_shape(e));
}

static void stream_finish(SnapshotStream *stream, const SnapshotEvent *e, uint32_t slot) {
        stream->of = e;
        stream->counters = &e->event->counters[slot];
        stream->min_raw_size = e->event->plan ? e->event->plan->min_size : 0;
        stream->path = stream_path(stream, e);
        stream->exclude_self = e->exclude_self;
        stream->is_special = e->is_special || (e->table && e->table->is_grouped);
        assert(e->n_routes <= SUBSCRIPTIONS_MAX); /* one for each */
        stream->n_routes = (uint16_t)e->n_routes;
        stream->routes = e->routes;
        if (e->n_routes == 1) {
                stream->only = e->routes[0];
                stream->routes = &stream->only;
        }
        if (!stream->layout)
                stream->layout = e->layout;
}

int snapshot_set_streams(Snapshot *s, uint32_t slot, SnapshotStream *streams, size_t n) {
        SnapshotCpu *c = &s->cpus[slot];
        uint32_t n_slots = 2;

        while (n_slots < 2 * n)
                n_slots *= 2;
        c->slots = calloc(n_slots, sizeof(*c->slots));
        if (!c->slots)
                return error_origin(-ENOMEM);
        c->mask = n_slots - 1;
        c->streams = streams;
        c->n_streams = n;
        for (size_t i = 0; i < n; i++) {
                uint32_t k = snapshot_hash(streams[i].id);

                stream_finish(&streams[i], &s->events[streams[i].event], slot);
                while (c->slots[k & c->mask] != 0)
                        k++;
                c->slots[k & c->mask] = (uint32_t)i + 1;
        }
        return 0;
}
