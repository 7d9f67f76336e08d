/*
 * All that readers need to know, immutable, published by the supervisor (supervisor/readers/publish.c), picked up by each
 * reader between two drains and acknowledged. Nothing that a snapshot names is freed or closed before every reader
 * has acknowledged a later one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/batch.h"
#include "daemon/model/event.h"
#include "daemon/model/read-budget.h"
#include "daemon/model/sample-path.h"

typedef struct MatchProgram MatchProgram; /* route/match.h */
typedef struct EncodePlan EncodePlan;     /* encode/item.h */
typedef struct SampleLayout SampleLayout; /* decode/record.h */

/* Who wants an event: a subscription, under a condition, in an encoding. */
typedef struct Route {
        const MatchProgram *program; /* NULL: always */
        uint32_t encoding;           /* index into RouteTable.encodings */
        uint32_t number;             /* of the subscription */

        /* found out by route_table_finish() */
        uint64_t bit;           /* BATCH_BIT() of its number */
        const EncodePlan *plan; /* what is there */
} Route;

/* Who wants an event: what snapshots share as long as it stays the same. Immutable once it is finished. */
typedef struct RouteTable {
        _Atomic(unsigned) n_refs; /* taken relaxed by who has one; given with acq_rel: the last one sees all that was done */
        Route *routes; /* those of one encoding behind one another, in it by number */
        size_t n_routes;
        EncodePlan **encodings;
        size_t n_encodings;
        size_t *ends; /* of each encoding: where the routes behind its own begin */

        /* found out by route_table_prepare() */
        struct MatchRange *first; /* of each route: what it asks first; NULL: there is no need */
        ItemEncoding encoding;    /* of all encodings the least */

        bool needs_comm; /* some condition asks for the thread's name */
        uint64_t conditional_groups; /* a bit for each: of subscriptions whose conditions the dispatcher has to decide */
        bool is_grouped; /* somebody is in another group than 0 */
        bool is_of_one_group; /* all are in one */
        nsec_t latency;  /* how long its samples may lie in a ring, by who asked for least; 0: nobody did */
        void (*deinit)(struct RouteTable *t); /* lets the owner drop references to what model/ does not know */
} RouteTable;

typedef struct SnapshotEvent {
        Event *event;
        const SampleLayout *layout; /* of what is active */
        RouteTable *table;   /* or NULL: nobody wants it */
        const Route *routes; /* of the table */
        size_t n_routes;
        bool has_fixed_plan; /* nothing in its samples is at a place that they say themselves, or it has no plan */
        bool exclude_self; /* drop what our own threads did */
        bool is_special;   /* names are to be found for a condition, or the dispatcher has to decide one */
        nsec_t interval;   /* its counts are read and sent so often; 0: never, or not enabled */
        nsec_t latency;    /* how long its samples may lie in a ring, by who asked for least; 0: nobody did, or not enabled */
        ReadCount *closed; /* with an interval: what closed fds have counted, n_members for each slot */
        ReadBudget *budget; /* with an interval: of the uid whose reads they are, a reference; NULL: they are not limited */
} SnapshotEvent;

/*
 * One perf event fd on one CPU. The first of its two lines of 64 bytes has all that a common sample needs to know of its
 * stream and its event, because with many events each line of each sample comes from far.
 */
typedef struct SnapshotStream {
        _Alignas(64) uint64_t id; /* PERF_EVENT_IOC_ID */

        /* found out by snapshot_set_streams() */
        EventCounters *counters; /* of this event on this CPU */
        const Route *routes;     /* those of its event: `only`, if that is all */
        uint32_t min_raw_size;   /* that a sample of its plan has */
        uint16_t n_routes;
        uint8_t path;            /* SamplePath */
        bool exclude_self : 1; /* as its event */
        bool is_special : 1;   /* as its event, or somebody is in another group than 0 */
        Route only;

        const SnapshotEvent *of;

        const SampleLayout *layout; /* of its generation; NULL before snapshot_set_streams(): the event's */
        uint64_t read_format; /* of its attr */
        uint64_t period;  /* fixed, of each sample; 0: the sample says it, or there are none */
        int fd;           /* borrowed: to read(2) its count */
        uint32_t member;  /* of the event's group; 0: the leader, or alone */
        uint32_t event;   /* index into Snapshot.events */
        bool is_standby;       /* another generation of the event is active: counted as a duplicate */
        bool is_successor;     /* what it replaces still counts: until the hand-over its own count is not sent */
        bool is_sampling; /* not each occurrence is written: the ledger can only count samples */
        RecordLayout record_layout; /* of its generation */
        bool is_shared;   /* a software event: the kernel prepares its samples together with those of other tools' events */
} SnapshotStream;

