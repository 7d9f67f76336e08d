/*
 * For test-item.c: a random tracepoint with a random sample of it, and what must come out of its item, noted while it
 * is made and not read back. The same seed makes the same sample.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/encode/item.h"

#define MADE_FIELDS 10
#define MADE_NUMBERS 256
#define MADE_CHAIN 40

typedef struct MadeText {
        uint32_t offset, length; /* in raw */
} MadeText;

typedef struct MadeSample {
        uint64_t state; /* of the random numbers */
        Plan *plan;
        EncodePlan *encode;
        Record record;
        uint8_t raw[4096];
        uint32_t raw_size;
        uint64_t chain[MADE_CHAIN];
        char comm[COMM_SIZE];

        uint64_t numbers[MADE_NUMBERS];
        size_t n_numbers;
        MadeText texts[MADE_FIELDS];
        size_t n_texts;
        uint64_t faults[MADE_FIELDS];
        size_t n_faults;
        uint64_t kernel[MADE_CHAIN], user[MADE_CHAIN];
        size_t n_kernel, n_user;
} MadeSample;

static inline uint64_t made_random(MadeSample *m) { /* xorshift64* */
        m->state ^= m->state >> 12;
        m->state ^= m->state << 25;
        m->state ^= m->state >> 27;
        return m->state * 0x2545F4914F6CDD1DULL;
}

static inline uint32_t made_below(MadeSample *m, uint32_t n) {
        return (uint32_t)((made_random(m) >> 32) % n);
}

/* All widths are as likely, and zero and all ones happen. */
static inline uint64_t made_value(MadeSample *m) {
        uint64_t value = made_random(m) >> made_below(m, 64);

        return made_below(m, 12) == 0 ? 0 : made_below(m, 12) == 0 ? UINT64_MAX : value;
}

static inline void made_number(MadeSample *m, const PlanField *f, uint32_t offset, bool sent) {
        uint64_t value = made_value(m);
        unsigned unused = 64 - 8 * f->element_size;

        memcpy(m->raw + offset, &value, f->element_size); /* little-endian */
        value = f->kind == FIELD_SIGNED ? (uint64_t)((int64_t)(value << unused) >> unused) : value << unused >> unused;
        if (sent)
                m->numbers[m->n_numbers++] = value;
}

static inline void made_text(MadeSample *m, const PlanField *f, uint32_t offset, uint32_t size, bool sent) {
        uint32_t length = made_below(m, size + 1);

        for (uint32_t i = 0; i < size; i++)
                m->raw[offset + i] = (uint8_t)(f->kind == FIELD_BYTES ? made_random(m) : 1 + made_below(m, 255));
        if (f->kind == FIELD_BYTES)
                length = size;
        else if (length < size)
                m->raw[offset + length] = 0; /* what is behind it is not the text's */
        if (sent && m->plan->has_faults && f->kind == FIELD_TEXT && f->place != PLACE_FIXED && size == 0)
                m->faults[m->n_faults++] = m->n_texts;
        if (sent)
                m->texts[m->n_texts++] = (MadeText){ offset, length };
}

static inline void made_field(MadeSample *m, PlanField *f, bool sent) {
        uint32_t count = f->count, offset = f->offset;

        if (f->place != PLACE_FIXED) {
                uint32_t bytes, loc;

                count = made_below(m, 12);
                bytes = count * f->element_size;
                offset = m->raw_size + made_below(m, 4);
                m->raw_size = offset + bytes;
                loc = bytes << 16 | (f->place == PLACE_REL_LOC ? offset - f->offset - (uint32_t)sizeof(loc) : offset);
                memcpy(m->raw + f->offset, &loc, sizeof(loc));
                if (sent && field_is_number(f))
                        m->numbers[m->n_numbers++] = count;
        }
        if (!field_is_number(f))
                made_text(m, f, offset, count, sent);
        else
                for (uint32_t i = 0; i < count; i++)
                        made_number(m, f, offset + i * f->element_size, sent);
}

