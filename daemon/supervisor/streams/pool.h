/* For supervisor/streams/subscribe.c: who shares buffers with whom (stream/buffer-pool.h). Main thread only. */
#pragma once

#include "daemon/supervisor/streams/streams.h"

/*
 * The pool of equal subscribers with equal credentials, for a new subscriber with this ring, which is not handed over yet. Without
 * one it gets copies, which only cost more.
 */
void streams_share_pool(Streams *s, const Subscription *u, SubscriberEntry *a, SharedRing *ring);
/* It is gone, or was never there. -ENOMEM */
int streams_leave_pool(Streams *s, SubscriberEntry *a);
/* The same when perfd ends, and nothing is charged any more. */
StreamPool *stream_pool_unref(StreamPool *p);
