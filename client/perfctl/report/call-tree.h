/*
 * For report: below each row a tree of calls, from the row's function to those that called it, or to those that it called. One node for all
 * samples that share a way from the row. One thread.
 */
#pragma once

#include "client/perfctl/report/rows.h"

typedef struct CallNode {
        uint32_t row;
        uint32_t parent; /* a node; ID_NONE: the row itself */
        uint32_t frame;
} CallNode;

typedef struct CallTree {
        CallNode *nodes;
        RowSum *sums; /* of samples that came through the node */
        uint32_t n, room;
        IdTable ids;
        uint64_t seed;
        uint32_t *children, *begins; /* call_tree_sort() */
        uint32_t n_rows;
} CallTree;

/* Nodes below a row or a node: the largest first. */
typedef struct CallNodes {
        const uint32_t *list;
        size_t n;
} CallNodes;

void call_tree_init(CallTree *t);
void call_tree_deinit(CallTree *t);
/* Samples of a row, or of a node below it: returns the node of the frame that is next on their way. */
uint32_t call_tree_add(CallTree *t, uint32_t row, uint32_t parent, uint32_t frame, RowSum samples);
/* Once, when all were added. */
void call_tree_sort(CallTree *t, uint32_t n_rows);
CallNodes call_tree_of_row(const CallTree *t, uint32_t row);
CallNodes call_tree_of_node(const CallTree *t, uint32_t node);
