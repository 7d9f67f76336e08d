#include "client/item/layout.h"

#include "proto/item-fields.h"

#define NUMBERS_MAX ((size_t)1 << 14) /* bytes: items with more are not compared but walked */
#define PATTERN_MAX (9 + 5 + 5 + 5 + 5 + 3 + sizeof(uint64_t))

/* The bytes that are the same in each, and which these are. */
typedef struct Pattern {
        uint8_t values[PATTERN_MAX], masks[PATTERN_MAX];
        size_t n;
} Pattern;

static void pattern_put(Pattern *p, uint8_t byte) {
        p->values[p->n] = byte;
        p->masks[p->n++] = UINT8_MAX;
}

static void pattern_put_head(Pattern *p, unsigned field, size_t length) {
        pattern_put(p, WIRE_KEY(field, WIRE_BYTES));
        if (length < 0x80)
                pattern_put(p, (uint8_t)length);
        else {
                pattern_put(p, (uint8_t)(length | 0x80));
                pattern_put(p, (uint8_t)(length >> 7));
        }
}

/* Where its value is. */
static uint8_t pattern_put_value(Pattern *p, unsigned field, unsigned type) {
        uint8_t at;

        pattern_put(p, WIRE_KEY(field, type));
        at = (uint8_t)p->n;
        p->n += type == WIRE_FIXED64 ? 8 : 4;
        return at;
}

static void pattern_put_event(Pattern *p, uint32_t event) {
        pattern_put(p, WIRE_KEY(ITEM_EVENT, WIRE_FIXED32));
        for (int i = 0; i < 4; i++)
                pattern_put(p, (uint8_t)(event >> (8 * i)));
}

/* The bytes behind the pattern are numbers, at least one: a word that begins in the pattern lies in the item. */
static void layout_set_words(ItemLayout *l, const Pattern *p) {
        const size_t wanted[LAYOUT_WORDS] = { 0, LAYOUT_WORD_2, LAYOUT_WORD_3, LAYOUT_WORD_4 };

        for (int i = 0; i < LAYOUT_WORDS; i++) {
                size_t at = wanted[i] < p->n ? wanted[i] : 0; /* the first one again */

                l->at[i] = (uint8_t)at;
                memcpy(&l->values[i], p->values + at, sizeof(uint64_t));
                memcpy(&l->masks[i], p->masks + at, sizeof(uint64_t));
        }
}

bool layout_init(ItemLayout *l, unsigned has, uint32_t event, size_t n_numbers, const uint8_t *item, const uint8_t *end) {
        size_t length = n_numbers * sizeof(uint64_t);
        ItemLayout made = { .event = event, .n_numbers = (uint32_t)n_numbers };
        Pattern p = { .n = 0 };

        if (n_numbers == 0 || length >= NUMBERS_MAX)
                return false;
        made.time = pattern_put_value(&p, ITEM_TIME, WIRE_FIXED64);
        pattern_put_event(&p, event);
        if (has & LAYOUT_HAS_CPU) {
                made.cpu = pattern_put_value(&p, ITEM_CPU, WIRE_FIXED32);
                made.cpu_mask = UINT32_MAX;
        }
        if (has & LAYOUT_HAS_TASK) {
                made.pid = pattern_put_value(&p, ITEM_PID, WIRE_FIXED32);
                made.tid = pattern_put_value(&p, ITEM_TID, WIRE_FIXED32);
                made.task_mask = UINT32_MAX;
        }
        pattern_put_head(&p, ITEM_NUMBERS, length);
        made.numbers = (uint8_t)p.n;
        layout_set_words(&made, &p);
        made.size = p.n + length;
        if (!layout_matches(&made, item, (size_t)(end - item)))
                return false;
        *l = made;
        return true;
}
