/*
 * For the tests of runs: an event that nearly all samples are of and three others, in a snapshot that says who wants them,
 * under which condition and in which encodings.
 */
#pragma once

#include "tests/unit/format-file.h"
#include "tests/unit/reader-checks.h"

enum { RUN, OTHER, UNWANTED, MUTED, N_EVENTS }; /* an event that nearly all samples are of, and those of the rest */

enum { /* as Shape.payload */
        ALL = _PAYLOAD_MAX, /* each, one of them for two subscriptions */
        THRICE,             /* fields, for each of three */
        TWICE,              /* fields, one encoding for two */
};

typedef struct Shape {
        const char *format, *where; /* NULL: nobody asks */
        unsigned payload;           /* Payload, or how many there are */
        uint32_t cpu;
        bool exclude_self, is_unwanted;
        uint32_t mix; /* one in so many samples is not of RUN */
        unsigned layout; /* of the numbers of subscriptions */
} Shape;

/* All of the first group, all of another one, of two, each of its own. */
#define LAYOUTS 4

static inline uint32_t number_of(const Shape *shape, uint32_t bit) {
        const uint32_t numbers[LAYOUTS] = { bit, 9 * BATCH_BITS + bit, 62 + bit, 97 * bit };

        return numbers[shape->layout];
}

/* Ids that all lead to the same place of the hash. */
static inline uint64_t stream_id(size_t event) {
        uint64_t id = 1;

        for (size_t n = 0; snapshot_hash(id) % 8 != 7 || n++ < event; id++)
                ;
        return id;
}

static inline void set_routes(SnapshotEvent *e, const Shape *shape, unsigned event) {
        if (shape->is_unwanted || event == UNWANTED)
                return;
        if (shape->payload < ALL) {
                rig_route(e, number_of(shape, 5 + event), 0, shape->where);
                return;
        }
        if (shape->payload == TWICE) {
                rig_route(e, number_of(shape, 3), 0, shape->where);
                rig_route(e, number_of(shape, 9), 0, NULL);
                return;
        }
        rig_route(e, number_of(shape, 0), 0, shape->exclude_self ? shape->where : NULL);
        rig_route(e, number_of(shape, 1), 1, shape->where);
        rig_route(e, number_of(shape, 2), 0, shape->where);
        rig_route(e, number_of(shape, 3), 2, shape->exclude_self ? shape->where : NULL);
}

typedef struct MadeField {
        const char *name;
        FieldKind kind;
        uint32_t size, count;
} MadeField;

/* Numbers of all widths with names: the length of an item needs one byte or two. */
static const MadeField widths[] = {
        { "u8", FIELD_UNSIGNED, 1, 1 },  { "s8", FIELD_SIGNED, 1, 1 },  { "u16", FIELD_UNSIGNED, 2, 1 }, { "s16", FIELD_SIGNED, 2, 1 },
        { "u32", FIELD_UNSIGNED, 4, 1 }, { "s32", FIELD_SIGNED, 4, 1 }, { "s64", FIELD_SIGNED, 8, 1 },   { "name", FIELD_TEXT, 1, 16 },
        { "u64", FIELD_UNSIGNED, 8, 1 }, { "other", FIELD_TEXT, 1, 16 },
};
/* More bytes than are copied in place. */
static const MadeField many[] = { { "list", FIELD_UNSIGNED, 8, 33 } };
/* Numbers that are one copy, and a name behind them. */
static const MadeField words[] = { { "list", FIELD_UNSIGNED, 8, 4 }, { "name", FIELD_TEXT, 1, 16 } };

static const struct {
        const char *name;
        const MadeField *fields;
        size_t n;
} made[] = { { "widths", widths, ARRAY_SIZE(widths) },
             { "many", many, ARRAY_SIZE(many) },
             { "words", words, ARRAY_SIZE(words) } };

static inline Plan *make_plan(const char *format) {
        size_t i = 0;
        Plan *plan;

        while (i < ARRAY_SIZE(made) && strcmp(made[i].name, format) != 0)
                i++;
        if (i == ARRAY_SIZE(made))
                return format_file_plan(format);
        plan = plan_new(1, "made", format);
        assert_non_null(plan);
        plan->min_size = RIG_COMMON;
        for (const MadeField *from = made[i].fields, *end = from + made[i].n; from < end; from++) {
                PlanField *f = plan_add_field(plan, from->name, "made");

                assert_non_null(f);
                f->kind = from->kind;
                f->offset = plan->min_size;
                f->element_size = from->size;
                f->count = from->count;
                plan->min_size += from->size * from->count;
        }
        return plan;
}

static inline void set_snapshot(Rig *rig, const Shape *shape) {
        static const Payload all[] = { PAYLOAD_FIELDS, PAYLOAD_RAW, PAYLOAD_BOTH }, thrice[3] = { PAYLOAD_FIELDS };
        Payload one = (Payload)shape->payload;
        bool is_one = shape->payload < ALL;
        _cleanup_(plan_unrefp) Plan *plan = make_plan(shape->format);
        Snapshot *s = snapshot_new(1, 1, N_EVENTS);
        SnapshotStream *streams = snapshot_streams_new(N_EVENTS);

        assert_true(s && streams && plan);
        for (size_t i = 0; i < N_EVENTS; i++) {
                rig_event(s, i, plan, &rig->plain, is_one ? &one : shape->payload == ALL ? all : thrice,
                          is_one || shape->payload == TWICE ? 1 : ARRAY_SIZE(all));
                set_routes(&s->events[i], shape, (unsigned)i);
                s->events[i].exclude_self = shape->exclude_self;
                s->events[i].table->needs_comm = shape->where && strstr(shape->where, "sample.comm");
                rig_finish_event(&s->events[i]);
                streams[i] = (SnapshotStream){ .id = stream_id(i), .fd = -1, .record_layout = RECORD_LAYOUT_BASE, .is_standby = i == MUTED,
                                               .event = (uint32_t)i };
        }
        assert_int_equal(snapshot_set_streams(s, 0, streams, N_EVENTS), 0);
        assert_int_equal(s->cpus[0].mask, 7);
        snapshot_unref(rig->reader.snapshot);
        rig->reader.snapshot = s;
        rig->reader.cpu = rig->reader.in_place.cpu = shape->cpu;
}
