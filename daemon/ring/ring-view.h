/*
 * A ring as somebody else than its reader may see it, who wants to know only whether it is quiet: nothing lies in it, and all
 * that was read from it has been pushed. One looks, the reader opens and closes; neither waits for the other.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/ring/ring.h"

typedef struct RingView {
        _Atomic(const struct perf_event_mmap_page *) page;    /* the reader's; NULL: closed */
        _Atomic(const struct perf_event_mmap_page *) looks_at; /* the other one's, while it looks */
        atomic_bool is_quiet; /* the reader's: it sleeps */
        atomic_bool is_dormant; /* the reader's: it sleeps without a timeout, until the other one finds records in the ring */
} RingView;

#define RING_VIEW_NULL ((RingView){ .is_quiet = false })

/* Reader: of this ring, until it is closed. */
void ring_view_open(RingView *s, const Ring *r);
/* Reader: nobody begins to look. False: somebody still does, for a moment, and the ring must not be unmapped. */
bool ring_view_close(RingView *s);
/* Reader: it is about to sleep, with nothing in its hands; or it is awake. */
void ring_view_set_quiet(RingView *s, bool is_quiet);
/*
 * The one who looks: at some time during the call nothing was in the ring, and what had been was pushed before: it is in the
 * reader's queue when that is looked at next, or was.
 */
bool ring_view_is_quiet(RingView *s);
/* The one who looks: there are records in the ring. False also if it is closed. */
bool ring_view_has_records(RingView *s);
