/*
 * The hot half of encode/: samples. An item is written front to back in one pass. All but texts is of fixed width; an
 * item's length, which stands before it, is guessed from texts of half their room, and put right by moving the content
 * in the rare case that it needs another width.
 */
#include "daemon/encode/item.h"

#include <assert.h>
#include <endian.h>
#include <linux/perf_event.h>
#include <string.h>

#include "proto/item-fields.h"
#include "daemon/encode/item-fixed.h"
#include "daemon/encode/sample-parts.h"
#include "daemon/encode/wire.h"
#include "daemon/model/field.h"
#include "daemon/model/zero-tid.h"

/* The dynamic places of this record: all inside, and how many bytes they can add to an item. */
static int measure_dynamic(const EncodePlan *p, const Record *r, size_t *ret_numbers, size_t *ret_texts) {
        size_t numbers = 0, texts = 0;
        const uint8_t *bytes;
        uint32_t size;

        for (size_t i = 0; i < p->n_fields; i++) {
                const PlanField *f = p->fields[i];

                if (f->place == PLACE_FIXED)
                        continue;
                if (field_locate(f, r->raw, r->raw_size, &bytes, &size) != 0)
                        return ITEM_E_UNDECODABLE;
                if (field_is_number(f))
                        numbers += size / f->element_size * sizeof(uint64_t);
                else
                        texts += size;
        }
        *ret_numbers = numbers;
        *ret_texts = texts;
        return 0;
}

/* Behind its count. Its place was checked before: measure_dynamic(). */
__attribute__((noinline)) static uint8_t *put_dynamic_array(uint8_t *to, const EncodePlan *p, const NumberRun *run,
                                                            const Record *r) {
        const uint8_t *bytes = NULL;
        uint32_t size = 0, n;
        int code = field_locate(p->fields[run->dynamic - 1], r->raw, r->raw_size, &bytes, &size);

        assert(code == 0);
        n = size / run->element_size;
        return item_put_array(wire_put_word(to, n), bytes, run, n);
}

/* Places were checked before: fixed ones by min_size. */
static inline uint8_t *put_numbers(uint8_t *to, const EncodePlan *p, const Record *r) {
        for (const NumberRun *run = p->runs, *end = run + p->n_runs; run < end; run++)
                to = __builtin_expect(run->dynamic != 0, 0) ? put_dynamic_array(to, p, run, r)
                                                               : item_put_array(to, r->raw + run->offset, run, run->n);
        return to;
}

__attribute__((noinline)) static uint8_t *put_texts(uint8_t *to, const EncodePlan *p, const Record *r) {
        for (size_t i = 0; i < p->n_texts; i++) {
                const PlanField *f = p->texts[i];
                const uint8_t *text = NULL;
                size_t length = 0;
                int code;

                if (encode_is_comm(f)) {
                        to = item_put_comm_text(to, r->raw + f->offset);
                        continue;
                }
                code = field_text(f, r->raw, r->raw_size, &text, &length);
                assert(code == 0);
                to = wire_put_element(to, ITEM_TEXTS, text, length);
        }
        return to;
}

/* Texts that the probe could not read, by their places in the list. */
__attribute__((noinline)) static uint8_t *put_faults(uint8_t *to, const EncodePlan *p, const Record *r) {
        uint8_t *content, *begin = wire_begin(to, ITEM_FAULTS, p->n_texts * sizeof(uint64_t), &content), *at = content;

        for (size_t i = 0; i < p->n_texts; i++) {
                const PlanField *f = p->texts[i];
                const uint8_t *bytes;
                uint32_t size;

                if (f->kind == FIELD_TEXT && f->place != PLACE_FIXED && field_locate(f, r->raw, r->raw_size, &bytes, &size) == 0 &&
                    size == 0)
                        at = wire_put_word(at, i);
        }
        return at > content ? wire_end(begin, content, at) : to;
}

/* Walks the chain: each address goes to the context that the last marker named. perf_callchain_store_context() */
static uint8_t *put_callchain_part(uint8_t *to, unsigned field, const Record *r, uint64_t wanted) {
        uint64_t context = 0, address;
        uint8_t *content, *begin = wire_begin(to, field, r->n_callchain * sizeof(address), &content), *at = content;

        for (uint64_t i = 0; i < r->n_callchain; i++) {
                memcpy(&address, r->callchain + i * sizeof(address), sizeof(address));
                if (address >= (uint64_t)PERF_CONTEXT_MAX)
                        context = address;
                else if (context == wanted)
                        at = wire_put_word(at, address);
        }
        return at > content ? wire_end(begin, content, at) : to;
}

