/*
 * For tables of tasks: texts that many of them share, each kept once: paths of programs and of cgroups. Dispatcher thread
 * only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Text {
        struct Text *next; /* in its bucket */
        uint32_t n_refs, hash;
        uint32_t length;
        uint64_t serial; /* that no other text of the table has, or had; not 0 */
        char bytes[]; /* terminated, and may hold zeros before */
} Text;

typedef struct TextTable {
        Text **buckets;
        uint32_t n, mask;
        uint64_t last_serial;
} TextTable;

#define TEXT_TABLE_NULL ((TextTable){ .buckets = NULL })

/* -ENOMEM */
int text_table_init(TextTable *t);
/* All references were given back. */
void text_table_deinit(TextTable *t);
/* A reference to the one with these bytes. -ENOMEM */
int text_table_take(TextTable *t, const char *bytes, size_t length, Text **ret);
/* Gives a reference back; takes NULL, gives NULL. */
Text *text_table_give(TextTable *t, Text *text);

/* Takes NULL. */
static inline Text *text_ref(Text *text) {
        if (text)
                text->n_refs++;
        return text;
}
