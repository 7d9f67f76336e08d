/*
 * What travels from a reader to the dispatcher and back for reuse: an arena of encoded items, and for each an index
 * entry by which it can be selected and ordered without looking at its bytes. Owned by one thread at a time.
 *
 *     entries  | time mask event place length tid | ...     full at BATCH_ENTRIES
 *     arena    | field `items` of perfd.v1.Packet, complete with tag and length | ...     BATCH_ARENA bytes
 *
 * Subscriptions have numbers. BATCH_BITS that follow each other are a group, and the mask of an entry is of one group: an
 * item for several groups has an entry for each of them, one behind the other, which share its bytes. The group lies above
 * the offset, so that entries of group 0, which are all there are up to BATCH_BITS subscriptions, are as if there were none.
 * Of a sample in several encodings there are several items, one behind the other, and all but the first say that they are more.
 *
 * Subscriptions whose condition asks what only the dispatcher knows, whose process it was, have groups of their own. Their
 * entries say so, and behind the item lies a ConditionWord for each of them, in the order of their numbers: what the reader
 * found out. It is no part of the item.
 *
 * Between them, in the same order of time, lie notes for the dispatcher itself (task-note.h): entries of BATCH_MARKER that
 * no subscription wants.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"

#define BATCH_ARENA ((size_t)64 * 1024)
#define BATCH_ENTRIES ((size_t)1536)
#define BATCH_BITS 64   /* subscriptions of a group: bits of BatchEntry.mask */
#define BATCH_GROUPS 64
#define SUBSCRIPTIONS_MAX (BATCH_GROUPS * BATCH_BITS) /* that can be told apart: their numbers are less */
/* The last sample of a batch may have as many entries as there can be: one for each subscription, if each has another encoding. */
#define BATCH_ENTRIES_MAX (BATCH_ENTRIES + SUBSCRIPTIONS_MAX)
#define BATCH_GROUP(number) ((uint32_t)(number) / BATCH_BITS)
#define BATCH_BIT(number) (1ULL << (number) % BATCH_BITS)
#define CONDITIONAL_GROUPS 4 /* at most, and the highest: so many words of a sample leave room for the longest item */
#define CONDITIONAL_MAX (CONDITIONAL_GROUPS * BATCH_BITS)
#define BATCH_MARKER UINT32_MAX /* as BatchEntry.event: a note, whose mask is 0 */

typedef struct BatchEntry {
        nsec_t time;
        uint64_t mask; /* a bit for each subscription of its group that it matched */
        uint32_t event;
        uint32_t place;  /* BATCH_PLACE() */
        uint32_t length; /* in the arena */
        uint32_t tid; /* who did it: whom the stream has to describe before */
} BatchEntry;

#define BATCH_PLACE(group, offset) ((uint32_t)(group) << 16 | (uint32_t)(offset))
#define BATCH_MORE ((uint32_t)1 << 31) /* in the place of an item: one more of the sample of the item before it */
#define BATCH_CONDITIONAL ((uint32_t)1 << 30) /* in the place: whether its subscriptions get it is still to be found out */
_Static_assert(BATCH_ARENA <= (size_t)1 << 16 && BATCH_GROUPS <= 1 << 14 && (BATCH_GROUPS & (BATCH_GROUPS - 1)) == 0,
               "an offset, a group and two flags are in 32 bits");

/* What a reader has found out about a condition, a bit for each part of it: those that are known, and hold (route/match.h). */
typedef struct ConditionWord {
        uint32_t number; /* of the subscription */
        uint32_t known, holds;
} ConditionWord;

static inline uint32_t entry_offset(const BatchEntry *e) {
        return (uint16_t)e->place;
}

static inline uint32_t entry_group(const BatchEntry *e) {
        return e->place >> 16 & (BATCH_GROUPS - 1);
}

static inline bool entry_is_conditional(const BatchEntry *e) {
        return e->place & BATCH_CONDITIONAL;
}

/* Equal of entries that go the same way: of one group, all of them still to be decided or none. */
static inline uint32_t entry_way(const BatchEntry *e) {
        return e->place & (BATCH_PLACE(BATCH_GROUPS - 1, 0) | BATCH_CONDITIONAL);
}

/* Another item of a sample, in another encoding than that before it. */
static inline bool entry_continues(const BatchEntry *e) {
        return e->place & BATCH_MORE;
}

