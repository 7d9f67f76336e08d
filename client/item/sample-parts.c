/* The parts of a sample that few events have. Lists keep their memory from item to item, so that none allocates. */
#include "client/item/sample-parts.h"

#include <errno.h>
#include <stdlib.h>

#include "client/wire/message.h"
#include "proto/item-fields.h"

int parts_decode_reads(ItemParts *parts, const WireField *field) {
        static const Member members[] = {
                NUMBER(perfd_read_value, value),
                NUMBER(perfd_read_value, enabled),
                NUMBER(perfd_read_value, running),
                NUMBER(perfd_read_value, lost),
        };
        Wire w = wire_of(field->bytes, field->length);
        WireField f = { .key = 0 };
        int r = 0;

        parts->n_reads = 0;
        while (r == 0 && wire_next(&w, &f)) {
                if (f.key != WIRE_KEY(1, WIRE_BYTES))
                        continue;
                if (list_reserve(&parts->reads, &parts->reads_room, parts->n_reads, sizeof(*parts->reads)) < 0)
                        return -ENOMEM;
                parts->reads[parts->n_reads] = (perfd_read_value){ .value = 0 };
                r = MESSAGE_DECODE(&f, members, &parts->reads[parts->n_reads++]);
        }
        return w.malformed ? PERFD_E_PROTOCOL : r;
}

static int add_branch(ItemParts *parts, const WireField *field) {
        static const Member members[] = {
                WORD(perfd_branch, from),
                WORD(perfd_branch, to),
                NUMBER(perfd_branch, mispredicted),
                NUMBER(perfd_branch, predicted),
                NUMBER(perfd_branch, in_transaction),
                NUMBER(perfd_branch, abort),
                NUMBER(perfd_branch, cycles),
                NUMBER(perfd_branch, type),
                NUMBER(perfd_branch, spec),
                NUMBER(perfd_branch, new_type),
                NUMBER(perfd_branch, privilege),
                NUMBER(perfd_branch, counters),
        };

        if (list_reserve(&parts->branches, &parts->branches_room, parts->n_branches, sizeof(*parts->branches)) < 0)
                return -ENOMEM;
        parts->branches[parts->n_branches] = (perfd_branch){ .from = 0 };
        return MESSAGE_DECODE(field, members, &parts->branches[parts->n_branches++]);
}

/* As many values as the mask has bits, or none with an abi of 0: whoever looks may rely on it. */
static int decode_registers(perfd_registers *registers, Numbers *values, const WireField *field) {
        Wire w = wire_of(field->bytes, field->length);
        WireField f = { .key = 0 };
        int r = 0;

        *registers = (perfd_registers){ .abi = 0 };
        values->n = 0;
        while (r == 0 && wire_next(&w, &f)) {
                switch (f.key) {
                case WIRE_KEY(1, WIRE_VARINT):
                        registers->abi = (uint32_t)f.number;
                        break;
                case WIRE_KEY(2, WIRE_FIXED64):
                        registers->mask = f.number;
                        break;
                case WIRE_KEY(3, WIRE_BYTES):
                        r = numbers_add_packed_fixed(values, f.bytes, f.length);
                        break;
                case WIRE_KEY(3, WIRE_FIXED64):
                        r = numbers_add(values, f.number);
                        break;
                case WIRE_KEY(4, WIRE_VARINT):
                        registers->machine = (uint32_t)f.number;
                        break;
                }
        }
        if (r != 0)
                return r;
        registers->values = values->list;
        registers->n_values = values->n;
        if (w.malformed || values->n != (registers->abi ? (size_t)__builtin_popcountll(registers->mask) : 0))
                return PERFD_E_PROTOCOL;
        return 0;
}

static int decode_weight(perfd_weight *weight, const WireField *field) {
        static const Member members[] = {
                NUMBER(perfd_weight, full),
                NUMBER(perfd_weight, var1),
                NUMBER(perfd_weight, var2),
                NUMBER(perfd_weight, var3),
        };

        *weight = (perfd_weight){ .full = 0 };
        return MESSAGE_DECODE(field, members, weight);
}