/* What only samples of some events have. */
__attribute__((noinline)) static uint8_t *put_rest(uint8_t *to, const Record *r) {
        if (r->n_callchain > 0) {
                to = put_callchain_part(to, ITEM_KERNEL_CALLCHAIN, r, (uint64_t)PERF_CONTEXT_KERNEL);
                to = put_callchain_part(to, ITEM_USER_CALLCHAIN, r, (uint64_t)PERF_CONTEXT_USER);
        }
        to = wire_put_fixed64(to, ITEM_IP, r->ip);
        to = wire_put_fixed64(to, ITEM_ADDRESS, r->addr);
        return wire_put_number(to, ITEM_PERIOD, r->period);
}

/*
 * The item as if there were no rare parts, then these behind it, where their field numbers belong, and the length put
 * right: so the common item does not carry even a question for them in its middle.
 */
__attribute__((cold, noinline)) static int encode_with_parts(const EncodePlan *p, const Record *r, uint8_t *to,
                                                             size_t room, size_t *ret_length) {
        size_t bound = sample_parts_bound(r) + WIRE_LENGTH_MAX, length;
        uint8_t *begin, *content;
        Record common = *r;
        int code;

        if (bound > room)
                return ITEM_E_NO_ROOM;
        common.parts = 0;
        code = item_encode(p, &common, to, room - bound, &length);
        if (code != 0)
                return code;
        begin = wire_put_key(to, WIRE_KEY(PACKET_ITEMS, WIRE_BYTES));
        for (content = begin; *content & 0x80; content++)
                ;
        content++;
        *ret_length = (size_t)(wire_end(begin, content, sample_parts_put(to + length, r)) - to);
        return 0;
}

/* ITEM_VARIABLE, or a record that has more than the base parts. */
__attribute__((noinline)) static int encode_variable(const EncodePlan *p, const Record *r, uint8_t *to, size_t room,
                                                     size_t *ret_length) {
        size_t raw_size = p->payload != PAYLOAD_FIELDS ? r->raw_size : 0, numbers = 0, texts = 0, more;
        uint8_t *content, *at;

        if (p->dynamic && measure_dynamic(p, r, &numbers, &texts) != 0)
                return ITEM_E_UNDECODABLE;
        more = numbers + texts + raw_size + r->n_callchain * sizeof(uint64_t);
        if (p->room + more > room)
                return ITEM_E_NO_ROOM;
        at = item_begin(to, p, item_find_head(p, r), r, more, &content);
        if (p->dynamic && p->numbers_size + numbers > 0)
                at = wire_put_varint(wire_put_key(at, WIRE_KEY(ITEM_NUMBERS, WIRE_BYTES)), p->numbers_size + numbers);
        at = put_numbers(at, p, r);
        if (p->n_texts > 0)
                at = put_texts(at, p, r);
        at = wire_put_bytes(at, ITEM_RAW, r->raw, raw_size);
        if (r->layout != RECORD_LAYOUT_BASE)
                at = put_rest(at, r);
        if (p->has_faults)
                at = put_faults(at, p, r);
        *ret_length = (size_t)(wire_end(to + 1, content, at) - to);
        return 0;
}

/* As of a thread outside of perfd's pid namespace. */
uint8_t *item_begin_slow(uint8_t *to, const EncodePlan *p, const ItemHead *h, const Record *r, size_t more,
                        uint8_t **ret_content) {
        wire_put_length(wire_begin(to, PACKET_ITEMS, h->length + more, ret_content), h->length);
        to = item_put_who(item_put_head(*ret_content, r->time, p->event_id, r->cpu), r);
        if (h->tells_zero_tid && r->tid == 0)
                to = wire_put_number(to, ITEM_ZERO_TID, zero_tid_of_sample(p->plan, r));
        if (p->numbers_size == 0 || p->dynamic)
                return to;
        return wire_put_varint(wire_put_key(to, WIRE_KEY(ITEM_NUMBERS, WIRE_BYTES)), p->numbers_size);
}

int item_encode(const EncodePlan *p, const Record *r, uint8_t *to, size_t room, size_t *ret_length) {
        if (r->raw_size < p->min_size)
                return ITEM_E_UNDECODABLE;
        if (r->parts != 0)
                return encode_with_parts(p, r, to, room, ret_length);
        if (p->encoding != ITEM_VARIABLE && r->layout == RECORD_LAYOUT_BASE)
                return item_encode_fast(p, r, to, room, ret_length);
        return encode_variable(p, r, to, room, ret_length);
}
