/*
 * For `top`: how many samples each key has, in the last window and since the start. Pure, any thread. Of memory it takes what a CountMap
 * may have: a key for which there is no room is added to `others`, and at the end of such a window keys that were not seen in it make
 * room and are added to `gone`. So all.total is always that of the keys, of `others` and of `gone` together.
 */
#pragma once

#include "client/perfctl/count/map.h"

/* weight: what the samples stand for, their periods; at most UINT64_MAX. */
typedef struct TallySum {
        uint64_t n, weight;
} TallySum;

typedef struct TallyEntry {
        TallySum now;    /* of the window that has not ended */
        TallySum window; /* of the last one that has */
        TallySum total;  /* both, and all before */
} TallyEntry;

typedef struct Tally {
        CountMap keys;
        TallyEntry *entries; /* of each of keys.entries */
        size_t room;
        TallyEntry all, others;
        TallySum gone;
        uint64_t n_gone; /* keys; one that comes again counts again */
} Tally;

void tally_init(Tally *t);
void tally_deinit(Tally *t);
/* A sample with this key, whose length is a multiple of 8. */
void tally_add(Tally *t, const uint8_t *key, size_t length, uint64_t weight);
/* The window has ended, and the next one begins. */
void tally_turn(Tally *t);
/* Forgets all. */
void tally_zero(Tally *t);

void tally_sum_add(TallySum *s, const TallySum *more);
