/*
 * For streams: one item out of its wire bytes. The direct way: texts stay where they are, numbers go into arrays that
 * the next item uses again, so that an item costs no allocation.
 */
#pragma once

#include "client/item/item.h"

/*
 * Reads an Item message, which has to stay as long as the item is looked at. -ENOMEM; PERFD_E_PROTOCOL if the bytes are
 * no Item, no descriptor came for it, or its values are not those that the descriptor says.
 */
int item_decode(struct perfd_item *item, Descriptors *descriptors, const uint8_t *bytes, size_t length);
void item_deinit(struct perfd_item *item);
