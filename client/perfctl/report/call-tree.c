/*
 * All ways of a row are parted by the frame that they lead to, then those of each part by the next one, level by level: a node is a part. What
 * is less than the limit is not parted further, so that the work is that of what is shown. Nodes wait for it in the order in which they were made.
 */
#include "client/perfctl/report/call-tree.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"

typedef struct Making {
        CallTree *tree;
        const CallSource *source;
        const CallLimit *limit;
        CallWay *ways;    /* of all rows, one behind the other */
        size_t *begins;   /* of each row's; of the one that comes next, too */
        CallWay *scratch; /* as many as a row has at most */
        uint32_t *part_of; /* of each frame: its node among those that are made now; ID_NONE: none */
} Making;

void call_tree_deinit(CallTree *t) {
        free(t->nodes);
        free(t->rows);
        *t = (CallTree){ .nodes = NULL };
}

static const uint32_t *stack_of(const CallSource *s, uint32_t stack, size_t *ret_n) {
        return stack_ids_get(s->stack_ids, (uint32_t)rows_key(s->stacks, stack)[s->stacks->n_keys - 1], ret_n);
}

/* Behind frame 0 there is none. */
static uint32_t step(const CallSource *s, uint32_t at) {
        return s->goes_in ? at - 1 : at + 1;
}

/* ---- ways of rows -------------------------------------------------------------------------------------------------------------- */

/* In the order of stacks. Each is put where its row has room for it, or without `ends` it is counted. */
static void walk_ways(Making *m, const bool *is_wanted, size_t *ends) {
        const CallSource *s = m->source;
        const uint32_t *row = s->row_below;

        for (uint32_t i = 0; i < s->stacks->n; i++) {
                size_t n;

                (void)stack_of(s, i, &n);
                for (uint32_t at = 0; at < n; at++, row++) {
                        if (*row == ID_NONE || !is_wanted[*row])
                                continue;
                        if (ends)
                                m->ways[ends[*row]++] = (CallWay){ .stack = i, .at = s->is_behind ? step(s, at) : at };
                        else
                                m->begins[*row + 1]++;
                }
        }
}

static void collect_ways(Making *m, const bool *is_wanted, uint32_t n_rows) {
        const size_t n_begins = (size_t)n_rows + 1;
        size_t n_most = 0;
        size_t *ends;

        m->begins = must_have(calloc(n_begins, sizeof(*m->begins)));
        walk_ways(m, is_wanted, NULL);
        for (size_t i = 1; i < n_begins; i++) {
                n_most = m->begins[i] > n_most ? m->begins[i] : n_most;
                m->begins[i] += m->begins[i - 1];
        }
        m->ways = must_have(calloc(m->begins[n_rows] + 1, sizeof(*m->ways)));
        m->scratch = must_have(calloc(n_most + 1, sizeof(*m->scratch)));
        ends = must_have(calloc(n_begins, sizeof(*ends)));
        memcpy(ends, m->begins, n_begins * sizeof(*ends));
        walk_ways(m, is_wanted, ends);
        free(ends);
}

/* ---- nodes --------------------------------------------------------------------------------------------------------------------- */

/* The function that the way leads to. ID_NONE: it ends there. */
static uint32_t next_of(const Making *m, const CallWay *way) {
        size_t n;
        const uint32_t *frames = stack_of(m->source, way->stack, &n);

        return way->at < n ? frame_ids_function(m->source->frames, frames[way->at]) : ID_NONE;
}

static uint32_t add_node(CallTree *t, uint32_t frame) {
        if (t->n == t->room) {
                t->room = t->room > 0 ? 2 * t->room : 256;
                t->nodes = must_have(reallocarray(t->nodes, t->room, sizeof(*t->nodes)));
        }
        t->nodes[t->n] = (CallNode){ .frame = frame };
        return t->n++;
}

