/*
 * For streams: one item, as its accessors and its decoders see it. It begins as a place in the bytes of a packet; the first
 * accessor that is called has them indexed (decode.c). All that bounds what is read later is kept here, because the bytes may be
 * in memory that the daemon can change meanwhile: an accessor finds other values then, and none outside of the item.
 */
#pragma once

#include "client/item/descriptor.h"
#include "client/item/list.h"
#include "client/item/sample-parts.h"
#include "client/item/task.h"
#include "client/perfd.h"

typedef enum ItemState {
        ITEM_SET, /* nobody has asked for anything */
        ITEM_INDEXED,
        ITEM_WRONG, /* it shows nothing */
} ItemState;

struct perfd_item {
        const uint8_t *bytes, *end;           /* of its message, where it lies */
        Descriptors *descriptors;             /* of the stream */
        Tasks *tasks;
        ItemState state;     /* not ITEM_SET: what follows is of this item */
        bool has_rest;       /* raw to texts, not only what each sample has, may be set */
        bool has_parts;      /* `parts` are to be decoded when somebody asks for them */
        int error;           /* ITEM_WRONG: what is */

        Descriptor *descriptor; /* NULL for side records of the host */
        perfd_record record;
        uint64_t time, ip, address, period;
        uint32_t event, cpu, pid, tid;
        perfd_text raw;
        char idle[24];          /* name of the idle thread, if it was asked for */
        Numbers numbers; /* `list` has room for all of them */
        Numbers kernel_callchain, user_callchain, faults;
        perfd_text *texts;
        size_t n_texts, texts_room;
        const ValuePlace *places; /* by field: the descriptor's, or own_places; NULL: it has no fields, or is not indexed */
        ValuePlace *own_places;
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

/* NULL: not described. */
static inline const perfd_task *item_who(const struct perfd_item *item) {
        return item->tasks ? tasks_find(item->tasks, item->tid) : NULL;
}
