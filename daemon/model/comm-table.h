/*
 * For readers: which comm a thread has, shared by all of them, because a thread execs on one CPU and fires on
 * another. Fixed memory: the least recently told of a bucket is forgotten first and is then asked from /proc again.
 *
 * Any reader may write: a bucket is taken by a compare-and-swap of its sequence and never waited for; a write that
 * finds it taken spins for a bounded time and then is dropped, which costs a name and never a sample.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/sequence.h"
#include "daemon/model/record.h"

#define COMM_BUCKET_WAYS 4

typedef struct CommBucket {
        _Alignas(64) Sequence sequence; /* orders what is below it, which is relaxed */
        _Atomic(uint32_t) tids[COMM_BUCKET_WAYS];
        _Atomic(uint64_t) times[COMM_BUCKET_WAYS];
        _Atomic(uint64_t) comms[COMM_BUCKET_WAYS][COMM_SIZE / 8];
} CommBucket;

typedef struct CommTable {
        CommBucket *buckets;
        uint32_t mask;
        _Atomic(uint64_t) version; /* grows with every name that is set: what a reader keeps for itself is stale then */
} CommTable;

#define COMM_TABLE_NULL ((CommTable){ .buckets = NULL })

/* Room for about n_threads; -ENOMEM. */
int comm_table_init(CommTable *t, uint32_t n_threads);
void comm_table_deinit(CommTable *t);

/* At `time`, `tid` had this name; an older one than what is known is ignored. comm is cut to COMM_SIZE - 1 bytes. */
void comm_table_set(CommTable *t, uint32_t tid, nsec_t time, const char *comm);
static inline uint64_t comm_table_version(const CommTable *t) {
        /* pairs with comm_table_set(): who looks up a name behind it sees each one that it counts */
        return atomic_load_explicit(&((CommTable *)t)->version, memory_order_acquire);
}
/* False if nothing is known; ret_comm is terminated. */
bool comm_table_get(const CommTable *t, uint32_t tid, char ret_comm[static COMM_SIZE]);
