/* A list of texts, as owned copies. One owner, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct Strings {
        char **items;
        size_t n;
} Strings;

#define STRINGS_NULL ((Strings){ .items = NULL })

void strings_deinit(Strings *s);
/* Appends a copy. -ENOMEM: unchanged. */
int strings_add(Strings *s, const char *text);
/* Copies into a null image. -ENOMEM: it remains one. */
int strings_copy(char *const *items, size_t n, Strings *ret);
/* Whether both have the same texts in the same order. */
bool strings_equal(const Strings *a, const Strings *b);
