/* Searched by readers for each event at each pass of a cut, so it is sorted. */
#include "daemon/model/cut-scope.h"

#include <stdlib.h>

CutScope *cut_scope_new(size_t n_most) {
        CutScope *c = malloc(sizeof(*c) + n_most * sizeof(*c->ids));

        if (c) {
                atomic_init(&c->n_refs, 1);
                c->n_ids = 0;
        }
        return c;
}

CutScope *cut_scope_ref(CutScope *c) {
        if (c)
                atomic_fetch_add_explicit(&c->n_refs, 1, memory_order_relaxed);
        return c;
}

CutScope *cut_scope_unref(CutScope *c) {
        if (c && atomic_fetch_sub_explicit(&c->n_refs, 1, memory_order_acq_rel) == 1)
                free(c);
        return NULL;
}

static int compare_ids(const void *a, const void *b) {
        const uint32_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

void cut_scope_finish(CutScope *c) {
        qsort(c->ids, c->n_ids, sizeof(*c->ids), compare_ids);
}

bool cut_scope_has(const CutScope *c, uint32_t id) {
        size_t first = 0, last = c ? c->n_ids : 0;

        while (first < last) {
                size_t middle = first + (last - first) / 2;

                if (c->ids[middle] == id)
                        return true;
                if (c->ids[middle] < id)
                        first = middle + 1;
                else
                        last = middle;
        }
        return !c;
}
