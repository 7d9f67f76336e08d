/*
 * For the files of a reader: what a run is (reader/run.c), and its loops, for the commonest case (reader/run-single.c) and
 * for all others (reader/run-many.c).
 */
#pragma once

#include "daemon/decode/record-base.h"
#include "daemon/encode/item-template.h"
#include "daemon/reader/cycle.h"
#include "daemon/route/match-program.h"

#define RUN_ITEMS 8 /* encodings of one sample; with more there are no runs */

/* What all of its records have in common: the header, the stream, the number of raw bytes; and where they end. */
typedef struct RunSignature {
        uint64_t header, id;
        uint32_t raw_size;
        size_t length;       /* of each record */
        const uint8_t *last; /* where the last one may begin, to be whole, in one piece and before the end */
} RunSignature;

/* Of one who wants an encoding under a condition: without `first`, which is of the record, the answer is no. */
typedef struct RunPredicate {
        MatchRange first; /* of all of its ranges the one that is asked first */
        const MatchProgram *program;
        uint64_t bit;
} RunPredicate;

/* One encoding, and who wants it. */
typedef struct RunItem {
        const RunPredicate *questions, *questions_end;
        const EncodePlan *plan;
        uint64_t always;  /* bits of those who have none */
        BatchEntry entry; /* what all of its entries have in common */
        bool asks;        /* somebody has a condition */
        bool is_counted;  /* one by one: somebody has, and is in group 0 */
        ItemEncoding encoding; /* of its samples, all of which have the same raw size */
        ItemTemplate template; /* from ITEM_TEMPLATE on */
} RunItem;

typedef struct Run {
        const SnapshotStream *stream;
        const uint8_t *first;
        RunSignature like;
        uint32_t excluded; /* the pid whose samples end it; UINT32_MAX, of tasks that are gone: nobody's, and no harm */
        size_t need;       /* room for all items of a sample */
        size_t n_items, n_questions;
        uint32_t group;    /* of all who want it */
        RunItem items[RUN_ITEMS];
        RunPredicate questions[BATCH_BITS];
} Run;

static inline bool run_has(const RunSignature *l, const uint8_t *at) {
        return at <= l->last && load64(at) == l->header && load64(at + RECORD_BASE_ID) == l->id &&
               load32(at + RECORD_BASE_SIZE) == l->raw_size;
}

/* All before `at` were taken, of which so many were delivered. How many they are. */
uint64_t run_end(const Run *s, Ring *ring, const uint8_t *at, uint64_t delivered);
/*
 * With what the program begins, of records instead of their raw bytes; how many. First comes what does not hold for the first
 * record, if there is something: mostly it is what refuses most of the run.
 */
unsigned run_ranges_init(MatchRange *ranges, const Run *s, const MatchProgram *program);
/*
 * How many were taken; perhaps none, for want of room. Single: one item, of which there is a template, and if anybody has a
 * condition, it is the only route.
 */
uint64_t run_take_single(Reader *r, Ring *ring, Run *s);
uint64_t run_take_many(Reader *r, Ring *ring, const Run *s);
