/* What a caller asks of an item. Functions, not a structure, so that an item can change how it keeps things. */
#include "client/item.h"

perfd_record perfd_item_record(const perfd_item *item) {
        return item->record;
}

const perfd_event *perfd_item_event(const perfd_item *item) {
        return item->descriptor ? &item->descriptor->event : NULL;
}

uint64_t perfd_item_time(const perfd_item *item) {
        return item->time;
}

uint32_t perfd_item_cpu(const perfd_item *item) {
        return item->cpu;
}

uint32_t perfd_item_pid(const perfd_item *item) {
        return item->pid;
}

uint32_t perfd_item_tid(const perfd_item *item) {
        return item->tid;
}

perfd_text perfd_item_comm(const perfd_item *item) {
        return item->comm;
}

perfd_text perfd_item_raw(const perfd_item *item) {
        return item->raw;
}

size_t perfd_item_callchain(const perfd_item *item, perfd_callchain part, const uint64_t **ret_addresses) {
        const Numbers *chain = part == PERFD_CALLCHAIN_KERNEL ? &item->kernel_callchain : &item->user_callchain;

        if (part != PERFD_CALLCHAIN_KERNEL && part != PERFD_CALLCHAIN_USER)
                return 0;
        *ret_addresses = chain->list;
        return chain->n;
}

uint64_t perfd_item_ip(const perfd_item *item) {
        return item->ip;
}

uint64_t perfd_item_address(const perfd_item *item) {
        return item->address;
}

uint64_t perfd_item_period(const perfd_item *item) {
        return item->period;
}

const perfd_comm_record *perfd_item_comm_record(const perfd_item *item) {
        return item->record == PERFD_COMM ? &item->comm_record : NULL;
}

const perfd_task_record *perfd_item_task_record(const perfd_item *item) {
        return item->record == PERFD_FORK || item->record == PERFD_EXIT ? &item->task : NULL;
}

const perfd_mmap2_record *perfd_item_mmap2_record(const perfd_item *item) {
        return item->record == PERFD_MMAP2 ? &item->mmap2 : NULL;
}

uint64_t perfd_item_lost(const perfd_item *item) {
        return item->record == PERFD_LOST || item->record == PERFD_LOST_SAMPLES ? item->number : 0;
}

uint64_t perfd_item_stream_id(const perfd_item *item) {
        return item->record == PERFD_THROTTLE || item->record == PERFD_UNTHROTTLE ? item->number : 0;
}
