/* For print formats: what an expression takes from one item, and the room for what is made of it. */
#pragma once

#include "client/perfd.h"
#include "client/print/arithmetic.h"

#define PRINT_SCRATCH 8192

/* For one conversion after the other: made texts and arrays stay until .n is 0 again. */
typedef struct PrintEvaluation {
        const perfd_item *item;
        size_t n;
        char scratch[PRINT_SCRATCH];
} PrintEvaluation;

/* A text of what is appended to .scratch between two calls of others that append to it. False: there is no room for it. */
bool print_scratch_add(PrintEvaluation *e, const char *bytes, size_t n);

/* Field i of the item; its bytes as cpumask_pr_args() shows them; how many bytes it has. False: the item has no such field. */
bool print_evaluate_field(PrintEvaluation *e, size_t i, PrintValue *ret);
bool print_evaluate_bitmask(PrintEvaluation *e, size_t i, PrintValue *ret);
bool print_evaluate_length(PrintEvaluation *e, size_t i, PrintValue *ret);
