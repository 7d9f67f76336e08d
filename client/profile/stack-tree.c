/* A node is found by its parent and what it is, in a table: a node may have as many children as there are functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/stack-tree.h"

void stack_tree_deinit(StackTree *t) {
        free(t->nodes);
        free(t->ends);
        id_table_deinit(&t->ids);
        *t = STACK_TREE_NULL;
}

static int add_node(StackTree *t, uint64_t seed, StackNode node, uint32_t *ret_id) {
        uint32_t hash = id_hash(seed, &node, sizeof(node)), id;
        size_t at = hash;
        int r;

        while (id_table_next(&t->ids, hash, &at, &id))
                if (memcmp(&t->nodes[id], &node, sizeof(node)) == 0) {
                        *ret_id = id;
                        return 0;
                }
        if ((t->n_nodes & (t->n_nodes - 1)) == 0) {
                StackNode *grown;

                if (t->n_nodes >= PROFILE_IDS_MAX)
                        return PROFILE_E_TOO_MANY;
                grown = reallocarray(t->nodes, t->n_nodes > 0 ? 2 * (size_t)t->n_nodes : 1, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                t->nodes = grown;
        }
        r = id_table_add(&t->ids, hash, t->n_nodes);
        if (r < 0)
                return r;
        t->nodes[t->n_nodes] = node;
        *ret_id = t->n_nodes++;
        return 0;
}

static int add_stack(StackTree *t, const Profile *p, const Stack *s, uint32_t *ret_end) {
        uint32_t node = 0;
        int r = add_node(t, p->seed, (StackNode){ .function = ID_NONE, .comm = p->tasks[s->task].comm }, &node);

        for (uint32_t k = 0; r == 0 && k < s->n_frames; k++) {
                uint32_t function = p->frames[p->stack_frames[s->first + k]].function;

                r = add_node(t, p->seed, (StackNode){ .parent = node, .function = function, .comm = ID_NONE }, &node);
        }
        *ret_end = node;
        return r;
}

int stack_tree_init(StackTree *t, const Profile *p) {
        uint32_t root;
        int r;

        *t = STACK_TREE_NULL;
        t->ends = calloc((size_t)p->n_stacks + 1, sizeof(*t->ends));
        r = t->ends ? add_node(t, p->seed, (StackNode){ .function = ID_NONE, .comm = ID_NONE }, &root) : -ENOMEM;
        for (uint32_t i = 0; r == 0 && i < p->n_stacks; i++)
                r = add_stack(t, p, &p->stacks[i], &t->ends[i]);
        return r;
}
