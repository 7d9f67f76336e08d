/* Nodes are in post-order: each subtree is one run of them, and what is not yet in a part begins behind the last part. */
#include "daemon/route/filter-process.h"

#include <string.h>

static const char *const part_names[] = {
        [PROCESS_UID] = "uid", [PROCESS_EXE] = "exe", [PROCESS_CGROUP] = "cgroup", [PROCESS_CONTAINER] = "container",
        [PROCESS_UNIT] = "unit", [PROCESS_COMM] = "comm",
};

ProcessPart process_part_find(const char *name) {
        if (strncmp(name, "sample.", strlen("sample.")) == 0)
                name += strlen("sample.");
        for (ProcessPart p = PROCESS_UID; p < _PROCESS_PART_MAX; p++)
                if (strcmp(part_names[p], name) == 0)
                        return p;
        return PROCESS_NONE;
}

const char *process_part_name(ProcessPart p) {
        return part_names[p];
}

FilterKind filter_mirror(FilterKind relation) {
        switch (relation) {
        case FILTER_LESS:
                return FILTER_GREATER;
        case FILTER_LESS_EQUAL:
                return FILTER_GREATER_EQUAL;
        case FILTER_GREATER:
                return FILTER_LESS;
        case FILTER_GREATER_EQUAL:
                return FILTER_LESS_EQUAL;
        default:
                return relation;
        }
}

static bool atom_of(const Filter *f, const FilterNode *name, FilterKind relation, const FilterNode *constant, ProcessAtom *ret) {
        ProcessPart part = name->kind == FILTER_NAME && name->element < 0 ? process_part_find(name->name) : PROCESS_NONE;
        bool is_text = part != PROCESS_UID, is_order = relation >= FILTER_LESS && relation <= FILTER_GREATER_EQUAL;

        if (part == PROCESS_NONE || (part == PROCESS_COMM && !f->asks_for_comm) || constant->kind != (is_text ? FILTER_TEXT : FILTER_NUMBER) ||
            (is_text ? is_order : relation == FILTER_GLOB))
                return false;
        *ret = (ProcessAtom){ .part = part, .relation = relation, .constant = constant };
        return true;
}

bool filter_process_atom(const Filter *f, uint16_t node, ProcessAtom *ret) {
        const FilterNode *n = &f->nodes[node], *left = &f->nodes[n->left], *right = &f->nodes[n->right];

        if (!filter_is_comparison(n->kind))
                return false;
        return atom_of(f, left, n->kind, right, ret) || (n->kind != FILTER_GLOB && atom_of(f, right, filter_mirror(n->kind), left, ret));
}

static bool subtree_has_atom(const Filter *f, uint16_t node) {
        ProcessAtom atom;

        for (uint32_t i = f->nodes[node].first; i <= node; i++)
                if (filter_process_atom(f, (uint16_t)i, &atom))
                        return true;
        return false;
}

static bool is_inner(FilterKind kind) {
        return kind == FILTER_NOT || kind == FILTER_AND || kind == FILTER_OR;
}

bool filter_is_of_comm(const Filter *f, uint16_t node) {
        const char *name = NULL;
        ProcessAtom atom;

        for (uint32_t i = f->nodes[node].first; i <= node; i++) {
                const FilterNode *n = &f->nodes[i], *leaf;

                if (is_inner(n->kind) && !(filter_is_condition(f->nodes[n->left].kind) &&
                                           (n->kind == FILTER_NOT || filter_is_condition(f->nodes[n->right].kind))))
                        return false; /* a number alone */
                if (!filter_is_comparison(n->kind))
                        continue;
                if (!filter_process_atom(f, (uint16_t)i, &atom) || atom.part != PROCESS_COMM)
                        return false;
                leaf = f->nodes[n->left].kind == FILTER_NAME ? &f->nodes[n->left] : &f->nodes[n->right];
                if (name && strcmp(name, leaf->name) != 0)
                        return false;
                name = leaf->name;
        }
        return name;
}

/* As deep as && || ! are inside each other, which an expression bounds by its terms. */
static int split_node(const Filter *f, uint16_t node, FilterSplit *s, Explanation *e) {
        const FilterNode *n = &f->nodes[node];
        int r;

        if (!is_inner(n->kind) || !subtree_has_atom(f, node) || filter_is_of_comm(f, node)) {
                if (s->n == CONDITION_PARTS)
                        return filter_refuse(e, n->position, "an expression that uses the process has at most %d parts, that is, "
                                "comparisons of exe, uid, cgroup, container or unit and the conditions between them: match "
                                "several values by one pattern", CONDITION_PARTS);
                s->parts[s->n++].node = node;
                return 0;
        }
        r = split_node(f, n->left, s, e);
        return r != 0 || n->kind == FILTER_NOT ? r : split_node(f, n->right, s, e);
}

int filter_split(const Filter *f, FilterSplit *ret, Explanation *e) {
        ret->n = 0;
        return split_node(f, (uint16_t)(f->n_nodes - 1), ret, e);
}

void filter_ask_for_comm(Filter *f) {
        f->asks_for_comm = true;
}

bool filter_asks_process(const Filter *f) {
        return subtree_has_atom(f, (uint16_t)(f->n_nodes - 1));
}
