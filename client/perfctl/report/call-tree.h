/*
 * For report: below each row a tree of calls, from the row's function to those that called it, or to those that it called. One node for all
 * samples that share a way from the row. It is made at the end, of ways into stacks, and only as far as it is large enough to be shown: most
 * ways of a large recording are some sample's alone. One thread.
 */
#pragma once

#include "client/perfctl/report/rows.h"
#include "client/perfctl/samples/frame-ids.h"
#include "client/perfctl/samples/stack-ids.h"

/* Nodes below a row or a node: the largest first, and those that are equal in the order in which their samples came. */
typedef struct CallNodes {
        uint32_t first, n;
} CallNodes;

typedef struct CallNode {
        uint32_t frame;
        CallNodes below;
        RowSum sum;        /* of samples that came through the node */
        size_t begin, end; /* of its ways, while the tree is made */
} CallNode;

/* A stack, and which of its frames comes next. */
typedef struct CallWay {
        uint32_t stack; /* a row of the source's `stacks` */
        uint32_t at;
} CallWay;

typedef struct CallTree {
        CallNode *nodes;
        uint32_t n, room;
        CallNodes *rows; /* below each row */
} CallTree;

typedef struct CallSource {
        const FrameIds *frames;
        const StackIds *stack_ids;
        const Rows *stacks;        /* the last number of a key is the stack */
        const uint32_t *row_below; /* for each frame of each of `stacks`: the row from which a way begins there; ID_NONE: none */
        bool goes_in;              /* ways lead to the innermost frame, and else to the outermost */
        bool is_behind;            /* a way begins at the frame behind that of the row, and else at itself */
} CallSource;

/* What is at least so large is in the tree. */
typedef struct CallLimit {
        double percent;
        RowSum all;
        bool is_of_samples;
} CallLimit;

static inline bool call_is_shown(const CallLimit *l, RowSum sum) {
        return row_sum_share(sum, l->all, l->is_of_samples) >= l->percent;
}

void call_tree_deinit(CallTree *t);
/* Below those of the rows that are wanted; of another tree nothing is left. */
void call_tree_make(CallTree *t, const CallSource *source, const CallLimit *limit, const bool *is_wanted, uint32_t n_rows);
static inline CallNodes call_tree_of_row(const CallTree *t, uint32_t row) {
        return t->rows[row];
}
