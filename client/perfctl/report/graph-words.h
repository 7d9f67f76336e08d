/* For report: what stands behind -g of perf-report(1), as in "graph,0.5,caller". */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct GraphWords {
        bool is_given;    /* one of the arguments was such a list */
        bool has_graph;
        bool has_callees; /* "caller": from who calls down to what is called */
        bool has_limit;
        double limit;     /* percent */
} GraphWords;

/* Takes such lists from the arguments. 0, or PERFCTL_USAGE after a message. */
int graph_words_take(Perfctl *p, GraphWords *ret);
