/* For print-format.c: what an expression of a print format is for one item. */
#pragma once

#include "client/perfd.h"
#include "client/print-expression.h"

#define PRINT_SCRATCH 8192

typedef struct PrintValue {
        uint64_t number; /* as its type has it, widened to 64 bits */
        PrintType type;  /* of the number; of an element of the bytes */
        bool is_bytes;   /* a text, an array, what lies at a place in the record */
        const char *bytes;
        size_t length;
} PrintValue;

/* For one conversion after the other: made texts and arrays stay until .n is 0 again. */
typedef struct PrintEvaluation {
        const perfd_item *item;
        size_t n;
        char scratch[PRINT_SCRATCH];
} PrintEvaluation;

/* False: it cannot be told from the record alone, or is larger than the scratch. */
bool print_evaluate(PrintEvaluation *e, const PrintNode *node, PrintValue *ret);

/* For print-names.c: a text of what is appended to .scratch between two calls of these. */
bool print_scratch_add(PrintEvaluation *e, const char *bytes, size_t n);
/* PRINT_FLAGS to PRINT_FRACTION, but PRINT_NAME. */
bool print_names(PrintEvaluation *e, const PrintNode *node, PrintValue *ret);
