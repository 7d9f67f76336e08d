/*
 * For streams: one item out of its wire bytes. The direct way: texts stay where they are, numbers go into arrays that
 * the next item uses again, so that an item costs no allocation.
 */
#pragma once

#include "client/descriptor.h"
#include "client/perfd.h"

typedef struct Numbers {
        uint64_t *list;
        size_t n, room;
} Numbers;

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
        uint64_t branch_hw_index, physical_address, cgroup_id, data_page_size, code_page_size, id, stream_id;
} ItemParts;

struct perfd_item {
        const Descriptor *descriptor; /* NULL for side records of the host */
        perfd_record record;
        uint64_t time, ip, address, period;
        uint32_t event, cpu, pid, tid;
        perfd_text raw;
        const perfd_task *who; /* set by the stream; NULL: not described */
        char idle[24];          /* name of the idle thread, if it was asked for */
        Numbers numbers, kernel_callchain, user_callchain;
        perfd_text *texts;
        size_t n_texts, texts_room;
        const FieldPlace *places; /* by field: the descriptor's, or own_places */
        FieldPlace *own_places;
        size_t own_places_room;
        union {
                perfd_comm_record comm_record;
                perfd_task_record task;
                perfd_mmap2_record mmap2;
                perfd_switch_record switch_record;
                perfd_namespaces_record namespaces_record;
                perfd_ksymbol_record ksymbol;
                perfd_bpf_event_record bpf_event;
                perfd_cgroup_record cgroup;
                perfd_text_poke_record text_poke;
                perfd_aux_record aux;
                perfd_unknown_record unknown;
                uint64_t number; /* lost, stream id, hardware id */
        };
        perfd_namespace *namespaces;
        size_t namespaces_room;
        ItemParts parts;
};

/* Makes room for one more in a list of the item. -ENOMEM */
int item_reserve(void *list, size_t *room, size_t n, size_t size);
int numbers_add_packed_fixed(Numbers *numbers, const uint8_t *bytes, size_t length);
int numbers_add(Numbers *numbers, uint64_t number);

/*
 * Reads an Item message, which has to stay as long as the item is looked at. -ENOMEM; PERFD_E_PROTOCOL if the bytes are
 * no Item, no descriptor came for it, or its values are not those that the descriptor says.
 */
int item_decode(struct perfd_item *item, Descriptors *descriptors, const uint8_t *bytes, size_t length);
void item_deinit(struct perfd_item *item);
