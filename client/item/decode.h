/*
 * For streams: one item in its wire bytes. Nothing is read before somebody asks; then it is seen where everything lies, once.
 * Numbers and texts stay where they are, until one of them is asked for; what is decoded goes into arrays that the next item
 * uses again, so that an item costs no allocation.
 */
#pragma once

#include "client/item/item.h"

/* The item is these bytes of an Item message, which stay as long as it is looked at. */
static inline void item_set(struct perfd_item *item, const uint8_t *bytes, const uint8_t *end) {
        item->bytes = bytes;
        item->end = end;
        item->state = ITEM_SET;
        item->places = NULL;
}

/*
 * Sees where everything in it lies. ITEM_WRONG: -ENOMEM; PERFD_E_PROTOCOL if the bytes are no Item, no descriptor came for it, or
 * its values are not those that the descriptor says: then it is PERFD_UNKNOWN, of no event, without anything in it.
 */
void item_index(struct perfd_item *item);

/* Accessors change nothing that can be seen. */
static inline struct perfd_item *item_indexed(const perfd_item *asked) {
        struct perfd_item *item = (struct perfd_item *)(uintptr_t)asked;

        if (__builtin_expect(item->state == ITEM_SET, 0))
                item_index(item);
        return item;
}

/* The same, and item->parts are decoded. */
void item_decode_parts(struct perfd_item *item);
static inline struct perfd_item *item_with_parts(const perfd_item *asked) {
        struct perfd_item *item = item_indexed(asked);

        if (__builtin_expect(item->has_parts, 0))
                item_decode_parts(item);
        return item;
}

/* From now on it shows nothing, and the stream fails when nobody looks at it any more. */
void item_fail(struct perfd_item *item, int error);
/* The layout of an item, among those of its event; it is the stream's last one from now on. NULL: none is known. */
const ItemLayout *layouts_find(Descriptors *d, const uint8_t *item, const uint8_t *end);
/* That of a sample which has none yet, so that the next one of its kind need not be walked. */
void layouts_learn(Descriptors *d, uint32_t event, uint32_t cpu, uint32_t tid, const uint8_t *item, const uint8_t *end);
void item_deinit(struct perfd_item *item);
