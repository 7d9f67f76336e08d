/*
 * For the supervisor: the memory of subscribers. What each holds as long as it is there (its floor, its ring, a pool) is
 * reserved before it is made, for its uid and for all; what is left of both budgets is for queues, which the dispatcher charges
 * as they grow (stream/queue-account.h). Main thread only.
 */
#pragma once

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/base/credentials.h"
#include "daemon/base/error.h"
#include "daemon/kernel/cgroup/memory-limits.h"
#include "daemon/stream/buffer-pool.h"
#include "daemon/stream/queue-account.h"

typedef struct Subscriptions Subscriptions;
typedef struct Filter Filter;

/* What the subscribers of one uid hold; it is there as long as they are. */
#define SHARE_OF_ROOT 16 /* one part of so many, of all subscribers' memory and places, is for those of root only */

typedef struct UidMemory {
        struct UidMemory *next;
        uid_t uid;
        size_t n_holders;
        size_t reserved;
        size_t conditions; /* what those of its subscriptions cost, as filter_cost() says */
        size_t decisions;  /* and filter_decision_cost() */
        QueueAccount queues;
} UidMemory;

/* Buffers that some subscribers share, who are the same to access.rules. */
typedef struct StreamPool {
        BufferPool *buffers;
        UidMemory *payer; /* for POOL_BYTES of it; NULL: it has no memory */
        size_t n_sharers;
} StreamPool;

/* Of a condition, charged to who pays for its subscription. */
typedef struct ConditionCost {
        size_t readers, dispatcher;
} ConditionCost;

/* What main has of a subscriber, charged to its uid until it is gone. */
typedef struct SubscriberEntry {
        struct SubscriberEntry *next;
        uint64_t id;
        UidMemory *memory;
        size_t reserved; /* of it, for as long as the subscriber is there */
        size_t queue_bytes, ring_bytes;
        StreamPool *pool; /* NULL: it has asked for none, or none could be made */
        uint32_t number; /* of its subscription */
        uint64_t wakeups; /* a second at most, for the latency that it requests; 0: it requests none */
        Credentials peer;    /* whose rules are asked again behind each reload */
        bool is_ruled;       /* it came by the stream socket, and is not root's */
        bool is_ending;      /* its rules have gone */
        struct LedgerBase *base; /* of the cut at which it began; NULL: there was no room */
} SubscriberEntry;

typedef struct SubscriberMemory {
        UidMemory *uids;
        size_t reserved;     /* of all of them */
        size_t conditions;   /* of all of them but root */
        size_t decisions;
        MemoryLimits limits; /* of the host and of cgroups */
        int events_fd;       /* says that one was reached; -1: nothing does */
} SubscriberMemory;

#define SUBSCRIBER_MEMORY_NULL ((SubscriberMemory){ .limits = MEMORY_LIMITS_NULL, .events_fd = -1 })

/* The most that the queue of one of its subscribers can ever hold. */
size_t subscriptions_queue_max(const Subscriptions *s);
/* Finds the limits and listens. Behind dispatcher_init(). Negative */
int subscriptions_start_memory(Subscriptions *s);
/* Accepts what was never started. The dispatcher has ended. */
void subscriptions_free_memory(Subscriptions *s);
/*
 * A place for one more subscriber of a uid: nobody but root has more than half of them, and all others together leave some to
 * root. REFUSED_EXHAUSTED
 */
int subscriptions_check_places(const Subscriptions *s, uid_t uid, Explanation *e);
/*
 * The dispatcher wakes up, and sends, for each subscriber once in the latency that this requests; 0: it requests none, which costs
 * nothing more. Root is not limited. Charged until the subscriber is gone. REFUSED_EXHAUSTED
 */
int subscriptions_charge_wakeups(const Subscriptions *s, SubscriberEntry *a, nsec_t latency, Explanation *e);
/*
 * What a condition costs, for who pays for its subscription: readers ask all of them of each sample, and a reader that asks too much
 * keeps others waiting. What the dispatcher decides has a limit of its own, which is lower: there is one for all CPUs. Root is not
 * limited. *ret is what to discharge. REFUSED_EXHAUSTED
 */
int subscriptions_charge_condition(Subscriptions *s, UidMemory *m, const Filter *f, ConditionCost *ret, Explanation *e);
void subscriptions_discharge_condition(Subscriptions *s, UidMemory *m, ConditionCost cost);
/* So many bytes for a uid; refused: it has no more, all have no more, or the host has not. -ENOMEM */
int subscriptions_reserve_memory(Subscriptions *s, uid_t uid, size_t bytes, UidMemory **ret, Explanation *e);
/* They are free again, and perhaps the uid is gone. */
int subscriptions_release_memory(Subscriptions *s, UidMemory *m, size_t bytes);
/* Budgets or limits may have changed: how much queues may hold from now on; who holds more drops it. -ENOMEM */
int subscriptions_update_memory(Subscriptions *s);
