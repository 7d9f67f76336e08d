#include "client/perfctl/item/chain-texts.h"

#include <stdlib.h>

#include "client/perfctl/base/memory.h"

#define N_TEXTS ((size_t)1 << 11)     /* a power of two */
#define TEXT_MAX ((size_t)8 << 10)    /* bytes of one; what is longer is written anew */

typedef struct ChainText {
        uint64_t number; /* 0: free */
        size_t n, room;
        char *bytes;
} ChainText;

struct ChainTexts {
        ChainText list[N_TEXTS]; /* by the last bits of the number */
};

ChainTexts *chain_texts_free(ChainTexts *c) {
        for (size_t i = 0; c && i < N_TEXTS; i++)
                free(c->list[i].bytes);
        free(c);
        return NULL;
}

bool chain_texts_put(const ItemPlans *plans, Output *o) {
        const ChainText *text;

        if (!plans || !plans->chains || plans->frames_number == 0)
                return false;
        text = &plans->chains->list[plans->frames_number & (N_TEXTS - 1)];
        if (text->number != plans->frames_number)
                return false;
        output_put(o, text->bytes, text->n);
        return true;
}

void chain_texts_keep(ItemPlans *plans, const Output *o, const ChainBegin *begin) {
        const size_t n = o->n - begin->at;
        ChainText *text;

        if (!plans || plans->frames_number == 0 || o->n_flushed != begin->n_flushed || n == 0 || n > TEXT_MAX)
                return;
        if (!plans->chains)
                plans->chains = must_have(calloc(1, sizeof(*plans->chains)));
        text = &plans->chains->list[plans->frames_number & (N_TEXTS - 1)];
        if (n > text->room) {
                free(text->bytes);
                text->bytes = must_have(malloc(n));
                text->room = n;
        }
        memcpy(text->bytes, o->bytes + begin->at, n);
        text->number = plans->frames_number;
        text->n = n;
}
