/*
 * For the printers of items by plans: what lines have in common besides their event. A thread on its CPU, and what an event says besides its
 * fields, come again and again: their bytes are copied then, and not made. One thread.
 */
#pragma once

#include "client/perfctl/item/plan.h"

#define PIECE_WORDS 6
#define PIECE_ROOM ((size_t)160)   /* what is longer is made each time; a multiple of PLAN_PIECE */
#define KNOWN_HEADS_BITS 6
#define KNOWN_RESTS_BITS 9 /* with functions in them there are more */
#define KNOWN_COMM ((size_t)16)    /* bytes: the kernel's names of threads have at most 15 */

/* What the bytes are made of, and nothing else is in them. */
typedef struct PieceKey {
        uint64_t words[PIECE_WORDS];
} PieceKey;

typedef struct KnownPiece {
        PieceKey key;
        size_t n; /* 0: free */
        char bytes[PIECE_ROOM + PLAN_PIECE];
} KnownPiece;

/* The digits of a time but for its last eight, which are the same for a tenth of a second. */
typedef struct KnownTime {
        uint64_t first; /* of it; 0: none is known */
        size_t n;
        char digits[16];
} KnownTime;

typedef struct KnownPieces {
        KnownPiece heads[1 << KNOWN_HEADS_BITS], rests[1 << KNOWN_RESTS_BITS];
        KnownTime time, wall; /* ns */
} KnownPieces;

#define TIME_LAST UINT64_C(100000000) /* 10^8 */

static inline char *known_time_put(KnownTime *known, char *to, uint64_t nsec) {
        const uint64_t first = nsec / TIME_LAST;

        if (first == 0)
                return decimal_put(to, nsec);
        if (first != known->first) {
                char digits[DECIMAL_ROOM] = "";

                known->first = first;
                known->n = (size_t)(decimal_put(digits, first) - digits);
                memcpy(known->digits, digits, sizeof(known->digits));
        }
        memcpy(to, known->digits, sizeof(known->digits)); /* all of it, which is one instruction */
        digits_put_8(to + known->n, (uint32_t)(nsec % TIME_LAST));
        return to + known->n + 8;
}

/* The only place where a piece may be, of so many bits: by its first words, because an address and its offset in a function change alike. */
static inline size_t known_place(const PieceKey *key, unsigned bits) {
        const uint64_t mixed = key->words[0] ^ key->words[1] ^ key->words[2] ^ key->words[3];

        return mixed * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

static inline KnownPiece *known_head_at(KnownPieces *pieces, const PieceKey *key) {
        return &pieces->heads[known_place(key, KNOWN_HEADS_BITS)];
}

static inline KnownPiece *known_rest_at(KnownPieces *pieces, const PieceKey *key) {
        return &pieces->rests[known_place(key, KNOWN_RESTS_BITS)];
}

static inline bool known_piece_is(const KnownPiece *piece, const PieceKey *key) {
        uint64_t difference = 0;

        for (size_t i = 0; i < PIECE_WORDS; i++)
                difference |= piece->key.words[i] ^ key->words[i];
        return difference == 0 && piece->n > 0;
}

/* What was made of the key stands from `bytes` to `end`. */
static inline void known_piece_keep(KnownPiece *piece, const PieceKey *key, const char *bytes, const char *end) {
        const size_t n = (size_t)(end - bytes);

        if (n > PIECE_ROOM)
                return;
        piece->key = *key;
        piece->n = n;
        memcpy(piece->bytes, bytes, n);
}

/* Of a thread on a CPU. False: its name is too long for a key. */
static inline bool known_head_key(const perfd_plain_sample *s, PieceKey *ret) {
        if (s->comm.length > KNOWN_COMM)
                return false;
        *ret = (PieceKey){ .words = { (uint64_t)s->pid << 32 | s->tid, (uint64_t)s->comm.length << 32 | s->cpu } };
        if (s->comm.length > 0)
                memcpy(&ret->words[2], s->comm.bytes, s->comm.length);
        return true;
}

/* Of what stands behind the fields. */
static inline PieceKey known_rest_key(const perfd_plain_sample *s) {
        return (PieceKey){ .words = { s->sample_id, s->ip, s->address, s->period, s->stream_id } };
}

/* The same of a sample without an address, whose place has a name. */
static inline PieceKey known_place_key(const perfd_plain_sample *s, const NamedFrame *place) {
        return (PieceKey){ .words = { s->sample_id, s->ip, s->stream_id, s->period, place->offset, (uintptr_t)place->name } };
}
