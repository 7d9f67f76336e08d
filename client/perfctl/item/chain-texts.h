/*
 * For the printers of items: callchains repeat themselves, and those that do have a number. What was written of one is kept, in a table of fixed
 * size, and copied when it comes again. One thread.
 */
#pragma once

#include "client/perfctl/item/plan.h"

typedef struct ChainTexts ChainTexts;

/* NULL. */
ChainTexts *chain_texts_free(ChainTexts *c);

/* Writes the callchains of plans->frames_number, if they are known. plans: NULL if there are none */
bool chain_texts_put(const ItemPlans *plans, Output *o);

/* Where callchains begin that are written now; and behind their end, to keep what they are. */
typedef struct ChainBegin {
        size_t at, n_flushed;
} ChainBegin;

static inline ChainBegin chain_begin(const Output *o) {
        return (ChainBegin){ .at = o->n, .n_flushed = o->n_flushed };
}

void chain_texts_keep(ItemPlans *plans, const Output *o, const ChainBegin *begin);
