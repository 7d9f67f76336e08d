/*
 * Changes from one ring to another of a different size, while events write. As long as some events write to the old ring and some
 * to the new one, both are drained; which record is in which ring does not matter, because batches are sorted.
 *
 * The carriers change over in one step on their own CPU: only what interrupts or preempts this thread between the two system
 * calls can write a side record to both.
 */
#include "daemon/reader/cycle.h"

#include "daemon/kernel/event/open.h"

/* ns: sleeps rather than sched_yield(2), because the dispatcher may have a lower scheduling class on this CPU */
#define LOOK_NS 50000

int reader_begin_ring(Reader *r, ReaderRing *ring, bool on) {
        int error = on ? open_switch(ring->carrier_fd, true) : 0;

        if (error == 0 && on)
                error = open_switch(r->carrier_fd, false);
        if (error != 0)
                return error_trace_of(error, "a ring's carrier");
        (void)ring_view_close(&r->view);
        r->retiring = r->ring;
        r->retiring_id = r->carrier_id;
        free(r->backlog.least);
        r->ring = ring->ring;
        r->backlog = ring->backlog;
        r->carrier_fd = ring->carrier_fd;
        r->carrier_id = ring->carrier_id;
        r->carrier_read_format = ring->carrier_read_format;
        ring->ring = RING_NULL;
        ring->backlog = (Backlog){ .least = NULL };
        atomic_store_explicit(&r->is_watched, false, memory_order_relaxed); /* refers to the old carrier */
        r->wait = r->tick; /* the old carrier is no longer polled */
        r->paced_at = 0;
        return 0;
}

int reader_retire(Reader *r) {
        if (!r->retiring.page)
                return 0; /* another one is told, who was stopped; or this one was, and has done it since */
        while (ring_head(&r->retiring) != r->retiring.tail) {
                int error = reader_drain(r);

                if (error != 0)
                        return error;
        }
        while (!ring_view_close(&r->view)) /* the dispatcher's use of the view lasts only for two loads, unless it is preempted */
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
        ring_close(&r->retiring);
        r->retiring_id = 0;
        if (r->guard == 0)
                ring_view_open(&r->view, &r->ring);
        return 0;
}
