/*
 * From one ring to another of a different size, while events write. For as long as some events write into the old ring and
 * some into the new one, both are drained; which record is in which ring does not matter, because a batch is sorted.
 *
 * The carriers change over in one step on their own CPU: only what interrupts or preempts this thread between the two
 * system calls can write a side record into both.
 */
#include "daemon/reader/cycle.h"

#include "daemon/kernel/event/open.h"

#define LOOK_NS 50000 /* not by sched_yield(2): the dispatcher may be of a lower class, on this CPU */

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
        atomic_store_explicit(&r->is_watched, false, memory_order_relaxed); /* that was the old carrier */
        r->wait = r->tick; /* the old carrier is not polled any more */
        return 0;
}

int reader_retire(Reader *r) {
        while (ring_head(&r->retiring) != r->retiring.tail) {
                int error = reader_drain(r);

                if (error != 0)
                        return error;
        }
        while (!ring_view_close(&r->view)) /* for as long as it takes to read two words, if it is not preempted */
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
        ring_close(&r->retiring);
        r->retiring_id = 0;
        if (r->guard == 0)
                ring_view_open(&r->view, &r->ring);
        return 0;
}
