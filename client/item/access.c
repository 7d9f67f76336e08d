/* What a caller asks of an item. Functions, not a structure, so that an item can change how it keeps things. */
#include "client/item/decode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

perfd_record perfd_item_record(const perfd_item *item) {
        return item_indexed(item)->record;
}

const perfd_event *perfd_item_event(const perfd_item *item) {
        return item_indexed(item)->descriptor ? &item->descriptor->event : NULL;
}

uint64_t perfd_item_time(const perfd_item *item) {
        return item_indexed(item)->time;
}

uint32_t perfd_item_cpu(const perfd_item *item) {
        return item_indexed(item)->cpu;
}

uint32_t perfd_item_pid(const perfd_item *item) {
        return item_indexed(item)->pid;
}

uint32_t perfd_item_tid(const perfd_item *item) {
        return item_indexed(item)->tid;
}

/* What perfd itself reads, and what a client emits without a tid, is of no thread. These are of an item that is indexed. */
static bool item_is_of_nobody(const perfd_item *item) {
        return item->tid == 0 && (item->record == PERFD_READ || (item->descriptor && item->descriptor->is_external));
}

static bool item_is_idle(const perfd_item *item) {
        const perfd_zero_tid who = perfd_item_zero_tid(item);

        return who == PERFD_ZERO_TID_IDLE || (who == PERFD_ZERO_TID_NONE && item->tid == 0 && !item_who(item));
}

static perfd_text comm_of_zero(struct perfd_item *item) {
        const perfd_task *who = item_who(item);
        int n;

        if (item_is_of_nobody(item))
                return (perfd_text){ .bytes = "" };
        if (perfd_item_zero_tid(item) == PERFD_ZERO_TID_OUTSIDE)
                return (perfd_text){ .bytes = "outside", .length = strlen("outside") };
        if (item_is_idle(item)) { /* each CPU has one, which is not described */
                n = snprintf(item->idle, sizeof(item->idle), "swapper/%" PRIu32, item->cpu);
                return (perfd_text){ .bytes = item->idle, .length = (size_t)n };
        }
        return who ? who->comm : (perfd_text){ .bytes = "" };
}

perfd_text perfd_item_comm(const perfd_item *asked) {
        struct perfd_item *item = item_indexed(asked);
        const perfd_task *who;

        if (item->tid == 0)
                return comm_of_zero(item);
        who = item_who(item);
        return who ? who->comm : (perfd_text){ .bytes = "" };
}

const perfd_task *perfd_item_task(const perfd_item *asked) {
        const struct perfd_item *item = item_indexed(asked);
        const perfd_zero_tid who = perfd_item_zero_tid(item);

        /* what is described of tid 0 is what all have in common that have it in a pid namespace */
        return item_is_of_nobody(item) || who == PERFD_ZERO_TID_IDLE || who == PERFD_ZERO_TID_OUTSIDE ? NULL : item_who(item);
}

const perfd_process *perfd_item_process(const perfd_item *item) {
        const perfd_task *who = perfd_item_task(item);

        return who ? who->process : NULL;
}

bool perfd_item_has_more(const perfd_item *item) {
        return item_indexed(item)->has_rest;
}

perfd_text perfd_item_raw(const perfd_item *item) {
        return item_indexed(item)->raw;
}

/* Where they lie, if they can be read there. -ENOMEM */
static int place_numbers(Numbers *numbers, const uint64_t **ret) {
        const bool is_here = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && (uintptr_t)numbers->packed % sizeof(uint64_t) == 0;

        if (numbers->packed && is_here) {
                *ret = (const uint64_t *)(const void *)numbers->packed;
                return 0;
        }
        if (numbers_settle(numbers) < 0)
                return -ENOMEM;
        *ret = numbers->list;
        return 0;
}

size_t perfd_item_callchain(const perfd_item *asked, perfd_callchain part, const uint64_t **ret_addresses) {
        struct perfd_item *item = item_indexed(asked);
        Numbers *chain = part == PERFD_CALLCHAIN_KERNEL ? &item->kernel_callchain : &item->user_callchain;

        if (part != PERFD_CALLCHAIN_KERNEL && part != PERFD_CALLCHAIN_USER)
                return 0;
        *ret_addresses = chain->list;
        if (chain->n == 0 || place_numbers(chain, ret_addresses) == 0)
                return chain->n;
        item_fail(item, -ENOMEM);
        *ret_addresses = chain->list;
        return chain->n;
}

uint64_t perfd_item_ip(const perfd_item *item) {
        return item_indexed(item)->ip;
}

uint64_t perfd_item_address(const perfd_item *item) {
        return item_indexed(item)->address;
}

uint64_t perfd_item_period(const perfd_item *item) {
        return item_indexed(item)->period;
}

const perfd_comm_record *perfd_item_comm_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_COMM ? &item->comm_record : NULL;
}

const perfd_task_record *perfd_item_task_record(const perfd_item *item) {
        switch (item_indexed(item)->record) {
        case PERFD_FORK:
        case PERFD_EXIT:
        case PERFD_ITRACE_START:
        case PERFD_READ:
                return &item->task;
        default:
                return NULL;
        }
}

const perfd_mmap2_record *perfd_item_mmap2_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_MMAP2 ? &item->mmap2 : NULL;
}

const perfd_switch_record *perfd_item_switch_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_SWITCH ? &item->switch_record : NULL;
}

const perfd_namespaces_record *perfd_item_namespaces_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_NAMESPACES ? &item->namespaces_record : NULL;
}

const perfd_ksymbol_record *perfd_item_ksymbol_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_KSYMBOL ? &item->ksymbol : NULL;
}

const perfd_bpf_event_record *perfd_item_bpf_event_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_BPF_EVENT ? &item->bpf_event : NULL;
}

const perfd_cgroup_record *perfd_item_cgroup_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_CGROUP ? &item->cgroup : NULL;
}

const perfd_text_poke_record *perfd_item_text_poke_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_TEXT_POKE ? &item->text_poke : NULL;
}

const perfd_aux_record *perfd_item_aux_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_AUX ? &item->aux : NULL;
}

const perfd_unknown_record *perfd_item_unknown_record(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_UNKNOWN ? &item->unknown : NULL;
}

uint64_t perfd_item_lost(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_LOST || item->record == PERFD_LOST_SAMPLES ? item->number : 0;
}

uint64_t perfd_item_hw_id(const perfd_item *item) {
        return item_indexed(item)->record == PERFD_AUX_OUTPUT_HW_ID ? item->number : 0;
}
