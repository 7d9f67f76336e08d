/* What a caller asks of the rare parts of a sample: each is as if it were not there unless it came with this item. */
#include "client/item/decode.h"

#include "proto/item-fields.h"

#define HAS(item, field) ((item_with_parts(item)->parts.has & (uint64_t)1 << ((field) - ITEM_READ_VALUES)) != 0)

static const perfd_text nothing = { .bytes = "" };

size_t perfd_item_read(const perfd_item *item, const perfd_read_value **ret_values) {
        if (item_indexed(item)->record != PERFD_READ && !HAS(item, ITEM_READ_VALUES))
                return 0;
        *ret_values = item->parts.reads;
        return item->parts.n_reads;
}

size_t perfd_item_branches(const perfd_item *item, const perfd_branch **ret_branches) {
        if (!HAS(item, ITEM_BRANCHES))
                return 0;
        *ret_branches = item->parts.branches;
        return item->parts.n_branches;
}

bool perfd_item_branch_hw_index(const perfd_item *item, uint64_t *ret_index) {
        if (!HAS(item, ITEM_BRANCH_HW_INDEX) || item->parts.branch_hw_index == 0)
                return false;
        *ret_index = item->parts.branch_hw_index - 1;
        return true;
}

const perfd_registers *perfd_item_user_registers(const perfd_item *item) {
        return HAS(item, ITEM_USER_REGISTERS) ? &item->parts.user_registers : NULL;
}

const perfd_registers *perfd_item_interrupt_registers(const perfd_item *item) {
        return HAS(item, ITEM_INTERRUPT_REGISTERS) ? &item->parts.interrupt_registers : NULL;
}

perfd_text perfd_item_user_stack(const perfd_item *item) {
        return HAS(item, ITEM_USER_STACK) ? item->parts.user_stack : nothing;
}

const perfd_weight *perfd_item_weight(const perfd_item *item) {
        return HAS(item, ITEM_WEIGHT) ? &item->parts.weight : NULL;
}

const perfd_data_source *perfd_item_data_source(const perfd_item *item) {
        return HAS(item, ITEM_DATA_SOURCE) ? &item->parts.data_source : NULL;
}

const perfd_transaction *perfd_item_transaction(const perfd_item *item) {
        return HAS(item, ITEM_TRANSACTION) ? &item->parts.transaction : NULL;
}

uint64_t perfd_item_physical_address(const perfd_item *item) {
        return HAS(item, ITEM_PHYSICAL_ADDRESS) ? item->parts.physical_address : 0;
}

uint64_t perfd_item_cgroup_id(const perfd_item *item) {
        return HAS(item, ITEM_CGROUP_ID) ? item->parts.cgroup_id : 0;
}

uint64_t perfd_item_data_page_size(const perfd_item *item) {
        return HAS(item, ITEM_DATA_PAGE_SIZE) ? item->parts.data_page_size : 0;
}

uint64_t perfd_item_code_page_size(const perfd_item *item) {
        return HAS(item, ITEM_CODE_PAGE_SIZE) ? item->parts.code_page_size : 0;
}

perfd_text perfd_item_aux_bytes(const perfd_item *item) {
        return HAS(item, ITEM_AUX_BYTES) ? item->parts.aux_bytes : nothing;
}

uint64_t perfd_item_sample_id(const perfd_item *item) {
        return HAS(item, ITEM_SAMPLE_ID) ? item->parts.id : 0;
}

perfd_zero_tid perfd_item_zero_tid(const perfd_item *item) {
        if (item_indexed(item)->tid != 0 || !HAS(item, ITEM_ZERO_TID))
                return PERFD_ZERO_TID_NONE;
        return item->parts.zero_tid < PERFD_ZERO_TID_UNKNOWN ? (perfd_zero_tid)item->parts.zero_tid : PERFD_ZERO_TID_UNKNOWN;
}

uint64_t perfd_item_stream_id(const perfd_item *item) {
        if (item_indexed(item)->record == PERFD_THROTTLE || item->record == PERFD_UNTHROTTLE)
                return item->number;
        return HAS(item, ITEM_STREAM_ID) ? item->parts.stream_id : 0;
}
