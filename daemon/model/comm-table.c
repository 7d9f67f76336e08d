/* Buckets of a few ways, each under a sequence lock: in a full one the name that was told longest ago gives way. */
#include "daemon/model/comm-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

int comm_table_init(CommTable *t, uint32_t n_threads) {
        uint32_t n = 16;

        while (n < n_threads / COMM_BUCKET_WAYS)
                n *= 2;
        *t = COMM_TABLE_NULL;
        t->buckets = aligned_alloc(64, n * sizeof(CommBucket));
        if (!t->buckets)
                return error_origin(-ENOMEM);
        memset(t->buckets, 0, n * sizeof(CommBucket));
        t->mask = n - 1;
        return 0;
}

void comm_table_deinit(CommTable *t) {
        free(t->buckets);
        *t = COMM_TABLE_NULL;
}

static CommBucket *comm_table_bucket(const CommTable *t, uint32_t tid) {
        return &t->buckets[((tid * 0x9E3779B1U) >> 8) & t->mask];
}

/* The way that has the tid, else the one told longest ago. */
static int bucket_way(const CommBucket *b, uint32_t tid) {
        int oldest = 0;

        for (int i = 0; i < COMM_BUCKET_WAYS; i++) {
                if (atomic_load_explicit(&b->tids[i], memory_order_relaxed) == tid)
                        return i;
                if (atomic_load_explicit(&b->times[i], memory_order_relaxed) <
                    atomic_load_explicit(&b->times[oldest], memory_order_relaxed))
                        oldest = i;
        }
        return oldest;
}

void comm_table_set(CommTable *t, uint32_t tid, nsec_t time, const char *comm) {
        CommBucket *b = comm_table_bucket(t, tid);
        uint64_t words[COMM_SIZE / 8] = { 0 };
        uint32_t sequence;
        int way;

        strncpy((char *)words, comm, COMM_SIZE - 1);
        if (!sequence_take(&b->sequence, &sequence))
                return;
        way = bucket_way(b, tid);
        if (atomic_load_explicit(&b->tids[way], memory_order_relaxed) != tid ||
            atomic_load_explicit(&b->times[way], memory_order_relaxed) <= time) {
                atomic_store_explicit(&b->tids[way], tid, memory_order_relaxed);
                atomic_store_explicit(&b->times[way], time, memory_order_relaxed);
                for (int i = 0; i < COMM_SIZE / 8; i++)
                        atomic_store_explicit(&b->comms[way][i], words[i], memory_order_relaxed);
        }
        sequence_give(&b->sequence, sequence);
        atomic_fetch_add_explicit(&t->version, 1, memory_order_release);
}

bool comm_table_get(const CommTable *t, uint32_t tid, char ret_comm[static COMM_SIZE]) {
        CommBucket *b = comm_table_bucket(t, tid);

        for (int spin = 0; spin < SEQUENCE_TRIES; spin++) {
                uint64_t words[COMM_SIZE / 8];
                bool found = false;
                uint32_t s;

                if (!sequence_look(&b->sequence, &s))
                        continue;
                for (int i = 0; i < COMM_BUCKET_WAYS && !found; i++)
                        if (atomic_load_explicit(&b->tids[i], memory_order_relaxed) == tid) {
                                found = atomic_load_explicit(&b->times[i], memory_order_relaxed) > 0;
                                for (int k = 0; k < COMM_SIZE / 8; k++)
                                        words[k] = atomic_load_explicit(&b->comms[i][k], memory_order_relaxed);
                        }
                if (!sequence_stood(&b->sequence, s))
                        continue;
                if (found)
                        memcpy(ret_comm, words, COMM_SIZE);
                return found;
        }
        return false;
}
