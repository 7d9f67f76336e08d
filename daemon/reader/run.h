/*
 * What a run is (reader/run.c), and its loops: for the most frequent case (reader/run-single.c), and for all others
 * (reader/run-many.c).
 */
#pragma once

#include "daemon/decode/record-base.h"
#include "daemon/encode/item-template.h"
#include "daemon/reader/cycle.h"
#include "daemon/route/match-program.h"

#define RUN_ITEMS 8 /* encodings of one sample; with more there are no runs */

/* What all records of a run have in common: header, stream, number of raw bytes; and where they end. */
typedef struct RunSignature {
        uint64_t header, id;
        uint32_t raw_size;
        size_t length;       /* bytes of each record */
        /* the last position at which a record can begin that is complete and contiguous and ends before the run's limit */
        const uint8_t *last;
} RunSignature;

/* A condition of a subscription on one encoding. If `first`, a range of the record, is false, so is the condition. */
typedef struct RunPredicate {
        MatchRange first; /* the range that is evaluated first */
        const MatchProgram *program;
        uint64_t bit;
} RunPredicate;

/* One encoding, and the subscriptions that want it. */
typedef struct RunItem {
        const RunPredicate *predicates, *predicates_end;
        const EncodePlan *plan;
        uint64_t always;  /* bits of subscriptions without a condition */
        BatchEntry entry; /* what all of its entries have in common */
        bool asks;        /* some subscription has a condition */
        bool is_counted;  /* samples are counted one by one: some subscription of group 0 has a condition */
        ItemEncoding encoding; /* of its samples, all of which have the same raw size */
        ItemTemplate template; /* valid from ITEM_TEMPLATE on */
} RunItem;

typedef struct Run {
        const SnapshotStream *stream;
        const uint8_t *first;
        RunSignature like;
        uint32_t excluded; /* the pid whose samples end the run; UINT32_MAX, the pid of dead tasks: harmless */
        size_t need;       /* bytes for all items of a sample */
        size_t n_items, n_predicates;
        uint32_t group;    /* the group of all subscriptions that want it */
        RunItem items[RUN_ITEMS];
        RunPredicate predicates[BATCH_BITS];
} Run;

static inline bool run_has(const RunSignature *l, const uint8_t *at) {
        return at <= l->last && load64(at) == l->header && load64(at + RECORD_BASE_ID) == l->id &&
               load32(at + RECORD_BASE_SIZE) == l->raw_size;
}

/* Consumes the samples before `at`, of which `delivered` were delivered. Returns their number. */
uint64_t run_end(const Run *s, Ring *ring, const uint8_t *at, uint64_t delivered);
/*
 * Translates the ranges with which the program begins to offsets in records; returns how many. A range that is false for the
 * first record comes first, because it usually rejects most of the run.
 */
unsigned run_ranges_init(MatchRange *ranges, const Run *s, const MatchProgram *program);
/*
 * Both take a run, and return how many samples were taken: perhaps none, for lack of room. Single: there is one item, which has a
 * template, and if it has a condition there is only one route.
 */
uint64_t run_take_single(Reader *r, Ring *ring, Run *s);
uint64_t run_take_many(Reader *r, Ring *ring, const Run *s);
