/*
 * For readers: the items of most samples, written in place where they are asked for: of events whose fields lie at fixed
 * places, and that have no texts but names of threads, with their raw bytes or without. What is not simple goes to item.c, which is made of the same parts.
 */
#pragma once

#include <endian.h>
#include <string.h>

#include "daemon/encode/item-head.h"
#include "daemon/encode/item.h"
#include "daemon/model/field.h"

/* Of 8 bytes each, as they are. */
static inline uint8_t *item_put_words(uint8_t *to, const uint8_t *from, uint32_t n) {
        for (; n >= 2; n -= 2, to += 16, from += 16)
                memcpy(to, from, 16);
        if (n > 0)
                memcpy(to, from, 8);
        return to + n * 8;
}

static inline uint8_t *item_put_array(uint8_t *to, const uint8_t *from, const NumberRun *run, uint32_t n) {
        if (__BYTE_ORDER == __LITTLE_ENDIAN && run->element_size == sizeof(uint64_t))
                return item_put_words(to, from, n);
        if (run->element_size == sizeof(uint32_t) && run->is_signed) {
                for (; n > 0; n--, from += sizeof(uint32_t))
                        to = wire_put_word(to, field_load(from, sizeof(uint32_t), true));
                return to;
        }
        for (const uint8_t *end = from + (size_t)n * run->element_size; from < end; from += run->element_size)
                to = wire_put_word(to, field_load(from, run->element_size, run->is_signed));
        return to;
}

/* Bytes before the first zero, or 8. */
static inline size_t item_word_length(uint64_t word) {
        uint64_t zeros = (word - 0x0101010101010101) & ~word & 0x8080808080808080; /* exact up to the first one */

        return zeros ? (size_t)__builtin_ctzll(zeros) / 8 : 8;
}

/* A comm in a tracepoint, the commonest text: always 16 bytes, copied whole, of which `length` count. */
static inline uint8_t *item_put_comm_text(uint8_t *to, const uint8_t *text) {
        uint64_t words[2];
        size_t length;

        memcpy(words, text, sizeof(words));
        length = item_word_length(le64toh(words[0]));
        if (length == 8)
                length += item_word_length(le64toh(words[1]));
        to = wire_put_key(to, WIRE_KEY(ITEM_TEXTS, WIRE_BYTES));
        *to++ = (uint8_t)length;
        memcpy(to, words, sizeof(words));
        return to + length;
}

/* item.c: pid or tid is 0, and not both, or 0 is to be said whose it is, or there is no time. */
uint8_t *item_begin_slow(uint8_t *to, const EncodePlan *p, const ItemHead *h, const Record *r, size_t more,
                        uint8_t **ret_content);

static inline const ItemHead *item_find_head(const EncodePlan *p, const Record *r) {
        return &p->heads[(r->cpu == 0 ? HEAD_WITHOUT_CPU : 0) | (r->tid == 0 ? HEAD_WITHOUT_TASK : 0)];
}

/* Up to where the numbers begin; `more` bytes are expected behind what is always there. */
static inline uint8_t *item_begin(uint8_t *to, const EncodePlan *p, const ItemHead *h, const Record *r, size_t more,
                                  uint8_t **ret_content) {
        uint64_t time = htole64(r->time);
        uint32_t cpu = htole32(r->cpu), pid = htole32(r->pid), tid = htole32(r->tid);
        uint8_t *const begin = to;

        if (__builtin_expect((r->pid == 0) != (r->tid == 0) || r->time == 0, 0))
                return item_begin_slow(to, p, h, r, more, ret_content);
        *to = h->bytes[0];
        if (more > 0) /* a longer length */
                to += 1 + wire_varint_size(h->length + more) - h->content;
        memcpy(to, h->bytes, sizeof(h->bytes));
        memcpy(to + h->time, &time, sizeof(time));
        if (r->cpu != 0)
                memcpy(to + h->cpu, &cpu, sizeof(cpu));
        if (r->tid != 0) {
                memcpy(to + h->pid, &pid, sizeof(pid));
                memcpy(to + h->tid, &tid, sizeof(tid));
        } else if (__builtin_expect(h->tells_zero_tid, 0))
                return item_begin_slow(begin, p, h, r, more, ret_content);
        *ret_content = to + h->content;
        return to + h->size;
}

/* Of a plan without dynamic places, which has them packed behind one another. */
static inline uint8_t *item_put_numbers(uint8_t *to, const EncodePlan *p, const Record *r) {
        for (const NumberRun *run = p->runs, *end = run + p->n_runs; run < end; run++)
                to = item_put_array(to, r->raw + run->offset, run, run->n);
        return to;
}

/* A sample of the base layout, of a plan that is not variable, and with its min_size. There is room for it. Where the item ends. */
static inline uint8_t *item_put_fixed(const EncodePlan *p, const Record *r, uint8_t *to) {
        const ItemHead *head = item_find_head(p, r);
        uint8_t *content, *at = item_begin(to, p, head, r, 0, &content); /* its length has room for raw bytes as they mostly are */

        at = item_put_numbers(at, p, r);
        for (size_t i = 0; i < p->n_texts; i++)
                at = item_put_comm_text(at, r->raw + p->comms[i]);
        if (p->payload != PAYLOAD_FIELDS && r->raw_size > 0)
                at = wire_put_element(at, ITEM_RAW, r->raw, r->raw_size);
        return (size_t)(at - content) == head->length ? at : wire_end(to + 1, content, at);
}

/* As item_encode(). */
static inline int item_encode_fast(const EncodePlan *p, const Record *r, uint8_t *to, size_t room, size_t *ret_length) {
        if (p->encoding == ITEM_VARIABLE || r->layout != RECORD_LAYOUT_BASE)
                return item_encode(p, r, to, room, ret_length);
        if (r->raw_size < p->min_size)
                return ITEM_E_UNDECODABLE;
        if (p->room + (p->payload != PAYLOAD_FIELDS ? r->raw_size : 0) > room)
                return ITEM_E_NO_ROOM;
        *ret_length = (size_t)(item_put_fixed(p, r, to) - to);
        return 0;
}
