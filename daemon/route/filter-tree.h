/*
 * The inside of a Filter, for what makes it (filter*.c) and what compiles it (match-*.c). Nodes stand in post-order:
 * operands before their operator, the root last, and each subtree is one run of nodes with its leftmost leaf first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/route/filter.h"
#include "daemon/base/pattern.h"

typedef enum FilterKind {
        FILTER_NUMBER,
        FILTER_TEXT,
        FILTER_NAME,
        FILTER_BIT_AND, /* what is above and these two may be an operand of a comparison; all below is true or false */
        FILTER_BIT_OR,
        FILTER_EQUAL,
        FILTER_UNEQUAL,
        FILTER_LESS,
        FILTER_LESS_EQUAL,
        FILTER_GREATER,
        FILTER_GREATER_EQUAL,
        FILTER_GLOB,
        FILTER_NOT,
        FILTER_AND,
        FILTER_OR,
} FilterKind;

/* As it is written; "" for leaves. */
const char *filter_operator(FilterKind k);

static inline bool filter_is_leaf(FilterKind k) {
        return k <= FILTER_NAME;
}
static inline bool filter_is_comparison(FilterKind k) {
        return k >= FILTER_EQUAL && k <= FILTER_GLOB;
}
static inline bool filter_is_condition(FilterKind k) {
        return k >= FILTER_EQUAL;
}

typedef struct FilterNode {
        FilterKind kind;
        uint32_t position;    /* byte offset of the leaf or the operator */
        uint16_t first;       /* the subtree's leftmost leaf: nodes[first] to this one */
        uint16_t left, right; /* operands; NOT has only left */

        uint64_t number; /* NUMBER, two's complement if negative */
        bool negative;

        const char *name; /* NAME; and a TEXT that is no pattern, else NULL */
        int32_t element;  /* NAME[element], -1 without */

        uint32_t unit, n_units; /* TEXT */
        bool character;         /* TEXT: one byte in single quotes, which is `number` where a number is needed */
} FilterNode;

struct Filter {
        FilterNode *nodes;
        uint32_t n_nodes, n_terms;
        char *names; /* each terminated */
        size_t n_names;
        uint16_t *units;
        uint32_t n_units;
        PatternSet *sets;
        uint32_t n_sets;
        bool asks_for_comm; /* filter_ask_for_comm() */
};

/* REFUSED_INVALID, "bad-expression", at this byte offset. */
int filter_refuse(Explanation *e, size_t position, const char *format, ...) __attribute__((format(printf, 3, 4)));
