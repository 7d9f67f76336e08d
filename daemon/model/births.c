#include "daemon/model/births.h"

#include <stdlib.h>

#include "daemon/base/cleanup.h"

#define GENERATIONS_MAX 32 /* of roots below roots */

typedef struct Birth {
        uint32_t parent;
        nsec_t time;
} Birth;

void birth_watch_deinit(BirthWatch *w) {
        free(w->roots);
        free(w->busy);
        *w = BIRTH_WATCH_NULL;
}

int births_compare_tids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static int compare_births(const void *a, const void *b) {
        const Birth *x = a, *y = b;

        if (x->parent != y->parent)
                return x->parent < y->parent ? -1 : 1;
        return (x->time > y->time) - (x->time < y->time);
}

static bool has_tid(const uint32_t *tids, size_t n, uint32_t tid) {
        return n > 0 && bsearch(&tid, tids, n, sizeof(tid), births_compare_tids);
}

bool births_concern(const ProcessTree *t, const BirthWatch *w, uint32_t tid) {
        ProcessTreeEntry k;

        if (has_tid(w->roots, w->n_roots, tid))
                return true;
        if (!process_tree_get(t, tid, &k))
                return false;
        for (int i = 0; i < GENERATIONS_MAX; i++) {
                uint32_t root = process_tree_root(t, &k);

                if (root == 0 || has_tid(w->roots, w->n_roots, root))
                        return root != 0;
                if (!process_tree_get(t, root, &k))
                        return false; /* a root of another event, whose parents nobody knows */
        }
        return false;
}

static bool is_busy(const BirthWatch *w, uint32_t tid) {
        /* a root's own events are switched under a lock that its forks take too; but it may have been opened in the middle of one */
        if (w->all_busy)
                return w->opened != 0 || !has_tid(w->roots, w->n_roots, tid);
        return has_tid(w->busy, w->n_busy, tid);
}

/* The births of one parent, sorted. Only the first one behind a moment can have begun before it. */
static bool parent_doubtful(const BirthWatch *w, const Birth *births, size_t n) {
        bool after_opened = false, after_first = false;

        for (size_t i = 0; i < n; i++) {
                nsec_t at = births[i].time;

                if (w->opened != 0 && at >= w->listed && at < w->second && !after_opened)
                        return true;
                if (at >= w->second)
                        return !after_first && is_busy(w, births[i].parent);
                after_opened = after_opened || (w->opened != 0 && at >= w->opened);
                after_first = after_first || at >= w->first;
        }
        return false;
}

static bool sorted_doubtful(const BirthWatch *w, const Birth *births, size_t n) {
        size_t end;

        for (size_t i = 0; i < n; i = end) {
                for (end = i + 1; end < n && births[end].parent == births[i].parent; end++)
                        ;
                if (parent_doubtful(w, births + i, end - i))
                        return true;
        }
        return false;
}

bool births_doubtful(const ProcessTree *t, const BirthWatch *w, nsec_t until) {
        const nsec_t from = w->opened ? w->opened : w->first;
        _cleanup_free_ Birth *births = NULL;
        size_t at = 0, n = 0, room = 0;
        ProcessTreeEntry k;

        while (process_tree_next(t, &at, &k)) {
                if (k.birth < from || k.birth > until || k.parent == 0 || !births_concern(t, w, k.parent))
                        continue;
                if (n == room) {
                        Birth *more = reallocarray(births, room = room * 2 + 64, sizeof(*births));

                        if (!more)
                                return true;
                        births = more;
                }
                births[n++] = (Birth){ k.parent, k.birth };
        }
        if (n == 0)
                return false;
        qsort(births, n, sizeof(*births), compare_births);
        return sorted_doubtful(w, births, n);
}
