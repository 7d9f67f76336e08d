/*
 * A client that has mapped a pool can read it for as long as it wants, also when its stream has ended. So a pool is of those to whom
 * access.rules grant the same at any time: of one uid, with the same groups. Where these may no longer read an event, no stream
 * is left that writes such samples into it.
 */
#include "daemon/supervisor/streams/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

StreamPool *stream_pool_unref(StreamPool *p) {
        if (!p || --p->n_sharers > 0)
                return NULL;
        buffer_pool_unref(p->buffers);
        free(p);
        return NULL;
}

/* Rules decide alike for both: they ask for nothing but this. */
static bool has_same_rights(const SubscriberEntry *a, const SubscriberEntry *b) {
        const Credentials *one = &a->peer, *other = &b->peer;

        if (a->is_ruled != b->is_ruled || a->memory != b->memory) /* which is one for each uid */
                return false;
        return one->gid == other->gid && one->n_groups == other->n_groups &&
               (one->n_groups == 0 || memcmp(one->groups, other->groups, one->n_groups * sizeof(*one->groups)) == 0);
}

static StreamPool *find_pool(const Streams *s, const Subscription *u, const SubscriberEntry *a) {
        for (const SubscriberEntry *other = s->subscriptions->subscribers; other; other = other->next)
                if (other->pool && other->number == u->number && has_same_rights(other, a))
                        return other->pool;
        return NULL;
}

static int new_pool(Streams *s, StreamPool **ret) {
        StreamPool *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return error_origin(-ENOMEM);
        r = buffer_pool_new(&p->buffers);
        if (r < 0) {
                free(p);
                return r;
        }
        *ret = p;
        return 0;
}

/* When a second one asks for it; charged to the uid of both. */
static int fill_pool(Streams *s, StreamPool *p, uid_t uid) {
        UidMemory *payer;
        int r;

        if (p->payer)
                return 0;
        r = subscriptions_reserve_memory(s->subscriptions, uid, POOL_BYTES, &payer, NULL);
        if (r != 0)
                return r < 0 ? r : -ENOSPC;
        r = buffer_pool_fill(p->buffers);
        if (r == 0)
                p->payer = payer;
        else
                (void)subscriptions_release_memory(s->subscriptions, payer, POOL_BYTES);
        return r;
}

static int join_pool(Streams *s, StreamPool *p, SubscriberEntry *a, SharedRing *ring) {
        if (!shared_ring_share(ring, p->buffers))
                return error_origin(-errno);
        s->readers->n_pools += p->n_sharers++ == 0;
        a->pool = p;
        return 0;
}

void streams_share_pool(Streams *s, const Subscription *u, SubscriberEntry *a, SharedRing *ring) {
        const Control *c = s->events->control;
        StreamPool *p = find_pool(s, u, a);
        int r;

        if (!p && c->n_given + c->n_connections >= c->limits.sockets)
                return;
        r = p ? fill_pool(s, p, a->memory->uid) : new_pool(s, &p);
        if (r == 0)
                r = join_pool(s, p, a, ring);
        if (r < 0) {
                if (p && p->n_sharers == 0) {
                        buffer_pool_unref(p->buffers);
                        free(p);
                }
                log_print(LOG_NOTICE, MESSAGE_SUBSCRIBER_COPIES,
                          "a subscriber cannot share packets with others, and gets copies: %s", error_text(r));
        }
}

int streams_leave_pool(Streams *s, SubscriberEntry *a) {
        StreamPool *p = TAKE_PTR(a->pool);
        const bool is_last = p && p->n_sharers == 1;
        UidMemory *payer = is_last ? p->payer : NULL;

        s->readers->n_pools -= is_last;
        stream_pool_unref(p);
        return payer ? subscriptions_release_memory(s->subscriptions, payer, POOL_BYTES) : 0;
}
