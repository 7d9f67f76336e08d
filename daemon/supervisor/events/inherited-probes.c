/* Probes that children have too: where their counts are not exact. */
#include "daemon/supervisor/events/inherited-probes.h"

#include <stdlib.h>

/* The last child of whom an event was opened on, whoever of its family had it. */
typedef struct Line {
        uint32_t root;
        nsec_t birth;
} Line;

static int compare_lines(const void *a, const void *b) {
        const Line *x = a, *y = b;

        if (x->root != y->root)
                return x->root < y->root ? -1 : 1;
        return (x->birth > y->birth) - (x->birth < y->birth);
}

/* One for each root that has children, sorted; NULL: no memory. */
static Line *list_lines(const Events *s, size_t *ret_n) {
        size_t at = 0, n = 0, n_all = 0, room = 64;
        Line *lines = malloc(room * sizeof(*lines));
        ProcessTreeEntry k;

        while (lines && process_tree_next(&s->readers->process_tree, &at, &k)) {
                Line line = { .root = process_tree_root(&s->readers->process_tree, &k), .birth = k.birth };

                if (line.root == 0)
                        continue;
                if (n_all == room) {
                        Line *more = reallocarray(lines, room *= 2, sizeof(*lines));

                        if (!more)
                                free(lines);
                        lines = more;
                }
                if (lines)
                        lines[n_all++] = line;
        }
        if (!lines)
                return NULL;
        qsort(lines, n_all, sizeof(*lines), compare_lines);
        for (size_t i = 0; i < n_all; i++)
                if (i + 1 == n_all || lines[i + 1].root != lines[i].root)
                        lines[n++] = lines[i];
        *ret_n = n;
        return lines;
}

static bool has_children(const Events *s, const PerfFdSet *o, const Line *lines, size_t n) {
        BirthWatch w = BIRTH_WATCH_NULL;
        bool has = !lines || births_list_roots(&w, o) < 0; /* for want of memory rather not exact */

        for (size_t i = 0; i < n && !has; i++)
                has = lines[i].birth > o->fds[0].since && births_concern(&s->readers->process_tree, &w, lines[i].root);
        birth_watch_deinit(&w);
        return has;
}

/*
 * Linux asks of a user probe whether it is for the program of the task that the event was opened for (__uprobe_perf_filter()).
 * At a switch between two children that have inherited the same events it lets them change places (perf_event_context_sched_out()),
 * and when that with whose events another one runs has ended, the other's hits are counted by nobody: 1 to 6 % of those of 40
 * children at the same time.
 */
void events_mark_inherited_probes(void *userdata) {
        Events *s = userdata;
        _cleanup_free_ Line *lines = NULL;
        size_t n = 0;

        for (Registration *g = s->registrations; g; g = g->next) {
                if (!g->probe || !probe_is_user(g->probe) || !births_are_inherited(&g->opened) || g->event->counters[0].unsure)
                        continue;
                if (!lines)
                        lines = list_lines(s, &n);
                if (has_children(s, &g->opened, lines, n))
                        births_mark(g->event);
        }
}
