/*
 * A million samples a second are looked up here: open addressing, keys compared by their bytes. What is traced chooses the keys, so
 * that the hash has a seed which it does not know.
 */
#include "client/perfctl/count/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "client/perfctl/base/perfctl.h"

#define PLACES_MIN ((size_t)256)

size_t histogram_bucket(uint64_t number, bool is_signed) {
        if (is_signed && (int64_t)number < 0)
                return HISTOGRAM_NEGATIVE;
        return number == 0 ? 1 : (size_t)(65 - __builtin_clzll(number));
}

uint64_t histogram_from(size_t bucket) {
        return bucket < 2 ? 0 : UINT64_C(1) << (bucket - 2);
}

uint64_t histogram_to(size_t bucket) {
        return bucket < HISTOGRAM_BUCKETS - 1 ? UINT64_C(1) << (bucket - 1) : 0;
}

static uint64_t hash_of(const CountMap *m, const uint8_t *key, size_t length) {
        uint64_t hash = m->seed ^ length, word;

        for (size_t i = 0; i < length; i += sizeof(word)) {
                memcpy(&word, key + i, sizeof(word));
                hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
                hash ^= hash >> 32;
        }
        return hash;
}

/* Where the key is, or would be. */
static uint32_t *place_of(const CountMap *m, uint64_t hash, const uint8_t *key, size_t length) {
        size_t mask = m->n_places - 1, i = hash & mask;

        for (; m->places[i]; i = (i + 1) & mask) {
                const CountEntry *e = &m->entries[m->places[i] - 1];

                if (e->hash == hash && e->length == length && memcmp(m->bytes + e->key, key, length) == 0)
                        break;
        }
        return &m->places[i];
}

/* At most half of the places are taken. */
static void grow_places(CountMap *m) {
        size_t n = m->n_places ? 2 * m->n_places : PLACES_MIN;

        free(m->places);
        m->places = must_have(calloc(n, sizeof(*m->places)));
        m->n_places = n;
        for (size_t i = 0; i < m->n; i++) {
                size_t at = m->entries[i].hash & (n - 1);

                while (m->places[at])
                        at = (at + 1) & (n - 1);
                m->places[at] = (uint32_t)i + 1;
        }
}

static void reserve(CountMap *m, size_t length) {
        if (m->n == m->room) {
                m->room = m->room ? 2 * m->room : 64;
                m->entries = must_have(reallocarray(m->entries, m->room, sizeof(*m->entries)));
                if (m->has_histograms)
                        m->histograms = must_have(reallocarray(m->histograms, m->room, HISTOGRAM_BUCKETS * sizeof(*m->histograms)));
                if (m->n_numbers > 0)
                        m->numbers = must_have(reallocarray(m->numbers, m->room, m->n_numbers * sizeof(*m->numbers)));
        }
        if (m->bytes_room - m->n_bytes < length) {
                m->bytes_room = 2 * m->bytes_room + length;
                m->bytes = must_have(realloc(m->bytes, m->bytes_room));
        }
}

uint64_t *count_map_histogram(CountMap *m, size_t entry) {
        if (!m->has_histograms)
                return NULL;
        return entry == COUNT_OTHERS ? m->others_histogram : m->histograms + entry * HISTOGRAM_BUCKETS;
}

CountNumber *count_map_numbers(CountMap *m, size_t entry) {
        if (m->n_numbers == 0)
                return NULL;
        return entry == COUNT_OTHERS ? m->others_numbers : m->numbers + entry * m->n_numbers;
}

static size_t add_entry(CountMap *m, uint64_t hash, const uint8_t *key, size_t length) {
        size_t i = m->n;

        if (m->n == COUNT_KEYS_MAX || length > COUNT_BYTES_MAX - m->n_bytes) {
                m->n_others++;
                return COUNT_OTHERS;
        }
        reserve(m, length);
        memcpy(m->bytes + m->n_bytes, key, length);
        m->entries[i] = (CountEntry){ .hash = hash, .n = 1, .key = m->n_bytes, .length = length };
        m->n_bytes += length;
        m->n++;
        if (2 * m->n > m->n_places)
                grow_places(m);
        else
                *place_of(m, hash, key, length) = (uint32_t)i + 1;
        if (m->has_histograms)
                memset(count_map_histogram(m, i), 0, HISTOGRAM_BUCKETS * sizeof(*m->histograms));
        if (m->n_numbers > 0)
                memset(count_map_numbers(m, i), 0, m->n_numbers * sizeof(*m->numbers));
        return i;
}

size_t count_map_add(CountMap *m, const uint8_t *key, size_t length) {
        uint64_t hash = hash_of(m, key, length);
        uint32_t place = m->n_places ? *place_of(m, hash, key, length) : 0;

        m->total++;
        if (!place)
                return add_entry(m, hash, key, length);
        m->entries[place - 1].n++;
        return place - 1;
}

void count_map_init(CountMap *m, bool has_histograms, size_t n_numbers) {
        *m = (CountMap){ .has_histograms = has_histograms, .n_numbers = n_numbers };
        if (getrandom(&m->seed, sizeof(m->seed), GRND_NONBLOCK) != (ssize_t)sizeof(m->seed))
                m->seed = (uint64_t)time(NULL);
}

void count_map_reset(CountMap *m) {
        if (m->n > 0)
                memset(m->places, 0, m->n_places * sizeof(*m->places));
        m->n = m->n_bytes = 0;
        m->total = m->n_others = 0;
        memset(m->others_histogram, 0, sizeof(m->others_histogram));
        memset(m->others_numbers, 0, sizeof(m->others_numbers));
}

void count_map_deinit(CountMap *m) {
        free(m->places);
        free(m->entries);
        free(m->histograms);
        free(m->numbers);
        free(m->bytes);
        *m = (CountMap){ .places = NULL };
}
