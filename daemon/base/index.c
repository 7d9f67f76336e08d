/*
 * Open addressing with linear probing; what is removed leaves no mark behind, because those that follow move up. Names are
 * hashed by SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF") with a key of this process: whoever could
 * choose names of equal hashes would make all lookups walks.
 */
#include "daemon/base/index.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/error-trail.h"

#define LEAST_SLOTS 16

static uint64_t secret[2];
static pthread_once_t has_secret = PTHREAD_ONCE_INIT;

static void make_secret(void) {
        if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) == sizeof(secret))
                return;
        secret[0] = clock_now(CLOCK_MONOTONIC); /* so early after the boot that there is nothing better */
        secret[1] = clock_now(CLOCK_REALTIME);
}

static inline uint64_t rotate(uint64_t x, unsigned by) {
        return x << by | x >> (64 - by);
}

typedef struct Sip {
        uint64_t a, b, c, d;
} Sip;

static inline void sip_round(Sip *s) {
        s->a += s->b;
        s->b = rotate(s->b, 13) ^ s->a;
        s->a = rotate(s->a, 32);
        s->c += s->d;
        s->d = rotate(s->d, 16) ^ s->c;
        s->a += s->d;
        s->d = rotate(s->d, 21) ^ s->a;
        s->c += s->b;
        s->b = rotate(s->b, 17) ^ s->c;
        s->c = rotate(s->c, 32);
}

static inline void sip_word(Sip *s, uint64_t word) {
        s->d ^= word;
        sip_round(s);
        sip_round(s);
        s->a ^= word;
}

static uint64_t sip_hash(const uint8_t *bytes, size_t n, uint64_t k0, uint64_t k1) {
        Sip s = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573 };
        uint64_t word = 0;

        for (size_t i = 0; i < n; i++) {
                word |= (uint64_t)bytes[i] << 8 * (i % 8);
                if (i % 8 == 7) {
                        sip_word(&s, word);
                        word = 0;
                }
        }
        sip_word(&s, word | (uint64_t)n << 56);
        s.c ^= 0xff;
        for (int i = 0; i < 4; i++)
                sip_round(&s);
        return s.a ^ s.b ^ s.c ^ s.d;
}

uint64_t index_key_of_name(const char *name) {
        pthread_once(&has_secret, make_secret);
        return sip_hash((const uint8_t *)name, strlen(name), secret[0], secret[1]);
}

void index_deinit(Index *i) {
        free(i->slots);
        *i = INDEX_NULL;
}

/* Where a key is looked for first: numbers that follow one another are spread too. */
static size_t home_of(const Index *i, uint64_t key) {
        return (size_t)(key * 0x9e3779b97f4a7c15 >> 32) & (i->n_slots - 1);
}

static void put(Index *i, uint64_t key, void *value) {
        size_t at = home_of(i, key);

        while (i->slots[at].value)
                at = (at + 1) & (i->n_slots - 1);
        i->slots[at] = (IndexSlot){ .key = key, .value = value };
}

int index_reserve(Index *i, size_t n_more) {
        Index more = { .n = i->n, .n_slots = i->n_slots ? i->n_slots : LEAST_SLOTS };

        while (more.n_slots / 2 < i->n + n_more)
                more.n_slots *= 2;
        if (more.n_slots == i->n_slots)
                return 0;
        more.slots = calloc(more.n_slots, sizeof(*more.slots));
        if (!more.slots)
                return error_origin(-ENOMEM);
        for (size_t k = 0; k < i->n_slots; k++)
                if (i->slots[k].value)
                        put(&more, i->slots[k].key, i->slots[k].value);
        index_deinit(i);
        *i = more;
        return 0;
}

void index_add(Index *i, uint64_t key, void *value) {
        assert(value && i->n < i->n_slots / 2);
        put(i, key, value);
        i->n++;
}

/* Those behind it, up to the next empty slot, are found as before: each that may stand here moves here. */
static void close_hole(Index *i, size_t hole) {
        const size_t mask = i->n_slots - 1;

        for (size_t at = (hole + 1) & mask; i->slots[at].value; at = (at + 1) & mask) {
                size_t home = home_of(i, i->slots[at].key);

                if (((at - home) & mask) < ((at - hole) & mask))
                        continue;
                i->slots[hole] = i->slots[at];
                hole = at;
        }
        i->slots[hole].value = NULL;
}

void index_remove(Index *i, uint64_t key, const void *value) {
        size_t at = home_of(i, key);

        while (i->slots[at].value != value) {
                assert(i->slots[at].value);
                at = (at + 1) & (i->n_slots - 1);
        }
        close_hole(i, at);
        i->n--;
}

void *index_next(const Index *i, uint64_t key, size_t *at) {
        if (i->n_slots == 0)
                return NULL;
        for (;; ++*at) {
                const IndexSlot *slot = &i->slots[(home_of(i, key) + *at) & (i->n_slots - 1)];

                if (!slot->value)
                        return NULL;
                if (slot->key == key) {
                        ++*at;
                        return slot->value;
                }
        }
}
