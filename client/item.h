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

struct perfd_item {
        const Descriptor *descriptor; /* NULL for side records of the host */
        perfd_record record;
        uint64_t time, ip, address, period;
        uint32_t event, cpu, pid, tid;
        perfd_text comm, raw;
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
                uint64_t number; /* lost, or stream id */
        };
};

/*
 * Reads an Item message, which has to stay as long as the item is looked at. -ENOMEM; PERFD_E_PROTOCOL if the bytes are
 * no Item, no descriptor came for it, or its values are not those that the descriptor says.
 */
int item_decode(struct perfd_item *item, Descriptors *descriptors, const uint8_t *bytes, size_t length);
void item_deinit(struct perfd_item *item);
