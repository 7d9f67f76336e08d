/*
 * The text on the right of ==, != and ~: characters, `?`, `*` and sets, as units; and compiled, so that matching takes
 * time linear in the text. A zero byte ends a text, so nothing in a pattern matches one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"

enum {
        UNIT_STAR = 256, /* below: the byte itself; never two stars in a row */
        UNIT_ANY,
        UNIT_SET, /* + index into sets */
};

/* What stands between two stars and is not plain characters is tried at every place of the text: that bounds it. */
#define PATTERN_MAX_SEARCHED 64

typedef struct PatternSet {
        uint64_t bits[4]; /* bit b: byte b is in the set; never 0 */
} PatternSet;

static inline bool pattern_set_has(const PatternSet *s, uint8_t byte) {
        return s->bits[byte / 64] >> (byte % 64) & 1;
}

/* What stands between two stars, or before the first, or behind the last. */
typedef struct PatternPart {
        uint32_t begin, length;
        bool plain; /* bytes[begin..] alone say it */
} PatternPart;

typedef struct Pattern {
        uint32_t n_parts; /* stars + 1 */
        uint32_t min_length;
        const PatternSet *sets;
        const PatternPart *parts;
        const uint16_t *units;
        const uint8_t *bytes;
} Pattern;

/* Takes copies, in one block. NULL: no memory. */
Pattern *pattern_new(const uint16_t *units, uint32_t n_units, const PatternSet *sets);
Pattern *pattern_free(Pattern *p);
DEFINE_CLEANUP(Pattern *, pattern_free)

/* Plain characters, and nothing else or just a * behind them. */
static inline bool pattern_is_plain(const Pattern *p) {
        return p->parts[0].plain && p->n_parts == 1;
}
static inline bool pattern_is_prefix(const Pattern *p) {
        return p->parts[0].plain && p->n_parts == 2 && p->parts[1].length == 0;
}

/* The text is what stands before the first zero of these bytes, or all of them. */
bool pattern_match(const Pattern *p, const uint8_t *text, size_t size);