static int decode_data_source(perfd_data_source *source, const WireField *field) {
        static const Member members[] = {
                WORD(perfd_data_source, raw),
                NUMBER(perfd_data_source, op),
                NUMBER(perfd_data_source, level),
                NUMBER(perfd_data_source, snoop),
                NUMBER(perfd_data_source, lock),
                NUMBER(perfd_data_source, dtlb),
                NUMBER(perfd_data_source, level_number),
                NUMBER(perfd_data_source, remote),
                NUMBER(perfd_data_source, snoop_extra),
                NUMBER(perfd_data_source, blocked),
                NUMBER(perfd_data_source, hops),
        };

        *source = (perfd_data_source){ .raw = 0 };
        return MESSAGE_DECODE(field, members, source);
}

static int decode_transaction(perfd_transaction *transaction, const WireField *field) {
        static const Member members[] = {
                NUMBER(perfd_transaction, flags),
                NUMBER(perfd_transaction, abort_code),
        };

        *transaction = (perfd_transaction){ .flags = 0 };
        return MESSAGE_DECODE(field, members, transaction);
}

static int decode_message(ItemParts *parts, const WireField *f) {
        switch (f->key >> 3) {
        case ITEM_READ_VALUES:
                return parts_decode_reads(parts, f);
        case ITEM_BRANCHES:
                return add_branch(parts, f);
        case ITEM_USER_REGISTERS:
                return decode_registers(&parts->user_registers, &parts->user_values, f);
        case ITEM_INTERRUPT_REGISTERS:
                return decode_registers(&parts->interrupt_registers, &parts->interrupt_values, f);
        case ITEM_WEIGHT:
                return decode_weight(&parts->weight, f);
        case ITEM_DATA_SOURCE:
                return decode_data_source(&parts->data_source, f);
        default:
                return decode_transaction(&parts->transaction, f);
        }
}

/* What is no message: 0 if the field was none of these. */
static uint64_t *part_number(ItemParts *parts, uint32_t key) {
        switch (key) {
        case WIRE_KEY(ITEM_BRANCH_HW_INDEX, WIRE_VARINT):
                return &parts->branch_hw_index;
        case WIRE_KEY(ITEM_PHYSICAL_ADDRESS, WIRE_FIXED64):
                return &parts->physical_address;
        case WIRE_KEY(ITEM_CGROUP_ID, WIRE_VARINT):
                return &parts->cgroup_id;
        case WIRE_KEY(ITEM_DATA_PAGE_SIZE, WIRE_VARINT):
                return &parts->data_page_size;
        case WIRE_KEY(ITEM_CODE_PAGE_SIZE, WIRE_VARINT):
                return &parts->code_page_size;
        case WIRE_KEY(ITEM_SAMPLE_ID, WIRE_VARINT):
                return &parts->id;
        case WIRE_KEY(ITEM_STREAM_ID, WIRE_VARINT):
                return &parts->stream_id;
        case WIRE_KEY(ITEM_ZERO_TID, WIRE_VARINT):
                return &parts->zero_tid;
        default:
                return NULL;
        }
}

int parts_decode(ItemParts *parts, const WireField *f) {
        uint32_t number = f->key >> 3;
        uint64_t bit, *place;

        if (number < ITEM_READ_VALUES || number > ITEM_ZERO_TID)
                return 0;
        bit = (uint64_t)1 << (number - ITEM_READ_VALUES);
        if (number == ITEM_BRANCHES && !(parts->has & bit))
                parts->n_branches = 0;
        place = part_number(parts, f->key);
        if (place)
                *place = f->number;
        else if (f->key == WIRE_KEY(ITEM_USER_STACK, WIRE_BYTES))
                parts->user_stack = wire_text(f);
        else if (f->key == WIRE_KEY(ITEM_AUX_BYTES, WIRE_BYTES))
                parts->aux_bytes = wire_text(f);
        else if ((f->key & 7) == WIRE_BYTES && number != ITEM_BRANCH_HW_INDEX && number < ITEM_PHYSICAL_ADDRESS) {
                int r = decode_message(parts, f);

                if (r != 0)
                        return r;
        } else
                return 0; /* of another type than it has here: skipped */
        parts->has |= bit;
        return 0;
}

void parts_deinit(ItemParts *parts) {
        free(parts->reads);
        free(parts->branches);
        free(parts->user_values.list);
        free(parts->interrupt_values.list);
}
