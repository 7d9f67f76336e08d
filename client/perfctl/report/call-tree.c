/* Nodes know their parents alone while samples come. Their children are lists in one array, made at the end by sorting all nodes. */
#include "client/perfctl/report/call-tree.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"
#include "client/perfctl/samples/hash-seed.h"

void call_tree_init(CallTree *t) {
        *t = (CallTree){ .seed = seed_new() };
}

void call_tree_deinit(CallTree *t) {
        free(t->nodes);
        free(t->sums);
        free(t->children);
        free(t->begins);
        id_table_deinit(&t->ids);
        *t = (CallTree){ .nodes = NULL };
}

static uint32_t get(CallTree *t, const CallNode *node) {
        uint32_t hash = id_hash(t->seed, node, sizeof(*node)), id;
        size_t at = hash;

        while (id_table_next(&t->ids, hash, &at, &id))
                if (memcmp(&t->nodes[id], node, sizeof(*node)) == 0)
                        return id;
        if (t->n == t->room) {
                t->room = t->room > 0 ? 2 * t->room : 256;
                t->nodes = must_have(reallocarray(t->nodes, t->room, sizeof(*t->nodes)));
                t->sums = must_have(reallocarray(t->sums, t->room, sizeof(*t->sums)));
        }
        ids_must_have(id_table_add(&t->ids, hash, t->n));
        t->nodes[t->n] = *node;
        t->sums[t->n] = (RowSum){ .samples = 0 };
        return t->n++;
}

uint32_t call_tree_add(CallTree *t, uint32_t row, uint32_t parent, uint32_t frame, RowSum samples) {
        const uint32_t id = get(t, &(CallNode){ .row = row, .parent = parent, .frame = frame });

        row_sum_add(&t->sums[id], samples);
        return id;
}

/* Lists of nodes are numbered: those below rows first, then those below nodes. */
static size_t list_of(const CallTree *t, uint32_t node) {
        return t->nodes[node].parent == ID_NONE ? t->nodes[node].row : (size_t)t->n_rows + t->nodes[node].parent;
}

/* Equal ones in the order in which they came. */
static int by_size(const void *left, const void *right, void *userdata) {
        const CallTree *t = userdata;
        const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
        const size_t list_a = list_of(t, a), list_b = list_of(t, b);

        if (list_a != list_b)
                return list_a < list_b ? -1 : 1;
        if (t->sums[a].period != t->sums[b].period)
                return t->sums[a].period > t->sums[b].period ? -1 : 1;
        return a < b ? -1 : a > b;
}

void call_tree_sort(CallTree *t, uint32_t n_rows) {
        const size_t n_lists = (size_t)n_rows + t->n;

        t->n_rows = n_rows;
        t->children = must_have(calloc((size_t)t->n + 1, sizeof(*t->children)));
        t->begins = must_have(calloc(n_lists + 1, sizeof(*t->begins)));
        for (uint32_t i = 0; i < t->n; i++) {
                t->children[i] = i;
                t->begins[list_of(t, i) + 1]++;
        }
        for (size_t i = 0; i < n_lists; i++)
                t->begins[i + 1] += t->begins[i];
        qsort_r(t->children, t->n, sizeof(*t->children), by_size, t);
}

static CallNodes nodes_of(const CallTree *t, size_t list) {
        return (CallNodes){ .list = t->children + t->begins[list], .n = t->begins[list + 1] - t->begins[list] };
}

CallNodes call_tree_of_row(const CallTree *t, uint32_t row) {
        return nodes_of(t, row);
}

CallNodes call_tree_of_node(const CallTree *t, uint32_t node) {
        return nodes_of(t, (size_t)t->n_rows + node);
}
