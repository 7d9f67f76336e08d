/*
 * The cold half of encode/: side records as items. One function for each message, in the order of its fields, so that
 * it can be read beside proto/perfd.proto; pid and tid of the item are those of the trailer, who did it, and those in
 * the record are whom it is about.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "proto/item-fields.h"
#include "daemon/encode/item.h"
#include "daemon/encode/wire.h"

/* Most bytes without the text: the item's own scalars and comm 63, MMAP2's numbers 104, keys and lengths around 14. */
#define SIDE_BOUND ((size_t)192)

static uint8_t *put_comm(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->comm_record.pid);
        to = wire_put_number(to, 2, r->comm_record.tid);
        to = wire_put_bytes(to, 3, r->comm_record.comm, strlen(r->comm_record.comm));
        return wire_put_number(to, 4, (r->misc & PERF_RECORD_MISC_COMM_EXEC) != 0);
}

static uint8_t *put_task(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->task.pid);
        to = wire_put_number(to, 2, r->task.ppid);
        to = wire_put_number(to, 3, r->task.tid);
        return wire_put_number(to, 4, r->task.ptid);
}

static uint8_t *put_mmap2(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->mmap2.pid);
        to = wire_put_number(to, 2, r->mmap2.tid);
        to = wire_put_number(to, 3, r->mmap2.addr);
        to = wire_put_number(to, 4, r->mmap2.len);
        to = wire_put_number(to, 5, r->mmap2.pgoff);
        to = wire_put_number(to, 6, r->mmap2.maj);
        to = wire_put_number(to, 7, r->mmap2.min);
        to = wire_put_number(to, 8, r->mmap2.ino);
        to = wire_put_number(to, 9, r->mmap2.ino_generation);
        to = wire_put_bytes(to, 10, r->mmap2.build_id, r->mmap2.build_id ? r->mmap2.build_id_size : 0);
        to = wire_put_number(to, 11, r->mmap2.prot);
        to = wire_put_number(to, 12, r->mmap2.flags);
        return wire_put_bytes(to, 13, r->mmap2.filename, strlen(r->mmap2.filename));
}

static uint8_t *put_lost(uint8_t *to, const Record *r) {
        return wire_put_number(to, 1, r->lost.lost);
}

static uint8_t *put_throttle(uint8_t *to, const Record *r) {
        return wire_put_number(to, 1, r->throttle.stream_id);
}

typedef struct SideRecord {
        unsigned field; /* of Item */
        uint8_t *(*put)(uint8_t *to, const Record *r);
} SideRecord;

static const SideRecord side_records[] = {
        [PERF_RECORD_COMM] = { ITEM_COMM_RECORD, put_comm },
        [PERF_RECORD_FORK] = { ITEM_FORK, put_task },
        [PERF_RECORD_EXIT] = { ITEM_EXIT, put_task },
        [PERF_RECORD_MMAP] = { ITEM_MMAP2, put_mmap2 },
        [PERF_RECORD_MMAP2] = { ITEM_MMAP2, put_mmap2 },
        [PERF_RECORD_LOST] = { ITEM_LOST, put_lost },
        [PERF_RECORD_LOST_SAMPLES] = { ITEM_LOST_SAMPLES, put_lost },
        [PERF_RECORD_THROTTLE] = { ITEM_THROTTLE, put_throttle },
        [PERF_RECORD_UNTHROTTLE] = { ITEM_UNTHROTTLE, put_throttle },
};

static size_t text_size(const Record *r) {
        switch (r->type) {
        case PERF_RECORD_COMM:
                return strlen(r->comm_record.comm);
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
                return strlen(r->mmap2.filename);
        default:
                return 0;
        }
}

int side_item_encode(const Record *r, uint32_t event_id, uint8_t *to, size_t room, size_t *ret_length) {
        uint8_t *begin, *content, *inner_begin, *inner_content, *at;
        size_t bound;

        if (r->type >= ARRAY_SIZE(side_records) || !side_records[r->type].put)
                return ITEM_E_UNDECODABLE;
        bound = SIDE_BOUND + text_size(r);
        if (bound + WIRE_SLACK > room)
                return ITEM_E_NO_ROOM;

        begin = wire_begin(to, PACKET_ITEMS, bound - SIDE_BOUND / 2, &content);
        at = wire_put_fixed64(content, ITEM_TIME, r->time);
        at = wire_put_number(at, ITEM_EVENT, event_id);
        at = wire_put_number(at, ITEM_CPU, r->cpu);
        at = wire_put_number(at, ITEM_PID, r->pid);
        at = wire_put_number(at, ITEM_TID, r->tid);
        at = wire_put_bytes(at, ITEM_COMM, r->comm, strnlen(r->comm, COMM_SIZE));
        inner_begin = wire_begin(at, side_records[r->type].field, bound - SIDE_BOUND, &inner_content);
        at = side_records[r->type].put(inner_content, r);
        at = wire_end(inner_begin, inner_content, at);
        *ret_length = (size_t)(wire_end(begin, content, at) - to);
        return 0;
}
