/* For "did you mean": which of many words is nearest to what was typed. */
#pragma once

#include <stddef.h>

typedef struct Near {
        const char *word;
        const char *best; /* NULL if nothing is near enough */
        size_t distance;
} Near;

static inline Near near_of(const char *word) {
        return (Near){ .word = word };
}

/* The candidate stays the caller's, as long as `best` is looked at. */
void near_add(Near *n, const char *candidate);
