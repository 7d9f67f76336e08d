/* A binary heap in an array: the children of i are 2 i + 1 and 2 i + 2. */
#include "daemon/route/merge.h"

#include <assert.h>
#include <errno.h>

static nsec_t next_time(const Batch *b) {
        return b->entries[b->next].time;
}

void merge_deinit(Merge *m) {
        free(m->heap);
        *m = MERGE_NULL;
}

int merge_add(Merge *m, Batch *b) {
        size_t i;

        assert(b->sorted && b->next < b->n_entries);
        if (m->n == m->capacity) {
                size_t capacity = m->capacity ? 2 * m->capacity : 16;
                Batch **heap = reallocarray(m->heap, capacity, sizeof(*heap));

                if (!heap)
                        return -ENOMEM;
                m->heap = heap;
                m->capacity = capacity;
        }
        for (i = m->n++; i > 0 && next_time(m->heap[(i - 1) / 2]) > next_time(b); i = (i - 1) / 2)
                m->heap[i] = m->heap[(i - 1) / 2];
        m->heap[i] = b;
        return 0;
}

/* Finds the place of the batch at the top, whose time has grown. */
static void merge_sift(Merge *m) {
        Batch *b = m->heap[0];
        size_t i = 0;

        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= m->n)
                        break;
                if (child + 1 < m->n && next_time(m->heap[child + 1]) < next_time(m->heap[child]))
                        child++;
                if (next_time(m->heap[child]) >= next_time(b))
                        break;
                m->heap[i] = m->heap[child];
                i = child;
        }
        m->heap[i] = b;
}

/* The oldest time in any batch but the top one. */
static nsec_t second_time(const Merge *m) {
        nsec_t time = UINT64_MAX;

        for (size_t i = 1; i < m->n && i <= 2; i++)
                if (next_time(m->heap[i]) < time)
                        time = next_time(m->heap[i]);
        return time;
}

size_t merge_next(Merge *m, nsec_t until, Batch **ret_batch, const BatchEntry **ret_first, bool *ret_emptied) {
        nsec_t second;
        size_t first, end;
        Batch *b;

        if (m->n == 0 || next_time(m->heap[0]) > until)
                return 0;
        b = m->heap[0];
        second = second_time(m);
        if (second < until)
                until = second; /* equal times of two batches may come in either order */
        first = b->next;
        for (end = first + 1; end < b->n_entries && b->entries[end].time <= until; end++)
                ;
        b->next = end;
        *ret_batch = b;
        *ret_first = &b->entries[first];
        *ret_emptied = end == b->n_entries;
        if (*ret_emptied)
                m->heap[0] = m->heap[--m->n];
        if (m->n > 0)
                merge_sift(m);
        return end - first;
}
