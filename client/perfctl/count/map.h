/* For `count`: how often each key came, and how its numbers are distributed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/count/number.h"

#define COUNT_KEYS_MAX ((size_t)65536)
#define COUNT_BYTES_MAX ((size_t)64 << 20) /* of all keys: texts can be long */

/* By powers of two: below 0, 0, 1, [2, 4), [4, 8), ... */
#define HISTOGRAM_NEGATIVE 0
#define HISTOGRAM_BUCKETS 66

size_t histogram_bucket(uint64_t number, bool is_signed);
/* Where a bucket begins and ends, of those that are not HISTOGRAM_NEGATIVE; the end of the last one is 0. */
uint64_t histogram_from(size_t bucket);
uint64_t histogram_to(size_t bucket);

typedef struct CountEntry {
        uint64_t hash, n;
        size_t key; /* where it begins in `bytes` */
        size_t length;
} CountEntry;

typedef struct CountMap {
        bool has_histograms;
        size_t n_numbers; /* of each entry */
        uint64_t seed;
        uint32_t *places; /* by hash: 1 + the number of an entry, 0: free */
        size_t n_places;  /* a power of two */
        CountEntry *entries;
        uint64_t *histograms; /* of each entry HISTOGRAM_BUCKETS numbers */
        CountNumber *numbers; /* of each entry n_numbers */
        size_t n, room;
        uint8_t *bytes; /* of keys, each at a multiple of 8 */
        size_t n_bytes, bytes_room;
        uint64_t total;
        uint64_t n_others; /* of keys for which there is no room */
        uint64_t others_histogram[HISTOGRAM_BUCKETS];
        CountNumber others_numbers[_COUNT_FUNCTION_MAX];
} CountMap;

#define COUNT_OTHERS SIZE_MAX

void count_map_init(CountMap *m, bool has_histograms, size_t n_numbers);
void count_map_deinit(CountMap *m);
/* Counts one of this key, whose length is a multiple of 8. The number of its entry, or COUNT_OTHERS. */
size_t count_map_add(CountMap *m, const uint8_t *key, size_t length);
/* Of an entry, or of COUNT_OTHERS; NULL: there are none. */
uint64_t *count_map_histogram(CountMap *m, size_t entry);
CountNumber *count_map_numbers(CountMap *m, size_t entry);
/* Forgets all. */
void count_map_reset(CountMap *m);
