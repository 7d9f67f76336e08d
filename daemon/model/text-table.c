/* Chains in buckets, because texts come and go singly and are looked for rarely: once for each program that starts. */
#include "daemon/model/text-table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

#define FIRST_BUCKETS 64

int text_table_init(TextTable *t) {
        *t = TEXT_TABLE_NULL;
        t->buckets = calloc(FIRST_BUCKETS, sizeof(*t->buckets));
        if (!t->buckets)
                return error_origin(-ENOMEM);
        t->mask = FIRST_BUCKETS - 1;
        return 0;
}

void text_table_deinit(TextTable *t) {
        assert(t->n == 0);
        free(t->buckets);
        *t = TEXT_TABLE_NULL;
}

static uint32_t text_hash(const char *bytes, size_t length) { /* FNV-1a */
        uint32_t hash = 2166136261U;

        for (size_t i = 0; i < length; i++)
                hash = (hash ^ (uint8_t)bytes[i]) * 16777619U;
        return hash;
}

/* Twice as many buckets; without memory the chains become longer instead. */
static void text_table_grow(TextTable *t) {
        uint32_t n = 2 * (t->mask + 1);
        Text **buckets = calloc(n, sizeof(*buckets));

        if (!buckets)
                return;
        for (uint32_t i = 0; i <= t->mask; i++)
                for (Text *text = t->buckets[i], *next; text; text = next) {
                        next = text->next;
                        text->next = buckets[text->hash & (n - 1)];
                        buckets[text->hash & (n - 1)] = text;
                }
        free(t->buckets);
        t->buckets = buckets;
        t->mask = n - 1;
}

int text_table_take(TextTable *t, const char *bytes, size_t length, Text **ret) {
        uint32_t hash = text_hash(bytes, length);
        Text *text;

        for (text = t->buckets[hash & t->mask]; text; text = text->next)
                if (text->hash == hash && text->length == length && memcmp(text->bytes, bytes, length) == 0) {
                        *ret = text_ref(text);
                        return 0;
                }
        text = malloc(sizeof(*text) + length + 1);
        if (!text)
                return error_origin(-ENOMEM);
        if (t->n > t->mask)
                text_table_grow(t);
        *text = (Text){ .next = t->buckets[hash & t->mask], .n_refs = 1, .hash = hash, .length = (uint32_t)length,
                        .serial = ++t->last_serial };
        memcpy(text->bytes, bytes, length);
        text->bytes[length] = '\0';
        t->buckets[hash & t->mask] = text;
        t->n++;
        *ret = text;
        return 0;
}

Text *text_table_give(TextTable *t, Text *text) {
        Text **at;

        if (!text || --text->n_refs > 0)
                return NULL;
        for (at = &t->buckets[text->hash & t->mask]; *at != text; at = &(*at)->next)
                assert(*at);
        *at = text->next;
        free(text);
        t->n--;
        return NULL;
}
