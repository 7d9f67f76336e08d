/* For streams: one item, as its accessors and its decoders see it. */
#pragma once

#include "client/item/descriptor.h"
#include "client/item/list.h"
#include "client/item/sample-parts.h"
#include "client/perfd.h"

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
