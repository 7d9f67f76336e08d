/*
 * For readers: items that differ in their values only. What samples of one event, on one CPU and with the same number of
 * raw bytes, have in common is written once, their length with it; each of them is a copy of it with its values put in.
 */
#pragma once

#include "daemon/base/copy.h"
#include "daemon/encode/item-simple.h"

typedef struct ItemTemplate {
        uint8_t head[sizeof(((ItemHead *)NULL)->bytes)]; /* up to where the numbers begin */
        uint8_t time, pid, tid;                          /* where in it their values go */
        uint8_t size;                                    /* of it */
        uint8_t raw_key[1 + WIRE_LENGTH_MAX + WIRE_SLACK], raw_key_size; /* what stands before the raw bytes; 0: they are not sent */
        uint32_t raw_size, length;                       /* of the raw bytes, and of the whole item */
        uint32_t words, words_size;                      /* where in the raw bytes all numbers lie as they are sent; 0 bytes: nowhere */
} ItemTemplate;

/*
 * False: such items are not all alike, because the event has texts, or parts whose place a sample says itself; then it can
 * only say what fits.
 */
static inline bool item_template_init(ItemTemplate *t, const EncodePlan *p, uint32_t cpu, uint32_t raw_size) {
        const ItemHead *h = &p->heads[cpu == 0 ? HEAD_WITHOUT_CPU : 0];
        size_t rest = h->size - h->content, content = rest + p->numbers_size, begin;

        t->raw_size = raw_size;
        if (!p->is_simple || p->n_texts > 0)
                return false;
        t->raw_key_size = 0;
        if (p->payload != PAYLOAD_FIELDS && raw_size > 0) {
                uint8_t *key = wire_put_key(t->raw_key, WIRE_KEY(ITEM_RAW, WIRE_BYTES));

                t->raw_key_size = (uint8_t)(wire_put_varint(key, raw_size) - t->raw_key);
                content += t->raw_key_size + raw_size;
        }
        if (__BYTE_ORDER == __LITTLE_ENDIAN && p->n_runs == 1 && p->runs->element_size == sizeof(uint64_t)) {
                t->words = p->runs->offset;
                t->words_size = p->runs->n * (uint32_t)sizeof(uint64_t);
        } else
                t->words = t->words_size = 0;
        begin = 1 + wire_varint_size(content);
        if (begin + rest > sizeof(t->head))
                return false;
        memset(t->head, 0, sizeof(t->head));
        t->head[0] = h->bytes[0];
        wire_put_length(t->head + 1, content);
        memcpy(t->head + begin, h->bytes + h->content, rest);
        if (cpu != 0) {
                uint32_t value = htole32(cpu);

                memcpy(t->head + begin + h->cpu - h->content, &value, sizeof(value));
        }
        t->time = (uint8_t)(begin + h->time - h->content);
        t->pid = (uint8_t)(begin + h->pid - h->content);
        t->tid = (uint8_t)(begin + h->tid - h->content);
        t->size = (uint8_t)(begin + rest);
        t->length = (uint32_t)(begin + content);
        return true;
}

/* Zeros are left out of the wire. */
static inline bool item_template_fits(const ItemTemplate *t, const Record *r) {
        return r->raw_size == t->raw_size && r->pid != 0 && r->tid != 0 && r->time != 0;
}

/* A sample that fits, where there is room for it as item_encode() wants it: t->length bytes. */
static inline __attribute__((always_inline)) void item_put_alike(const ItemTemplate *t, const EncodePlan *p, const Record *r, uint8_t *to) {
        uint64_t time = htole64(r->time);
        uint32_t pid = htole32(r->pid), tid = htole32(r->tid);
        uint8_t *at = to + t->size;

        memcpy(to, t->head, sizeof(t->head));
        memcpy(to + t->time, &time, sizeof(time));
        memcpy(to + t->pid, &pid, sizeof(pid));
        memcpy(to + t->tid, &tid, sizeof(tid));
        if (t->words_size > 0) {
                copy_short(at, r->raw + t->words, t->words_size);
                at += t->words_size;
        } else
                at = item_put_numbers(at, p, r);
        if (t->raw_key_size > 0) {
                memcpy(at, t->raw_key, sizeof(uint64_t));
                copy_short(at + t->raw_key_size, r->raw, r->raw_size);
        }
}
