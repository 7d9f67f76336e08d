/*
 * What is registered and subscribed, as one immutable snapshot for all readers. With ten thousand events that takes main tens of
 * milliseconds, each time: those who only look are served meanwhile, and nothing changes.
 */
#include "daemon/supervisor/streams/snapshot.h"

#include <string.h>

#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/readers/budgets.h"

/* 0 is none. */
static nsec_t lesser_latency(nsec_t a, nsec_t b) {
        return a == 0 || (b > 0 && b < a) ? b : a;
}

static int snapshot_add_closed(SnapshotEvent *e) {
        size_t n = (size_t)e->event->n_slots * e->event->n_members;

        e->closed = malloc(n * sizeof(*e->closed));
        if (!e->closed)
                return error_origin(-ENOMEM);
        memcpy(e->closed, e->event->closed_reads, n * sizeof(*e->closed));
        return 0;
}

/* What there is of each CPU, by slot. */
typedef struct StreamsOfCpu {
        SnapshotStream *streams;
        size_t n, n_put;
} StreamsOfCpu;

static void count_streams(const PerfFdSet *o, StreamsOfCpu *cpus) {
        for (size_t i = 0; i < o->n; i++)
                cpus[o->fds[i].slot].n++;
}

static void put_streams(const Registration *g, const PerfFdSet *o, uint32_t event, StreamsOfCpu *cpus) {
        const SampleLayout *layout = o == &g->pending && g->pending_layout ? g->pending_layout : g->layout;

        for (size_t i = 0; i < o->n; i++) {
                const PerfFd *stream = &o->fds[i];
                StreamsOfCpu *cpu = &cpus[stream->slot];

                cpu->streams[cpu->n_put++] =
                        (SnapshotStream){ .id = stream->id, .fd = stream->fd, .member = stream->member,
                                          .read_format = stream->read_format, .is_standby = o == &g->pending,
                                          .is_successor = stream->is_successor,
                                          .is_sampling = stream->is_sampling, .period = stream->period,
                                          .record_layout = layout->layout, .layout = layout, .event = event,
                                          .is_shared = g->plan.attrs[0].type == PERF_TYPE_SOFTWARE };
        }
}

/* All that each CPU has, in one walk over all fds, however many CPUs there are. */
static int collect_streams(const Streams *s, StreamsOfCpu *cpus) {
        uint32_t event = 0;
        int r = 0;

        for (const Registration *g = s->events->registrations; g; g = g->next) {
                count_streams(&g->opened, cpus);
                count_streams(&g->pending, cpus);
        }
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++)
                if (!(cpus[slot].streams = snapshot_streams_new(cpus[slot].n)))
                        return error_origin(-ENOMEM);
        for (const Registration *g = s->events->registrations; g && r >= 0; g = g->next, event++) {
                put_streams(g, &g->opened, event, cpus);
                put_streams(g, &g->pending, event, cpus);
                r = operations_serve_sometimes(s->operations);
        }
        return r < 0 ? r : 0;
}

static int snapshot_add_streams(const Streams *s, Snapshot *snapshot) {
        _cleanup_free_ StreamsOfCpu *cpus = calloc(s->readers->n_cpus + 1, sizeof(*cpus));
        int r = cpus ? collect_streams(s, cpus) : error_origin(-ENOMEM);

        for (uint32_t slot = 0; slot < s->readers->n_cpus && r >= 0; slot++) {
                r = snapshot_set_streams(snapshot, slot, cpus[slot].streams, cpus[slot].n);
                if (r == 0) {
                        cpus[slot].streams = NULL;
                        r = operations_serve_sometimes(s->operations);
                }
        }
        for (size_t slot = 0; cpus && slot < s->readers->n_cpus; slot++)
                free(cpus[slot].streams);
        return r < 0 ? r : 0;
}

/* Side records come from every CPU. */
static nsec_t records_latency(const Streams *s) {
        nsec_t latency = 0;

        for (const Subscription *u = s->subscriptions->first; u; u = u->next)
                if (u->records)
                        latency = lesser_latency(latency, u->latency);
        return latency;
}

