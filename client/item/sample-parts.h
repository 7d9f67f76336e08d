/* For items: the rare parts of samples, fields 40 and up of an item, and the counters that a READ record has too. */
#pragma once

#include "client/item/list.h"
#include "client/perfd.h"
#include "client/wire/wire.h"

/* The rare parts of samples: each is valid if its bit is in `has`. Lists are used again for the next item. */
typedef struct ItemParts {
        uint64_t has; /* 1 << (field - ITEM_READ_VALUES) */
        perfd_read_value *reads; /* of a READ record too */
        size_t n_reads, reads_room;
        perfd_branch *branches;
        size_t n_branches, branches_room;
        perfd_registers user_registers, interrupt_registers;
        Numbers user_values, interrupt_values;
        perfd_text user_stack, aux_bytes;
        perfd_weight weight;
        perfd_data_source data_source;
        perfd_transaction transaction;
        uint64_t branch_hw_index, physical_address, cgroup_id, data_page_size, code_page_size, id, stream_id, zero_tid;
} ItemParts;

/* If the field is such a part: reads it. Other fields are skipped. -ENOMEM, PERFD_E_PROTOCOL. */
int parts_decode(ItemParts *parts, const WireField *field);
/* A message ReadValues, whose values become `reads`. -ENOMEM, PERFD_E_PROTOCOL. */
int parts_decode_reads(ItemParts *parts, const WireField *field);
void parts_deinit(ItemParts *parts);
