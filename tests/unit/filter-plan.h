/*
 * For the tests, the fuzzer and the benchmark of the filter language: an event that has a field of every kind, width,
 * sign and place, its raw bytes as a struct, and one sample of it.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/model/plan.h"
#include "daemon/model/record.h"

typedef struct __attribute__((packed)) SampleBytes {
        uint8_t head[8]; /* the common_ fields */
        uint8_t u8;
        int8_t s8;
        uint16_t u16;
        int16_t s16;
        uint32_t u32;
        int32_t s32;
        uint64_t u64;
        int64_t s64;
        uint64_t ptr;
        uint8_t flag;
        char prev_comm[16], next_comm[16];
        uint64_t args[3];
        int16_t small[4];
        uint32_t filename, path; /* __data_loc, __rel_loc char[] */
        uint32_t list, longs;    /* __data_loc u32[], __rel_loc s64[] */
        int32_t flags;
        uint64_t state;
        int32_t err;
        uint8_t blob[3];
        int32_t pid;
        uint8_t rest[160]; /* what the dynamic places point at */
} SampleBytes;

#define FIELD_AT(member, k, n) \
        { #member, k, PLACE_FIXED, offsetof(SampleBytes, member), sizeof(((SampleBytes *)0)->member) / (n), n }
#define TEXT_AT(member) \
        { #member, FIELD_TEXT, PLACE_FIXED, offsetof(SampleBytes, member), 1, sizeof(((SampleBytes *)0)->member) }
#define DYNAMIC_AT(member, k, place, size) { #member, k, place, offsetof(SampleBytes, member), size, 0 }

static const struct {
        const char *name;
        FieldKind kind;
        FieldPlace place;
        size_t offset, element_size, count;
} filter_plan_fields[] = {
        FIELD_AT(u8, FIELD_UNSIGNED, 1),
        FIELD_AT(s8, FIELD_SIGNED, 1),
        FIELD_AT(u16, FIELD_UNSIGNED, 1),
        FIELD_AT(s16, FIELD_SIGNED, 1),
        FIELD_AT(u32, FIELD_UNSIGNED, 1),
        FIELD_AT(s32, FIELD_SIGNED, 1),
        FIELD_AT(u64, FIELD_UNSIGNED, 1),
        FIELD_AT(s64, FIELD_SIGNED, 1),
        FIELD_AT(ptr, FIELD_POINTER, 1),
        FIELD_AT(flag, FIELD_BOOL, 1),
        TEXT_AT(prev_comm),
        TEXT_AT(next_comm),
        FIELD_AT(args, FIELD_UNSIGNED, 3),
        FIELD_AT(small, FIELD_SIGNED, 4),
        DYNAMIC_AT(filename, FIELD_TEXT, PLACE_DATA_LOC, 1),
        DYNAMIC_AT(path, FIELD_TEXT, PLACE_REL_LOC, 1),
        DYNAMIC_AT(list, FIELD_UNSIGNED, PLACE_DATA_LOC, 4),
        DYNAMIC_AT(longs, FIELD_SIGNED, PLACE_REL_LOC, 8),
        FIELD_AT(flags, FIELD_SIGNED, 1),
        FIELD_AT(state, FIELD_UNSIGNED, 1),
        FIELD_AT(err, FIELD_SIGNED, 1),
        { "blob", FIELD_BYTES, PLACE_FIXED, offsetof(SampleBytes, blob), 1, 3 },
        FIELD_AT(pid, FIELD_SIGNED, 1),
};

static const struct {
        const char *field, *name;
        uint64_t value;
} filter_plan_values[] = {
        { "flags", "O_CREAT", 0x40 },
        { "flags", "O_EXCL", 0x80 },
        { "flags", "TOP", 0x80000000 }, /* of a signed field: its lowest number */
        { "state", "R", 0 },
        { "state", "S", 1 },
        { "state", "R+", 0x100 },
        { "err", "EPERM", UINT64_MAX }, /* -1 in 64 bits */
        { "err", "ENOENT", 0xfffffffe }, /* -2 in 32 bits */
};

static inline Plan *filter_plan_new(void) {
        Plan *p = plan_new(7, "test", "event");

        assert(p);
        for (size_t i = 0; i < ARRAY_SIZE(filter_plan_fields); i++) {
                PlanField *f = plan_add_field(p, filter_plan_fields[i].name, "");

                assert(f);
                f->kind = filter_plan_fields[i].kind;
                f->place = filter_plan_fields[i].place;
                f->offset = (uint32_t)filter_plan_fields[i].offset;
                f->element_size = (uint32_t)filter_plan_fields[i].element_size;
                f->count = (uint32_t)filter_plan_fields[i].count;
                for (size_t k = 0; k < ARRAY_SIZE(filter_plan_values); k++)
                        if (strcmp(filter_plan_values[k].field, f->name) == 0)
                                assert(plan_field_add_value(f, filter_plan_values[k].value,
                                                            filter_plan_values[k].name) == 0);
        }
        p->min_size = offsetof(SampleBytes, rest);
        return p;
}

/* The u32 of a dynamic field whose `size` bytes begin `at` in rest. */
static inline uint32_t sample_data_loc(size_t at, size_t size) {
        return (uint32_t)(size << 16 | (offsetof(SampleBytes, rest) + at));
}

static inline uint32_t sample_rel_loc(size_t loc_offset, size_t at, size_t size) {
        return (uint32_t)(size << 16 | (offsetof(SampleBytes, rest) + at - loc_offset - sizeof(uint32_t)));
}

#define SAMPLE_FILENAME "/var/log/nginx/access.log"

static inline void sample_init(SampleBytes *b) {
        const uint32_t list[] = { 10, 20, UINT32_MAX };
        const int64_t longs[] = { -5 };

        *b = (SampleBytes){
                .u8 = 200, .s8 = -3, .u16 = 60000, .s16 = -300, .u32 = 4000000000u, .s32 = -1, .u64 = UINT64_MAX,
                .s64 = INT64_MIN, .ptr = 0xffff888000000000, .flag = 1, .prev_comm = "postgres",
                .args = { 1, (uint64_t)1 << 63, 3 }, .small = { -1, 2, INT16_MIN, INT16_MAX },
                .flags = (int32_t)0x80000040, .state = 0x100, .err = -2, .pid = 77,
                .filename = sample_data_loc(0, sizeof(SAMPLE_FILENAME)),
                .path = sample_rel_loc(offsetof(SampleBytes, path), 40, 3), /* without a zero */
                .list = sample_data_loc(43, sizeof(list)),
                .longs = sample_rel_loc(offsetof(SampleBytes, longs), 60, sizeof(longs)),
        };
        memcpy(b->next_comm, "abcdefghijklmnop", 16); /* without a zero */
        memcpy(b->rest, SAMPLE_FILENAME, sizeof(SAMPLE_FILENAME));
        memcpy(b->rest + 40, "rel", 3);
        memcpy(b->rest + 43, list, sizeof(list));
        memcpy(b->rest + 60, longs, sizeof(longs));
}

/* Raw bytes may be at any alignment: those of a sample are 4 bytes behind a multiple of 8. */
static inline Record sample_record(const SampleBytes *b) {
        return (Record){ .type = 9, .pid = 1000, .tid = 1001, .cpu = 3, .time = 5000000000, .comm = "nginx", .ip = 0x400000,
                         .addr = UINT64_MAX, .period = 99, .raw = (const uint8_t *)b, .raw_size = sizeof(*b) };
}
