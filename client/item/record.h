/* For decode.c: the side records, which are one message inside of an item. */
#pragma once

#include "client/item/item.h"
#include "client/wire/wire.h"

/* If the field is a side record: reads it. Other fields are skipped. -ENOMEM, PERFD_E_PROTOCOL. */
int record_decode(struct perfd_item *item, const WireField *field);