/* A node for each frame that these ways lead to: how many ways, and how many samples. */
static void count_parts(Making *m, const CallWay *ways, size_t n) {
        CallTree *t = m->tree;

        for (size_t i = 0; i < n; i++) {
                const uint32_t frame = next_of(m, &ways[i]);

                if (frame == ID_NONE)
                        continue;
                if (m->part_of[frame] == ID_NONE)
                        m->part_of[frame] = add_node(t, frame);
                t->nodes[m->part_of[frame]].end++;
                row_sum_add(&t->nodes[m->part_of[frame]].sum, m->source->stacks->list[ways[i].stack].self);
        }
}

/* Their places are in the order in which they came. */
static int by_size(const void *left, const void *right, void *userdata) {
        const CallLimit *limit = userdata;
        const CallNode *a = left, *b = right;
        const uint64_t n_a = limit->is_of_samples ? a->sum.samples : a->sum.period, n_b = limit->is_of_samples ? b->sum.samples : b->sum.period;

        if (n_a != n_b)
                return n_a > n_b ? -1 : 1;
        return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Those that are shown get their places among `ways`, from `begin` on; the others go. */
static CallNodes choose_parts(Making *m, uint32_t first, size_t begin) {
        CallTree *t = m->tree;
        uint32_t n = first;

        for (uint32_t i = first; i < t->n; i++) {
                CallNode *node = &t->nodes[i];

                m->part_of[node->frame] = ID_NONE;
                if (!call_is_shown(m->limit, node->sum))
                        continue;
                node->begin = begin;
                begin = node->end += begin;
                t->nodes[n++] = *node;
        }
        t->n = n;
        qsort_r(t->nodes + first, n - first, sizeof(*t->nodes), by_size, (void *)m->limit);
        return (CallNodes){ .first = first, .n = n - first };
}

/* Each way to its part, one step on. */
static void move_ways(Making *m, CallNodes parts, CallWay *ways, size_t begin, size_t n) {
        CallNode *nodes = m->tree->nodes;
        size_t n_moved = 0;

        for (uint32_t i = parts.first; i < parts.first + parts.n; i++) {
                m->part_of[nodes[i].frame] = i;
                n_moved += nodes[i].end - nodes[i].begin;
                nodes[i].end = nodes[i].begin;
        }
        for (size_t i = 0; i < n; i++) {
                const uint32_t frame = next_of(m, &ways[i]), part = frame == ID_NONE ? ID_NONE : m->part_of[frame];

                if (part != ID_NONE)
                        m->scratch[nodes[part].end++ - begin] = (CallWay){ .stack = ways[i].stack, .at = step(m->source, ways[i].at) };
        }
        for (uint32_t i = parts.first; i < parts.first + parts.n; i++)
                m->part_of[nodes[i].frame] = ID_NONE;
        memcpy(ways, m->scratch, n_moved * sizeof(*ways));
}

/* begin, end: of ways. */
static CallNodes part(Making *m, size_t begin, size_t end) {
        const uint32_t first = m->tree->n;
        CallNodes parts;

        count_parts(m, m->ways + begin, end - begin);
        parts = choose_parts(m, first, begin);
        if (parts.n > 0)
                move_ways(m, parts, m->ways + begin, begin, end - begin);
        return parts;
}

void call_tree_make(CallTree *t, const CallSource *source, const CallLimit *limit, const bool *is_wanted, uint32_t n_rows) {
        Making m = { .tree = t, .source = source, .limit = limit };

        call_tree_deinit(t);
        t->rows = must_have(calloc((size_t)n_rows + 1, sizeof(*t->rows)));
        m.part_of = must_have(malloc(((size_t)source->frames->n + 1) * sizeof(*m.part_of)));
        memset(m.part_of, 0xff, ((size_t)source->frames->n + 1) * sizeof(*m.part_of));
        collect_ways(&m, is_wanted, n_rows);
        for (uint32_t i = 0; i < n_rows; i++)
                t->rows[i] = part(&m, m.begins[i], m.begins[i + 1]);
        for (uint32_t i = 0; i < t->n; i++) {
                const CallNodes below = part(&m, t->nodes[i].begin, t->nodes[i].end);

                t->nodes[i].below = below;
        }
        free(m.ways);
        free(m.begins);
        free(m.scratch);
        free(m.part_of);
}
