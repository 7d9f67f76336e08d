/*
 * The cold half of encode/: side records as items. One function for each message, in the order of its fields, so that
 * it can be read beside proto/perfd.proto; pid and tid of the item are those of the trailer, who did it, and those in
 * the record are whom it is about.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "proto/item-fields.h"
#include "daemon/encode/item.h"
#include "daemon/encode/item-head.h"
#include "daemon/encode/sample-parts.h"
#include "daemon/encode/wire.h"

/* Most bytes without what has a length: the item's own scalars 48, MMAP2's numbers 104, keys and lengths 19. */
#define SIDE_BOUND ((size_t)192)
#define NAMESPACE_BOUND ((size_t)24) /* two numbers, key and length */
#define BPF_TAG_BYTES 8

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

static uint8_t *put_switch(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, (r->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0);
        to = wire_put_number(to, 2, (r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0);
        to = wire_put_number(to, 3, r->type == PERF_RECORD_SWITCH_CPU_WIDE);
        to = wire_put_number(to, 4, r->switch_record.next_prev_pid);
        return wire_put_number(to, 5, r->switch_record.next_prev_tid);
}

static uint8_t *put_namespaces(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->namespaces.pid);
        to = wire_put_number(to, 2, r->namespaces.tid);
        for (uint64_t i = 0; i < r->namespaces.n; i++) {
                uint8_t *content, *begin = wire_begin(to, 3, 0, &content);

                to = wire_put_number(content, 1, record_word(r->namespaces.list, 2 * i));
                to = wire_put_number(to, 2, record_word(r->namespaces.list, 2 * i + 1));
                to = wire_end(begin, content, to);
        }
        return to;
}

static uint8_t *put_ksymbol(uint8_t *to, const Record *r) {
        to = wire_put_fixed64(to, 1, r->ksymbol.addr);
        to = wire_put_number(to, 2, r->ksymbol.len);
        to = wire_put_number(to, 3, r->ksymbol.type);
        to = wire_put_number(to, 4, r->ksymbol.flags);
        return wire_put_bytes(to, 5, r->ksymbol.name, strlen(r->ksymbol.name));
}

static uint8_t *put_bpf_event(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->bpf_event.type);
        to = wire_put_number(to, 2, r->bpf_event.flags);
        to = wire_put_number(to, 3, r->bpf_event.id);
        return wire_put_bytes(to, 4, r->bpf_event.tag, BPF_TAG_BYTES);
}

static uint8_t *put_cgroup(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->cgroup.id);
        return wire_put_bytes(to, 2, r->cgroup.path, strlen(r->cgroup.path));
}

static uint8_t *put_text_poke(uint8_t *to, const Record *r) {
        to = wire_put_fixed64(to, 1, r->text_poke.addr);
        to = wire_put_bytes(to, 2, r->text_poke.bytes, r->text_poke.old_len);
        return wire_put_bytes(to, 3, r->text_poke.bytes + r->text_poke.old_len, r->text_poke.new_len);
}

static uint8_t *put_aux(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->aux.offset);
        to = wire_put_number(to, 2, r->aux.size);
        return wire_put_number(to, 3, r->aux.flags);
}

static uint8_t *put_itrace_start(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->itrace_start.pid);
        return wire_put_number(to, 2, r->itrace_start.tid);
}

static uint8_t *put_aux_output_hw_id(uint8_t *to, const Record *r) {
        return wire_put_number(to, 1, r->aux_output_hw_id.hw_id);
}

static uint8_t *put_read(uint8_t *to, const Record *r) {
        uint8_t *content, *begin;

        to = wire_put_number(to, 1, r->read.pid);
        to = wire_put_number(to, 2, r->read.tid);
        begin = wire_begin(to, 3, r->read.values.n * READ_VALUE_BOUND / 2, &content);
        return wire_end(begin, content, read_values_put(content, &r->read.values));
}

static uint8_t *put_unknown(uint8_t *to, const Record *r) {
        to = wire_put_number(to, 1, r->type);
        to = wire_put_number(to, 2, r->misc);
        return wire_put_bytes(to, 3, r->unknown.bytes, r->unknown.size);
}