static inline void made_plan(MadeSample *m) {
        uint32_t n = made_below(m, MADE_FIELDS + 1);

        m->plan = plan_new(1, "made", "sample");
        for (uint32_t i = 0; i < n; i++) {
                char name[16];
                PlanField *f;

                snprintf(name, sizeof(name), "f%u", i);
                f = plan_add_field(m->plan, name, name);
                f->kind = (FieldKind)made_below(m, _FIELD_KIND_MAX);
                f->place = made_below(m, 3) ? PLACE_FIXED : made_below(m, 2) ? PLACE_DATA_LOC : PLACE_REL_LOC;
                f->element_size = field_is_number(f) ? 1u << made_below(m, 4) : 1;
                f->count = made_below(m, 2) ? 1 + made_below(m, 12) : field_is_number(f) ? 1 : COMM_SIZE;
                if (f->place != PLACE_FIXED)
                        f->count = 0;
                f->offset = m->raw_size + made_below(m, 4);
                m->raw_size = f->offset + (f->place == PLACE_FIXED ? f->element_size * f->count : 4);
        }
        m->plan->min_size = m->raw_size;
        m->plan->has_faults = made_below(m, 2);
}

/* Kernel addresses, user addresses, and those of a guest, which are not sent. */
static inline void made_chain(MadeSample *m) {
        static const uint64_t markers[] = { (uint64_t)PERF_CONTEXT_KERNEL, (uint64_t)PERF_CONTEXT_USER,
                                            (uint64_t)PERF_CONTEXT_GUEST };
        uint64_t n = made_below(m, 2) ? 0 : made_below(m, MADE_CHAIN + 1);
        int context = 2;

        for (uint64_t i = 0; i < n; i++) {
                if (i == 0 || made_below(m, 8) == 0) {
                        context = (int)made_below(m, 3);
                        m->chain[i] = markers[context];
                        continue;
                }
                m->chain[i] = made_value(m) >> 1 | 1;
                if (context == 0)
                        m->kernel[m->n_kernel++] = m->chain[i];
                else if (context == 1)
                        m->user[m->n_user++] = m->chain[i];
        }
        m->record.callchain = (const uint8_t *)m->chain;
        m->record.n_callchain = n;
}

static inline void made_sample_init(MadeSample *m, uint64_t seed, Payload payload) {
        char *fields[MADE_FIELDS + 1] = { (char[]){ "nope" } };
        bool sent[MADE_FIELDS] = { false }, all;
        size_t n_fields = 1;

        *m = (MadeSample){ .state = seed * 0x9E3779B97F4A7C15ULL + 1 };
        made_plan(m);
        all = made_below(m, 2);
        for (size_t i = m->plan->n_fields; i-- > 0;) { /* backwards: the order of the request does not matter */
                sent[i] = payload != PAYLOAD_RAW && (all || made_below(m, 2));
                if (sent[i])
                        fields[n_fields++] = m->plan->fields[i].name;
        }
        for (size_t i = 0; i < m->plan->n_fields; i++)
                made_field(m, &m->plan->fields[i], sent[i]);
        for (uint32_t i = 0, n = made_below(m, COMM_SIZE); i < n; i++)
                m->comm[i] = (char)(1 + made_below(m, 255));
        m->record = (Record){ .type = PERF_RECORD_SAMPLE, .time = made_value(m), .cpu = (uint32_t)made_value(m),
                              .pid = (uint32_t)made_value(m), .tid = (uint32_t)made_value(m), .ip = made_value(m),
                              .addr = made_value(m), .period = made_value(m), .comm = m->comm, .raw = m->raw,
                              .raw_size = m->raw_size };
        made_chain(m);
        m->encode = encode_plan_new(m->plan, (uint32_t)made_value(m), payload, fields, all ? 0 : n_fields);
}

static inline void made_sample_deinit(MadeSample *m) {
        encode_plan_unref(m->encode);
        plan_unref(m->plan);
}
