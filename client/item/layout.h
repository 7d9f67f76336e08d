/*
 * For the index of items: where everything lies in those of an event that are alike but for their values, because it has no
 * lists of their own length. Learned from one of them; the next ones are compared with it, and not walked:
 *
 *     | time 9 | event 5 | cpu 5 | pid 5 | tid 5 | numbers 1 | length 1-2 | 8 for each | texts, and what few items have
 *
 * cpu, and pid with tid, are left out where they are 0: an event has up to four layouts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/wire/wire.h"

#define LAYOUT_WORDS 4
#define LAYOUTS 4 /* LAYOUT_HAS_CPU | LAYOUT_HAS_TASK */

enum {
        LAYOUT_HAS_CPU = 1,
        LAYOUT_HAS_TASK = 2,
};

/* Where it is in a layout that leaves nothing out; the time and the second word in all of them. */
enum {
        LAYOUT_TIME = 1,
        LAYOUT_CPU = 15,
        LAYOUT_PID = 20,
        LAYOUT_TID = 25,
        LAYOUT_WORD_2 = 9,
        LAYOUT_WORD_3 = 19,
        LAYOUT_WORD_4 = 29,
};

typedef struct ItemLayout {
        size_t size;  /* bytes up to the last number; 0: not known yet */
        size_t whole; /* the same, if nothing follows in any item of this event; else SIZE_MAX */
        uint32_t n_numbers;
        uint32_t cpu_mask, task_mask;  /* 0: it is left out */
        uint32_t event;
        uint8_t time, cpu, pid, tid, numbers;  /* where each begins; of what is left out, anywhere */
        uint8_t at[LAYOUT_WORDS];      /* of the words that have all tags and lengths, and the event; the first at 0 */
        uint64_t values[LAYOUT_WORDS], masks[LAYOUT_WORDS];
        struct Descriptor *descriptor;
} ItemLayout;

static inline uint64_t layout_load(const uint8_t *at) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        return word;
}

/* Of an item of which so many bytes are there. */
static inline bool layout_has(const ItemLayout *l, const uint8_t *item) {
        uint64_t a = (layout_load(item) ^ l->values[0]) & l->masks[0];
        uint64_t b = (layout_load(item + l->at[1]) ^ l->values[1]) & l->masks[1];
        uint64_t c = (layout_load(item + l->at[2]) ^ l->values[2]) & l->masks[2];
        uint64_t d = (layout_load(item + l->at[3]) ^ l->values[3]) & l->masks[3];

        return (a | b | c | d) == 0;
}

static inline bool layout_matches(const ItemLayout *l, const uint8_t *item, size_t size) {
        return l->size > 0 && size >= l->size && layout_has(l, item);
}

/* That of an item of this event with n_numbers, if it has a layout, and its bytes are as it says. */
bool layout_init(ItemLayout *l, unsigned has, uint32_t event, size_t n_numbers, const uint8_t *item, const uint8_t *end);
