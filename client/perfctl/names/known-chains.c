/*
 * A callchain has eight places, so that some that are alike by their hash do not take turns. In which of them it is says a part of the hash, of
 * which those of all eight are in one line of a cache.
 */
#include "client/perfctl/names/known-chains.h"

#include <stdlib.h>
#include <string.h>

#define N_CHAINS ((size_t)1 << 13) /* a power of two */
#define WAYS ((size_t)8)           /* the same */
#define ADDRESSES_MIN 3            /* fewer are found as quickly one by one */
#define FRAMES_MAX 256             /* what is deeper would take much memory */

typedef struct Slot {
        uint64_t hash;
        uint64_t number; /* 0: free */
        uint32_t n_kernel, n_user, pid, generation, kernel_generation, n_frames;
        size_t room;     /* bytes at `frames` */
        NamedFrame *frames;
        uint64_t *addresses; /* behind the frames */
} Slot;

struct KnownChains {
        uint32_t last_number;
        uint32_t parts[N_CHAINS]; /* of the hash of a slot */
        Slot slots[N_CHAINS];
};

KnownChains *known_chains_new(void) {
        return must_have(calloc(1, sizeof(KnownChains)));
}

KnownChains *known_chains_free(KnownChains *k) {
        for (size_t i = 0; k && i < N_CHAINS; i++)
                free(k->slots[i].frames);
        free(k);
        return NULL;
}

bool known_chains_may_keep(const ChainKey *key) {
        return key->n_kernel + key->n_user >= ADDRESSES_MIN && key->n_kernel + key->n_user <= FRAMES_MAX;
}

/* Addresses that were chosen to have the same hash take turns in two places, which is slow, but not wrong. */
static uint64_t hash_of(const ChainKey *key) {
        const uint64_t multiplier = UINT64_C(0x9e3779b97f4a7c15);
        uint64_t hash = key->pid ^ (uint64_t)key->n_kernel << 32;

        for (uint32_t i = 0; i < key->n_kernel; i++)
                hash = (hash ^ hash >> 29 ^ key->kernel[i]) * multiplier;
        for (uint32_t i = 0; i < key->n_user; i++)
                hash = (hash ^ hash >> 29 ^ key->user[i]) * multiplier;
        return hash ^ hash >> 32;
}

static bool is_same(const uint64_t *a, const uint64_t *b, uint32_t n) {
        return n == 0 || memcmp(a, b, n * sizeof(*a)) == 0;
}

static bool is_of(const Slot *slot, const ChainKey *key, uint64_t hash) {
        return slot->number != 0 && slot->hash == hash && slot->pid == key->pid && slot->generation == key->generation &&
               slot->kernel_generation == key->kernel_generation && slot->n_kernel == key->n_kernel && slot->n_user == key->n_user &&
               is_same(slot->addresses, key->kernel, key->n_kernel) && is_same(slot->addresses + key->n_kernel, key->user, key->n_user);
}

static size_t first_way(uint64_t hash) {
        return hash % (N_CHAINS / WAYS) * WAYS;
}

bool known_chains_find(const KnownChains *k, const ChainKey *key, KnownChain *ret) {
        const uint64_t hash = hash_of(key);
        const size_t first = first_way(hash);

        for (size_t i = first; i < first + WAYS; i++) {
                const Slot *slot = &k->slots[i];

                if (k->parts[i] == hash >> 32 && is_of(slot, key, hash)) {
                        *ret = (KnownChain){ .frames = slot->frames, .n = slot->n_frames, .number = slot->number };
                        return true;
                }
        }
        return false;
}

/* The oldest one goes, or none. */
static size_t oldest(const KnownChains *k, size_t first) {
        size_t found = first;

        for (size_t i = first + 1; i < first + WAYS; i++)
                if (k->slots[i].number < k->slots[found].number)
                        found = i;
        return found;
}

uint32_t known_chains_next_number(KnownChains *k) {
        k->last_number += k->last_number == UINT32_MAX ? 2 : 1;
        return k->last_number;
}

static void make_room(Slot *slot, size_t room) {
        if (room <= slot->room)
                return;
        free(slot->frames);
        slot->frames = must_have(malloc(room));
        slot->room = room;
}

uint64_t known_chains_keep(KnownChains *k, const ChainKey *key, const NamedFrame *frames, size_t n) {
        const uint64_t hash = hash_of(key);
        const size_t at = oldest(k, first_way(hash));
        Slot *slot = &k->slots[at];
        const size_t n_addresses = (size_t)key->n_kernel + key->n_user;

        if (n > FRAMES_MAX)
                return 0;
        k->parts[at] = (uint32_t)(hash >> 32);
        make_room(slot, n * sizeof(*frames) + n_addresses * sizeof(uint64_t));
        *slot = (Slot){ .hash = hash, .number = known_chains_next_number(k), .n_kernel = key->n_kernel, .n_user = key->n_user, .pid = key->pid,
                        .generation = key->generation, .kernel_generation = key->kernel_generation, .n_frames = (uint32_t)n, .room = slot->room,
                        .frames = slot->frames, .addresses = (uint64_t *)(void *)(slot->frames + n) };
        memcpy(slot->frames, frames, n * sizeof(*frames));
        if (key->n_kernel > 0)
                memcpy(slot->addresses, key->kernel, key->n_kernel * sizeof(uint64_t));
        if (key->n_user > 0)
                memcpy(slot->addresses + key->n_kernel, key->user, key->n_user * sizeof(uint64_t));
        return slot->number;
}