/* The same item as that of the entry before it, for another group. */
static inline bool entry_shares(const BatchEntry *e) {
        return entry_group(e) != entry_group(e - 1) && entry_offset(e) == entry_offset(e - 1) && e->length == e[-1].length;
}

/* Numbers of subscriptions. */
typedef struct SubscriptionSet {
        uint64_t groups;              /* in which there are some: */
        uint64_t masks[BATCH_GROUPS]; /* valid for these */
} SubscriptionSet;

#define FOR_EACH_BIT(i, mask) \
        for (uint64_t i##_left = (mask), i; i##_left && (i = (uint64_t)__builtin_ctzll(i##_left), true); i##_left &= i##_left - 1)

static inline void subscription_set_add_mask(SubscriptionSet *s, uint32_t group, uint64_t mask) {
        if (!(s->groups >> group & 1))
                s->masks[group] = 0;
        s->groups |= 1ULL << group;
        s->masks[group] |= mask;
}

static inline void subscription_set_add(SubscriptionSet *s, uint32_t number) {
        subscription_set_add_mask(s, BATCH_GROUP(number), BATCH_BIT(number));
}

static inline bool subscription_set_has(const SubscriptionSet *s, uint32_t number) {
        return (s->groups >> BATCH_GROUP(number) & 1) && (s->masks[BATCH_GROUP(number)] & BATCH_BIT(number));
}

static inline void subscription_set_add_set(SubscriptionSet *s, const SubscriptionSet *more) {
        FOR_EACH_BIT(group, more->groups)
                subscription_set_add_mask(s, (uint32_t)group, more->masks[group]);
}

typedef struct Batch {
        /* written by the reader */
        uint32_t slot;       /* of its CPU */
        uint64_t generation; /* of the snapshot that the masks belong to */
        uint64_t cut;        /* the last cut that was taken before what is in it; 0: none. Streams begin and end at cuts */
        nsec_t watermark;    /* nothing older will come from this CPU; 0: says nothing */
        nsec_t due;          /* CLOCK_MONOTONIC: the tick at which its reader would have come; 0: it was asked; UINT64_MAX: no tick */
        bool sorted;         /* entries are in the order of their time */
        size_t n_entries, used;
        size_t n_notes;      /* of the entries */
        size_t n_grouped;    /* of the entries: of other groups than 0 */
        size_t n_shared;     /* of these: entry_shares() */
        uint64_t mask;                /* of all entries of group 0 that are counted */
        uint32_t matched[BATCH_BITS]; /* of these, who have the bit; valid where `mask` has it */
        uint64_t run_mask;            /* entries that are not counted yet have this mask, */
        uint32_t run;                 /* and are so many */

        /* written by the dispatcher */
        size_t next; /* first entry that is not yet released by the merge */
        bool is_uniform;      /* all entries go one way */
        size_t place;         /* in Merge.batches */
        struct Batch *behind; /* in the merge: the next one of its CPU, or NULL */

        BatchEntry *entries;
        uint8_t *arena;
} Batch;

/* NULL: no memory. The arena costs no memory before it is written. */
Batch *batch_new(uint32_t slot);
Batch *batch_free(Batch *b);
DEFINE_CLEANUP(Batch *, batch_free)

/* Empty again, for the reader. */
void batch_reset(Batch *b, uint64_t generation);
/* Counts those of group 0 that are not: others are counted by the dispatcher. */
void batch_count_run(Batch *b);
/* Ready for its way: `mask` and `matched` are of all entries, and these in the order of time; equal times stay in theirs. */
void batch_seal(Batch *b);
/* Back to what it was when it had so many entries and used so many bytes. */
void batch_take_back(Batch *b, size_t n_entries, size_t used);
/* The last n entries of a sealed batch, to another one that has room for them. */
void batch_move_last(Batch *b, size_t n, Batch *to);

static inline bool batch_has_entry_room(const Batch *b) {
        return b->n_entries < BATCH_ENTRIES;
}

static inline uint8_t *batch_room(const Batch *b, size_t *ret_room) {
        *ret_room = BATCH_ARENA - b->used;
        return b->arena + b->used;
}

/* Behind the last item, which is for the word's subscription; there is room for it. */
static inline void batch_add_word(Batch *b, const ConditionWord *word) {
        memcpy(b->arena + b->used, word, sizeof(*word));
        b->used += sizeof(*word);
}

/* Entries from `from` on are of one item: those of these groups are conditional. */
static inline void batch_mark_conditional(Batch *b, size_t from, uint64_t groups) {
        for (size_t i = from; i < b->n_entries; i++)
                if (groups >> entry_group(&b->entries[i]) & 1)
                        b->entries[i].place |= BATCH_CONDITIONAL;
}

/* That of a subscription which wants the entry, looked for from `*at` words behind its item on: they are in order. */
static inline ConditionWord batch_find_word(const Batch *b, const BatchEntry *e, uint32_t number, size_t *at) {
        const uint8_t *words = b->arena + entry_offset(e) + e->length;
        ConditionWord word;

        do {
                memcpy(&word, words + *at * sizeof(word), sizeof(word));
                (*at)++;
        } while (word.number != number);
        return word;
}

/* n entries of group 0 have, or will have, this mask. */
static inline void batch_count(Batch *b, uint64_t mask, size_t n) {
        if (mask != b->run_mask) {
                batch_count_run(b);
                b->run_mask = mask;
        }
        b->run += (uint32_t)n;
}

/* Makes what was written at batch_room() an entry, which is no note, and is still to be counted. */
static inline void batch_append_uncounted(Batch *b, nsec_t time, uint64_t mask, uint32_t event, uint32_t tid, size_t length) {
        BatchEntry *e = &b->entries[b->n_entries];

        if (b->n_entries > 0 && time < e[-1].time)
                b->sorted = false;
        *e = (BatchEntry){ .time = time, .mask = mask, .event = event, .place = BATCH_PLACE(0, b->used),
                           .length = (uint32_t)length, .tid = tid };
        b->n_entries++;
        b->used += length;
}

/* Makes what was written at batch_room() an entry. */
static inline void batch_append(Batch *b, nsec_t time, uint64_t mask, uint32_t event, uint32_t tid, size_t length) {
        batch_append_uncounted(b, time, mask, event, tid, length);
        b->n_notes += event == BATCH_MARKER;
        batch_count(b, mask, 1);
}

/* The same for a subscription of any group. */
static inline void batch_append_of(Batch *b, nsec_t time, uint32_t group, uint64_t mask, uint32_t event, uint32_t tid,
                                   size_t length) {
        if (group == 0) {
                batch_append(b, time, mask, event, tid, length);
                return;
        }
        batch_append_uncounted(b, time, mask, event, tid, length);
        b->entries[b->n_entries - 1].place |= BATCH_PLACE(group, 0);
        b->n_grouped++;
}

/* The last item, for another group too, which is above those that have it. */
static inline void batch_share(Batch *b, uint32_t group, uint64_t mask) {
        BatchEntry *e = &b->entries[b->n_entries++];

        *e = e[-1];
        e->mask = mask;
        e->place = BATCH_PLACE(group, entry_offset(e));
        b->n_grouped++;
        b->n_shared++;
}

static inline size_t subscription_set_count_groups(const SubscriptionSet *s) {
        return (size_t)__builtin_popcountll(s->groups);
}

static inline bool batch_has_room_for(const Batch *b, size_t n_entries) {
        return b->n_entries + n_entries <= BATCH_ENTRIES;
}

/* The same of a sample that was begun while batch_has_entry_room(): there always is for all of its entries. */
static inline bool batch_has_room_for_more(const Batch *b, size_t n_entries) {
        return b->n_entries + n_entries <= BATCH_ENTRIES_MAX;
}

/* For the subscriptions of a set, which is not empty, and for each group of which there is room for an entry. */
static inline void batch_append_set(Batch *b, nsec_t time, const SubscriptionSet *set, uint32_t event, uint32_t tid,
                                    size_t length) {
        bool is_first = true;

        FOR_EACH_BIT(group, set->groups) {
                if (is_first)
                        batch_append_of(b, time, (uint32_t)group, set->masks[group], event, tid, length);
                else
                        batch_share(b, (uint32_t)group, set->masks[group]);
                is_first = false;
        }
}

/*
 * Entries that were written behind the last one all have this group and mask, and none is a note: makes them part of the batch,
 * which is used up to `used` now. sorted: they and the one before them are in the order of time.
 */
static inline void batch_extend(Batch *b, size_t n, uint32_t group, uint64_t mask, size_t used, bool sorted) {
        if (n == 0)
                return;
        b->sorted = b->sorted && sorted;
        b->n_entries += n;
        b->used = used;
        if (group == 0)
                batch_count(b, mask, n);
        else
                b->n_grouped += n;
}
