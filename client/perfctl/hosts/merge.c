#include "client/perfctl/hosts/merge.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"

void host_queue_init(HostQueue *q) {
        *q = (HostQueue){ .end = &q->first };
}

void host_queue_deinit(HostQueue *q) {
        for (HostEntry *e = q->first, *next; e; e = next) {
                next = e->next;
                free(e);
        }
        host_queue_init(q);
}

void host_queue_add(HostQueue *q, uint64_t wall, uint64_t error, uint64_t now, const char *bytes, size_t n) {
        HostEntry *e = must_have(malloc(sizeof(*e) + n));

        *e = (HostEntry){ .wall = wall, .error = error, .came = now, .n = n };
        if (n > 0)
                memcpy(e->bytes, bytes, n);
        *q->end = e;
        q->end = &e->next;
        q->bytes += n;
}

HostEntry *host_queue_take(HostQueue *q) {
        HostEntry *e = q->first;

        if (!e)
                return NULL;
        q->first = e->next;
        if (!q->first)
                q->end = &q->first;
        q->bytes -= e->n;
        e->next = NULL;
        return e;
}

/* Both ends of what it may have been; a time without a known error has none that is certain. */
static uint64_t earliest(const HostEntry *e) {
        return e->error < e->wall ? e->wall - e->error : 0;
}

static uint64_t latest(const HostEntry *e) {
        return e->error < UINT64_MAX - e->wall ? e->wall + e->error : UINT64_MAX;
}

static bool is_certain(const HostQueue *queues, size_t n, size_t at, const HostEntry *e) {
        for (size_t i = 0; i < n; i++)
                if (i != at && queues[i].has_given && queues[i].latest >= earliest(e))
                        return false;
        return true;
}

/* Whether nobody is waited for. */
static bool has_all(const HostQueue *queues, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!queues[i].first && !queues[i].has_ended)
                        return false;
        return true;
}

HostEntry *host_merge_next(HostQueue *queues, size_t n, uint64_t hold, uint64_t now, size_t *ret_queue, bool *ret_certain,
                           uint64_t *ret_wait) {
        size_t best = n;
        HostEntry *e;

        *ret_wait = UINT64_MAX;
        *ret_certain = true;
        for (size_t i = 0; i < n; i++) {
                if (!queues[i].first)
                        continue;
                if (best == n || queues[i].first->wall < queues[best].first->wall)
                        best = i;
        }
        if (best == n)
                return NULL;
        e = queues[best].first;
        if (e->wall > 0 && now - e->came < hold && !has_all(queues, n)) {
                *ret_wait = hold - (now - e->came);
                return NULL;
        }
        *ret_queue = best;
        if (e->wall > 0) {
                *ret_certain = is_certain(queues, n, best, e);
                queues[best].latest = queues[best].has_given && queues[best].latest > latest(e) ? queues[best].latest : latest(e);
                queues[best].has_given = true;
        }
        return host_queue_take(&queues[best]);
}

bool host_queue_is_full(const HostQueue *queues, size_t n, size_t index) {
        const size_t share = HOST_QUEUES_MAX / n;

        return queues[index].bytes >= (share > HOST_QUEUE_LEAST ? share : HOST_QUEUE_LEAST);
}
