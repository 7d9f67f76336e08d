/*
 * Callchains repeat themselves more than their frames do: of ten million samples some thousand differ. What the frames of a whole one are stays in a
 * table of fixed size, so that one look finds all of them. One thread.
 */
#pragma once

#include "client/perfctl/names/frame-names.h"

/* What frames depend on. */
typedef struct ChainKey {
        const uint64_t *kernel, *user; /* addresses */
        uint32_t n_kernel, n_user;
        uint32_t pid, generation, kernel_generation; /* of the memory of either */
} ChainKey;

typedef struct KnownChain {
        const NamedFrame *frames;
        size_t n;
        uint64_t number; /* no other one has it, as long as the table lives, unless 2^32 came between: 1 or more */
} KnownChain;

typedef struct KnownChains KnownChains;

KnownChains *known_chains_new(void);
/* NULL. */
KnownChains *known_chains_free(KnownChains *k);
/* Whether such a callchain is worth a place here. */
bool known_chains_may_keep(const ChainKey *key);
/* Until the next known_chains_keep(). False: it is not there. */
bool known_chains_find(const KnownChains *k, const ChainKey *key, KnownChain *ret);
/* For frames that are kept elsewhere: a number that no callchain has. */
uint32_t known_chains_next_number(KnownChains *k);
/* Frames are copied. Returns its number; 0: it was not kept, as so many were inlined. */
uint64_t known_chains_keep(KnownChains *k, const ChainKey *key, const NamedFrame *frames, size_t n);