typedef struct SideRecord {
        unsigned field; /* of Item */
        uint8_t *(*put)(uint8_t *to, const Record *r);
} SideRecord;

static const SideRecord *side_record_find(uint32_t type) {
        static const SideRecord records[] = {
#define RECORD_TYPE(type, item, decoder, encoder, kind) [PERF_RECORD_##type] = { ITEM_##item, put_##encoder },
#include "proto/record.def"
        };
        static const SideRecord unknown = { ITEM_UNKNOWN, put_unknown };

        if (type == PERF_RECORD_SAMPLE)
                return NULL;
        return type < ARRAY_SIZE(records) && records[type].put ? &records[type] : &unknown;
}

/* Most bytes of what has a length: texts, bytes, lists. */
static size_t variable_bound(const Record *r, const SideRecord *side) {
        switch (side->field) {
        case ITEM_COMM:
                return strlen(r->comm_record.comm);
        case ITEM_MMAP2:
                return strlen(r->mmap2.filename);
        case ITEM_NAMESPACES:
                return r->namespaces.n * NAMESPACE_BOUND;
        case ITEM_KSYMBOL:
                return strlen(r->ksymbol.name);
        case ITEM_CGROUP:
                return strlen(r->cgroup.path);
        case ITEM_TEXT_POKE:
                return (size_t)r->text_poke.old_len + r->text_poke.new_len;
        case ITEM_READ:
                return r->read.values.n * READ_VALUE_BOUND;
        case ITEM_UNKNOWN:
                return r->unknown.size;
        default:
                return 0;
        }
}

int side_item_encode(const Record *r, uint32_t event_id, uint8_t *to, size_t room, size_t *ret_length) {
        const SideRecord *side = side_record_find(r->type);
        uint8_t *begin, *content, *inner_begin, *inner_content, *at;
        size_t bound;

        if (!side)
                return ITEM_E_UNDECODABLE;
        bound = SIDE_BOUND + variable_bound(r, side);
        if (bound + WIRE_SLACK > room)
                return ITEM_E_NO_ROOM;

        begin = wire_begin(to, PACKET_ITEMS, bound - SIDE_BOUND / 2, &content);
        at = item_put_head(content, r->time, event_id, r->cpu);
        at = item_put_who(at, r);
        inner_begin = wire_begin(at, side->field, bound - SIDE_BOUND, &inner_content);
        at = side->put(inner_content, r);
        at = wire_end(inner_begin, inner_content, at);
        at = wire_put_number(at, ITEM_ZERO_TID, r->zero_tid);
        *ret_length = (size_t)(wire_end(begin, content, at) - to);
        return 0;
}

int read_item_encode(uint32_t event_id, uint32_t cpu, nsec_t time, const ReadCount *values, size_t n, uint8_t *to,
                     size_t room, size_t *ret_length) {
        uint8_t *begin, *content, *read_begin, *read, *list_begin, *list, *at;
        size_t bound = SIDE_BOUND + n * READ_VALUE_BOUND;

        if (bound + WIRE_SLACK > room)
                return ITEM_E_NO_ROOM;
        begin = wire_begin(to, PACKET_ITEMS, bound / 2, &content);
        at = item_put_head(content, time, event_id, cpu);
        read_begin = wire_begin(at, ITEM_READ, bound / 2, &read);
        list_begin = wire_begin(read, 3, bound / 2, &list);
        at = list;
        for (size_t i = 0; i < n; i++)
                at = read_value_put(at, &values[i]);
        at = wire_end(read_begin, read, wire_end(list_begin, list, at));
        *ret_length = (size_t)(wire_end(begin, content, at) - to);
        return 0;
}

/* The time comes first, in a fixed width (item_put_head()). */
void item_set_time(uint8_t *item, size_t length, nsec_t time) {
        size_t at = 1; /* the tag */

        while (at < length && item[at] & 0x80)
                at++;
        at++;
        if (at + 1 + sizeof(time) <= length && item[at] == WIRE_KEY(ITEM_TIME, WIRE_FIXED64))
                (void)wire_put_word(item + at + 1, time);
}
