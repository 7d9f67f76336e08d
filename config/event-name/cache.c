/*
 * Cache events: NAME[-OP][-RESULT], each word with perf's aliases, letters of either case as in perf. A word is the
 * longest of its table that fits, because "branch" begins "branches" and some have a '-' in them. Without OP it is a
 * load, without RESULT every access counts.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

#define WORDS_MAX 6

typedef struct CacheWord {
        const char *words[WORDS_MAX]; /* [0] is how perf list writes it */
} CacheWord;

static const CacheWord caches[PERF_COUNT_HW_CACHE_MAX] = {
#define CACHE(number, operations, ...) [number] = { { __VA_ARGS__ } },
#include "proto/event-numbers.def"
};

static const CacheWord ops[PERF_COUNT_HW_CACHE_OP_MAX] = {
#define CACHE_OP(number, ...) [number] = { { __VA_ARGS__ } },
#include "proto/event-numbers.def"
};

static const CacheWord results[PERF_COUNT_HW_CACHE_RESULT_MAX] = {
#define CACHE_RESULT(number, ...) [number] = { { __VA_ARGS__ } },
#include "proto/event-numbers.def"
};

/* Which operations a cache has at all, a bit for each of PERF_COUNT_HW_CACHE_OP_ */
static const unsigned allowed[PERF_COUNT_HW_CACHE_MAX] = {
#define CACHE(number, operations, ...) [number] = (operations),
#include "proto/event-numbers.def"
};

/* The longest word of the table that text begins with and that ends there or before a '-'. 0: none. */
static size_t word_match(const CacheWord *table, size_t n, const char *text, size_t length, unsigned *ret) {
        size_t longest = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < WORDS_MAX && table[i].words[k]; k++) {
                        size_t l = strlen(table[i].words[k]);

                        if (l <= longest || l > length || strncasecmp(table[i].words[k], text, l) != 0)
                                continue;
                        if (l < length && text[l] != '-')
                                continue;
                        longest = l;
                        *ret = (unsigned)i;
                }
        return longest;
}

bool event_claims_cache(const char *text) {
        unsigned cache;

        return word_match(caches, ARRAY_SIZE(caches), text, strcspn(text, ":"), &cache) > 0;
}

static uint64_t cache_config(unsigned cache, unsigned op, unsigned result) {
        return cache | (uint64_t)op << 8 | (uint64_t)result << 16;
}

static int refuse_word_at(Explanation *e, const char *text, size_t from, size_t end) {
        const char *words[] = { "loads", "stores", "prefetches", "load-misses", "store-misses", "prefetch-misses",
                                "refs", "misses" };
        Nearest near = NEAREST_NULL;
        char rest[EVENT_NAME_MAX + 1];

        memcpy(rest, text + from, end - from);
        rest[end - from] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                nearest_add(&near, rest, words[i]);
        return event_refuse_at(e, text, from, "expected at most one of loads, stores, prefetches, and one of refs, "
                               "misses, such as L1-dcache-load-misses%s", HINT(&near));
}

int event_parse_cache(const char *text, EventName *ret, Explanation *e) {
        size_t end = strcspn(text, ":"), at, op_at = 0;
        unsigned cache = 0, op = PERF_COUNT_HW_CACHE_OP_READ, result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
        bool has_op = false, has_result = false;

        at = word_match(caches, ARRAY_SIZE(caches), text, end, &cache);
        while (at < end) {
                size_t from = at + 1, n = 0; /* behind the '-' */

                if (!has_op && (n = word_match(ops, ARRAY_SIZE(ops), text + from, end - from, &op)) > 0) {
                        has_op = true;
                        op_at = from;
                } else if (!has_result && (n = word_match(results, ARRAY_SIZE(results), text + from, end - from,
                                                          &result)) > 0) {
                        has_result = true;
                } else {
                        return refuse_word_at(e, text, from, end);
                }
                at = from + n;
        }
        if (!(allowed[cache] & 1u << op))
                return event_refuse_at(e, text, op_at, "%s has no %s events", caches[cache].words[0], ops[op].words[0]);
        ret->kind = EVENT_NAME_CACHE;
        ret->config = cache_config(cache, op, result);
        return text[end] ? event_modifiers_parse(text, end + 1, &ret->modifiers, e) : 0;
}

bool cache_event(size_t i, char buffer[static 64], uint64_t *ret_config) {
        for (unsigned cache = 0; cache < PERF_COUNT_HW_CACHE_MAX; cache++)
                for (unsigned op = 0; op < PERF_COUNT_HW_CACHE_OP_MAX; op++)
                        for (unsigned result = 0; result < PERF_COUNT_HW_CACHE_RESULT_MAX; result++) {
                                if (!(allowed[cache] & 1u << op) || i-- > 0)
                                        continue;
                                if (result == PERF_COUNT_HW_CACHE_RESULT_ACCESS)
                                        (void)snprintf(buffer, 64, "%s-%s", caches[cache].words[0], ops[op].words[1]);
                                else
                                        (void)snprintf(buffer, 64, "%s-%s-%s", caches[cache].words[0], ops[op].words[0],
                                                       results[result].words[0]);
                                *ret_config = cache_config(cache, op, result);
                                return true;
                        }
        return false;
}

void event_cache_near(Nearest *near, const char *word, char buffer[static 64]) {
        char name[64];
        uint64_t config;

        for (size_t i = 0; cache_event(i, name, &config); i++) {
                Nearest before = *near;

                nearest_add(near, word, name);
                if (near->word == name) {
                        memcpy(buffer, name, sizeof(name));
                        near->word = buffer;
                } else {
                        *near = before;
                }
        }
}
