/* For item.c: the rare parts of samples, fields 40 and up of an item, and the counters that a READ record has too. */
#pragma once

#include "client/item.h"
#include "client/wire.h"

/* If the field is such a part: reads it. Other fields are skipped. -ENOMEM, PERFD_E_PROTOCOL. */
int parts_decode(ItemParts *parts, const WireField *field);
/* A message ReadValues, whose values become `reads`. -ENOMEM, PERFD_E_PROTOCOL. */
int parts_decode_reads(ItemParts *parts, const WireField *field);
void parts_deinit(ItemParts *parts);
