/*
 * A page that is looked at is named before it is touched, and a page that is to go is taken back before its name is looked
 * for, with a fence between in both, so that one of the two sees the other (a hazard pointer).
 *
 * The order of the look is that of the reader backwards. A reader is awake, reads, publishes the tail, pushes, and sleeps.
 * Who sees the tail of the last record therefore sees it awake, or asleep again; and who sees it asleep again sees what it
 * pushed.
 */
#include "daemon/ring/ring-view.h"

void ring_view_open(RingView *s, const Ring *r) {
        atomic_store_explicit(&s->page, r->page, memory_order_release);
}

bool ring_view_close(RingView *s) {
        atomic_store_explicit(&s->page, NULL, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        return !atomic_load_explicit(&s->looks_at, memory_order_acquire);
}

void ring_view_set_quiet(RingView *s, bool is_quiet) {
        atomic_store_explicit(&s->is_quiet, is_quiet, memory_order_release);
}

/* False: it is closed. */
static bool ring_view_compare(RingView *s, bool *ret_is_empty) {
        const struct perf_event_mmap_page *page = atomic_load_explicit(&s->page, memory_order_acquire);
        bool is_open = false;

        if (!page)
                return false;
        atomic_store_explicit(&s->looks_at, page, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&s->page, memory_order_acquire) == page) {
                is_open = true;
                *ret_is_empty = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) ==
                                __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
        }
        atomic_store_explicit(&s->looks_at, NULL, memory_order_release);
        return is_open;
}

bool ring_view_is_quiet(RingView *s) {
        bool is_empty;

        return ring_view_compare(s, &is_empty) && is_empty && atomic_load_explicit(&s->is_quiet, memory_order_acquire);
}

bool ring_view_has_records(RingView *s) {
        bool is_empty;

        return ring_view_compare(s, &is_empty) && !is_empty;
}
