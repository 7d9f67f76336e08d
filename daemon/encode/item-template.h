/*
 * For readers: items that are alike but for their values, and for the names in them: a copy of how all of them begin, the
 * values stored over it, and what follows. One way is for any such event, and made once for many of its samples; the other is
 * for samples of which each is of another event, as far as their numbers are one copy, and needs nothing but the plan.
 */
#pragma once

#include "daemon/base/copy.h"
#include "daemon/encode/item-fixed.h"

/* Zeros are left out of the wire. */
static inline bool item_has_all(const Record *r) {
        return r->pid != 0 && r->tid != 0 && r->time != 0;
}

/* Of one that has all. Where the numbers begin. */
static inline __attribute__((always_inline)) uint8_t *item_put_values(const ItemHead *h, const Record *r, uint8_t *to) {
        uint64_t time = htole64(r->time);
        uint32_t pid = htole32(r->pid), tid = htole32(r->tid);

        memcpy(to, h->bytes, sizeof(h->bytes));
        memcpy(to + h->time, &time, sizeof(time));
        memcpy(to + h->pid, &pid, sizeof(pid));
        memcpy(to + h->tid, &tid, sizeof(tid));
        return to + h->size;
}

/* A sample that has all, of a plan that is ITEM_ONE_COPY, and with its min_size, to where its room is known to be; where the item ends. */
static inline uint8_t *item_put_one_copy(const EncodePlan *p, const Record *r, uint8_t *to) {
        const ItemHead *h = &p->heads[r->cpu == 0 ? HEAD_WITHOUT_CPU : 0];
        size_t size = p->runs->n * sizeof(uint64_t);
        uint8_t *at = item_put_values(h, r, to);
        uint32_t cpu = htole32(r->cpu);

        if (r->cpu != 0)
                memcpy(to + h->cpu, &cpu, sizeof(cpu));
        copy_short(at, r->raw + p->runs->offset, size);
        return at + size;
}

/* For samples of one event, on one CPU and with the same number of raw bytes. */
typedef struct ItemTemplate {
        ItemHead head;         /* with the CPU, and with the length of items without texts */
        uint32_t length;       /* of an item, at most; without texts of each */
        uint32_t piece, piece_size; /* raw bytes that come next as they are: all numbers, or all there is; 0: none, few */
        uint8_t n_texts;
        uint8_t raw_key_size;  /* 0: raw bytes are not sent behind what else there is */
        uint8_t raw_key[1 + WIRE_LENGTH_MAX + WIRE_SLACK]; /* what stands before them */
        uint32_t raw_size;
} ItemTemplate;

#define ITEM_PIECE_MIN 32 /* bytes for which copy_short() is made */
#define ITEM_PIECE_MAX 256

static inline void item_template_set_raw(ItemTemplate *t, const EncodePlan *p, uint32_t raw_size) {
        uint8_t *key;

        t->raw_key_size = 0;
        t->raw_size = p->payload != PAYLOAD_FIELDS ? raw_size : 0;
        if (t->raw_size == 0)
                return;
        key = wire_put_key(t->raw_key, WIRE_KEY(ITEM_RAW, WIRE_BYTES));
        t->raw_key_size = (uint8_t)(wire_put_varint(key, raw_size) - t->raw_key);
}

/* Numbers as they are, or all raw bytes, whose key is part of the head then. */
static inline ItemEncoding item_template_set_piece(ItemTemplate *t, const EncodePlan *p) {
        bool is_raw = p->n_runs == 0 && p->n_texts == 0 && t->head.size + t->raw_key_size <= (int)sizeof(t->head.bytes);

        t->piece = t->piece_size = 0;
        if (is_raw)
                t->piece_size = t->raw_size;
        else if (__BYTE_ORDER == __LITTLE_ENDIAN && p->n_runs == 1 && p->runs->element_size == sizeof(uint64_t)) {
                t->piece = p->runs->offset;
                t->piece_size = p->runs->n * (uint32_t)sizeof(uint64_t);
        }
        if (t->piece_size < ITEM_PIECE_MIN || t->piece_size > ITEM_PIECE_MAX)
                t->piece_size = 0;
        if (t->piece_size == 0 || (!is_raw && (p->n_texts > 0 || t->raw_key_size > 0)))
                return ITEM_TEMPLATE;
        if (is_raw) {
                memcpy(t->head.bytes + t->head.size, t->raw_key, t->raw_key_size);
                t->head.size = (uint8_t)(t->head.size + t->raw_key_size);
        }
        return ITEM_ONE_COPY;
}

/*
 * How items of samples with so many raw bytes are written: with the template, if it is ITEM_TEMPLATE or ITEM_ONE_COPY. Else there
 * is none: lengths differ in their width, or a sample says itself where its parts are.
 */
static inline ItemEncoding item_template_init(ItemTemplate *t, const EncodePlan *p, uint32_t cpu, uint32_t raw_size) {
        const ItemHead *h = &p->heads[cpu == 0 ? HEAD_WITHOUT_CPU : 0];
        size_t rest = h->size - h->content, content, most, begin;
        uint32_t value = htole32(cpu);
        int shift;

        if (p->encoding == ITEM_VARIABLE)
                return ITEM_VARIABLE;
        item_template_set_raw(t, p, raw_size);
        t->n_texts = (uint8_t)p->n_texts;
        content = rest + p->numbers_size + 2u * p->n_texts + t->raw_key_size + t->raw_size;
        most = content + (size_t)COMM_SIZE * p->n_texts;
        begin = 1 + wire_varint_size(content);
        if (wire_varint_size(most) != begin - 1 || begin + rest > sizeof(h->bytes))
                return ITEM_FIXED;
        shift = (int)begin - h->content;
        t->head = (ItemHead){ .time = (uint8_t)(h->time + shift), .pid = (uint8_t)(h->pid + shift),
                              .tid = (uint8_t)(h->tid + shift), .content = (uint8_t)begin, .size = (uint8_t)(begin + rest) };
        t->head.bytes[0] = h->bytes[0];
        wire_put_length(t->head.bytes + 1, content);
        memcpy(t->head.bytes + begin, h->bytes + h->content, rest);
        if (cpu != 0)
                memcpy(t->head.bytes + h->cpu + shift, &value, sizeof(value));
        t->length = (uint32_t)(begin + most);
        return item_template_set_piece(t, p);
}

/* A sample that has all, as above. encoding: the template's, a constant where this is inlined into a loop. */
static inline __attribute__((always_inline)) uint8_t *item_put_template(const ItemTemplate *t, const EncodePlan *p, const Record *r,
                                                                    ItemEncoding encoding, uint8_t *to) {
        uint8_t *at = item_put_values(&t->head, r, to);

        if (encoding == ITEM_ONE_COPY || t->piece_size > 0) {
                if (t->piece_size < ITEM_PIECE_MIN || t->piece_size > ITEM_PIECE_MAX)
                        __builtin_unreachable();
                copy_short(at, r->raw + t->piece, t->piece_size);
                if (encoding == ITEM_ONE_COPY)
                        return to + t->length;
                at += t->piece_size;
        } else
                at = item_put_numbers(at, p, r);
        for (size_t i = 0; i < t->n_texts; i++)
                at = item_put_comm_text(at, r->raw + p->comms[i]);
        if (t->raw_key_size > 0) {
                memcpy(at, t->raw_key, sizeof(uint64_t));
                copy_short(at + t->raw_key_size, r->raw, t->raw_size);
                at += t->raw_key_size + t->raw_size;
        }
        if (t->n_texts > 0)
                wire_put_length(to + 1, (size_t)(at - to) - t->head.content);
        return at;
}