static void snapshot_add_latency(Snapshot *snapshot, uint32_t slot, nsec_t records) {
        SnapshotCpu *c = &snapshot->cpus[slot];

        c->latency = snapshot->active ? records : 0;
        for (size_t i = 0; i < c->n_streams; i++)
                c->latency = lesser_latency(c->latency, snapshot->events[c->streams[i].event].latency);
        snapshot->latency = lesser_latency(snapshot->latency, c->latency);
}

static void snapshot_add_wants(const Streams *s, Snapshot *snapshot) {
        for (const Subscription *u = s->subscriptions->first; u; u = u->next) {
                for (unsigned kind = 0; kind < _RECORD_KIND_MAX; kind++)
                        if (u->records & (1U << kind))
                                subscription_set_add(&snapshot->record_wants[kind], u->number);
                subscription_set_add(&snapshot->all_want, u->number);
        }
}

/* By attr wakeup-events, whatever a user has called it. */
static bool registration_wakes(const Registration *g) {
        for (size_t i = 0; i < g->plan.n_attrs; i++)
                if (!g->plan.attrs[i].watermark && g->plan.attrs[i].wakeup_events > 0)
                        return true;
        return false;
}

/* Of the configuration and of root's clients there is none. */
static int snapshot_add_budget(const Streams *s, SnapshotEvent *e, const Registration *g) {
        uint32_t uid;

        if (!registration_has_uid(g, &uid) || uid == 0)
                return 0;
        e->budget = read_budget_ref(readers_budget_of(s->readers, uid));
        return e->budget ? 0 : error_origin(-ENOMEM);
}

static int snapshot_add_routes(SnapshotEvent *e, Registration *g) {
        RouteTable *table;
        int r = registration_route_table(g, &table);

        if (r == 0)
                snapshot_set_routes(e, table);
        return r;
}

int streams_build_snapshot(void *userdata, Snapshot **ret) {
        Streams *s = userdata;
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        nsec_t latency = records_latency(s);
        size_t i = 0;
        int r;

        snapshot = snapshot_new(s->readers->generation + 1, (uint32_t)s->readers->n_cpus, s->events->n_registrations);
        if (!snapshot)
                return error_origin(-ENOMEM);
        for (Registration *g = s->events->registrations; g; g = g->next) {
                SnapshotEvent *e = &snapshot->events[i++];

                e->event = event_ref(g->event);
                e->layout = g->layout;
                e->exclude_self = g->exclude_self;
                e->interval = g->enabled ? g->event->spec.interval : 0;
                snapshot->active |= g->enabled && !g->event->external;
                snapshot->wakes |= g->enabled && registration_wakes(g);
                r = e->interval ? snapshot_add_closed(e) : 0;
                if (r == 0 && e->interval)
                        r = snapshot_add_budget(s, e, g);
                if (r == 0)
                        r = snapshot_add_routes(e, g);
                if (!g->enabled || g->event->external)
                        e->latency = 0;
                if (r == 0)
                        r = operations_serve_sometimes(s->operations);
                if (r < 0)
                        return r;
        }
        r = snapshot_add_streams(s, snapshot);
        if (r < 0)
                return r;
        for (uint32_t slot = 0; slot < s->readers->n_cpus; slot++)
                snapshot_add_latency(snapshot, slot, latency);
        snapshot_add_wants(s, snapshot);
        snapshot->notes = s->readers->wants_tasks;
        *ret = TAKE_PTR(snapshot);
        return 0;
}

/* Streams change over only where there are others beside those that are active. */
bool streams_changes_over(const void *userdata) {
        const Streams *s = userdata;

        for (const Registration *g = s->events->registrations; g; g = g->next)
                if (g->pending.n > 0)
                        return true;
        return false;
}

void streams_note_published(void *userdata) {
        Streams *s = userdata;

        s->subscriptions->owes_snapshot = false;
}