_Static_assert(offsetof(SnapshotStream, of) == 64 && sizeof(SnapshotStream) == 128, "two lines");

typedef struct SnapshotCpu {
        nsec_t latency; /* the least of what comes into its ring; 0: nobody asked for one */
        SnapshotStream *streams; /* in the order of events */
        size_t n_streams;
        uint32_t *slots; /* open addressing: 1 + index into streams, 0 empty */
        uint32_t mask;   /* n slots - 1, a power of two */
} SnapshotCpu;

typedef struct Snapshot {
        _Atomic(unsigned) n_refs; /* taken relaxed by who has one; given with acq_rel: the last one sees all that was done */
        uint64_t generation;
        SnapshotEvent *events;
        size_t n_events;
        SnapshotCpu *cpus; /* by slot */
        uint32_t n_cpus;
        bool active; /* some event is enabled: rings may fill */
        bool wakes;  /* one says itself when its reader is woken: attr wakeup-events */
        nsec_t latency; /* the least of all CPUs; 0 */
        bool notes;  /* somebody is subscribed: the dispatcher is to hear of tasks */
        SubscriptionSet record_wants[_RECORD_KIND_MAX]; /* by RecordKind: the subscriptions that want it */
        SubscriptionSet all_want; /* all subscriptions: they see loss and throttle records */
} Snapshot;

/* With room for so many routes and encodings, of which there are none yet, and one reference. NULL: no memory. */
RouteTable *route_table_new(size_t n_routes, size_t n_encodings);
RouteTable *route_table_ref(RouteTable *t);
RouteTable *route_table_unref(RouteTable *t);
DEFINE_CLEANUP(RouteTable *, route_table_unref)
/* Orders the routes and finds out what readers are not to find out again. */
void route_table_finish(RouteTable *t);

/* One with everything null and one reference. NULL: no memory. */
Snapshot *snapshot_new(uint64_t generation, uint32_t n_cpus, size_t n_events);
Snapshot *snapshot_ref(Snapshot *s);
Snapshot *snapshot_unref(Snapshot *s);
DEFINE_CLEANUP(Snapshot *, snapshot_unref)

/* Takes the reference to a finished table, or NULL. */
void snapshot_set_routes(SnapshotEvent *e, RouteTable *table);

/* Whoever wants the event is in the set too. */
static inline void snapshot_event_wants(const SnapshotEvent *e, SubscriptionSet *set) {
        for (size_t i = 0; i < e->n_routes; i++)
                subscription_set_add(set, e->routes[i].number);
}

/* So many, all null, for free(). NULL: no memory. */
SnapshotStream *snapshot_streams_new(size_t n);
/* Takes `streams`, of events that are finished, and builds the hash. -ENOMEM: nothing taken. */
int snapshot_set_streams(Snapshot *s, uint32_t slot, SnapshotStream *streams, size_t n);

static inline uint32_t snapshot_hash(uint64_t id) {
        return (uint32_t)((id * 0x9E3779B97F4A7C15ULL) >> 32); /* ids are consecutive: spread them */
}

/* NULL if no stream of this CPU has the id. */
static inline const SnapshotStream *snapshot_find(const SnapshotCpu *c, uint64_t id) {
        if (!c->slots)
                return NULL;
        for (uint32_t i = snapshot_hash(id);; i++) {
                uint32_t slot = c->slots[i & c->mask];

                if (slot == 0)
                        return NULL;
                if (c->streams[slot - 1].id == id)
                        return &c->streams[slot - 1];
        }
}
