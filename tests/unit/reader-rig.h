/*
 * For the tests and the fuzzer of the reader: a reader without a thread on a ring in memory, records as the kernel
 * writes them, and one snapshot that has every way a record can go.
 *
 *     stream  event                                          routes
 *     1       NUMBERS: | common (8) | u64 value |            bit 0 always; bit 1, raw, if value & 1; bit 2 if value >= 1000
 *     2       NUMBERS, on standby
 *     3       SOFTWARE: no plan, without our own process     bit 3; bit 6 if comm ~ "wanted*"
 *     4       UNWANTED                                       none
 *     5       LONG: | common (8) | __data_loc u8 list[] |    bit 4, raw; bit 5: each element may take two bytes
 *     6       FAULTS: as SOFTWARE, with an id of its own     bit 7
 *     7       OFTEN: the same with a period                  bit 11
 *     100     the carrier                                    COMM, FORK: bit 8; EXIT, MMAP2: bit 9
 *
 * Loss and throttle records of the carrier go to bit 10, those of an event to the bits of its routes.
 */
#pragma once

#include <assert.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/encode/item.h"
#include "daemon/reader/cycle.h"
#include "daemon/reader/route-sample.h"
#include "daemon/route/match.h"

enum {
        RIG_NUMBERS,
        RIG_SOFTWARE,
        RIG_UNWANTED,
        RIG_LONG,
        RIG_FAULTS,
        RIG_OFTEN,
        RIG_EVENTS,
};

#define RIG_EVENT_ID(index) (11 + (uint32_t)(index))
#define RIG_STREAMS 7
#define RIG_CARRIER 100
#define RIG_OWN_PID 4242
#define RIG_COMMON 8

typedef struct Rig {
        uint8_t *memory;
        struct perf_event_mmap_page *page;
        uint8_t *data;
        size_t size;
        SampleLayout plain, software, faults, often;
        CommTable comms;
        Dispatching dispatching;
        Reader reader;
} Rig;

static inline void rig_drop_references(RouteTable *t) {
        for (size_t k = 0; k < t->n_routes; k++)
                match_program_unref((MatchProgram *)t->routes[k].program);
        for (size_t k = 0; k < t->n_encodings; k++)
                encode_plan_unref(t->encodings[k]);
}

static inline MatchProgram *rig_program(const char *expression, const Plan *plan) {
        _cleanup_(filter_freep) Filter *filter = NULL;
        MatchProgram *program = NULL;
        Explanation e;
        int r = filter_parse(expression, &filter, &e);

        assert(r == 0);
        r = filter_compile(filter, plan, NULL, &program, &e);
        assert(r == 0);
        return program;
}

#define RIG_ROUTES 8

/* The payloads are the encodings. Takes a reference to the plan. */
static inline void rig_event(Snapshot *s, size_t i, Plan *plan, const SampleLayout *layout, const Payload *payloads, size_t n) {
        EventSpec spec = EVENT_SPEC_NULL;
        SnapshotEvent *e = &s->events[i];

        e->event = event_new(RIG_EVENT_ID(i), &spec, plan, 1);
        e->layout = layout;
        e->table = route_table_new(RIG_ROUTES, n);
        assert(e->event && e->table);
        e->table->deinit = rig_drop_references;
        for (RouteTable *t = e->table; t->n_encodings < n; t->n_encodings++) {
                t->encodings[t->n_encodings] = encode_plan_new(plan, RIG_EVENT_ID(i), payloads[t->n_encodings], NULL, 0);
                assert(t->encodings[t->n_encodings]);
        }
}

static inline void rig_route(SnapshotEvent *e, uint32_t number, uint32_t encoding, const char *expression) {
        RouteTable *t = e->table;

        assert(t->n_routes < RIG_ROUTES);
        t->routes[t->n_routes++] = (Route){ .number = number, .encoding = encoding,
                                            .program = expression ? rig_program(expression, e->event->plan) : NULL };
}

/* It has its routes. */
static inline void rig_finish_event(SnapshotEvent *e) {
        int r = route_table_prepare(e->table, false);

        assert(r == 0);
        snapshot_set_routes(e, e->table);
}

static inline Snapshot *rig_snapshot_new(const Rig *rig, uint64_t generation) {
        static const Payload both[] = { PAYLOAD_FIELDS, PAYLOAD_RAW }, raw_first[] = { PAYLOAD_RAW, PAYLOAD_FIELDS };
        _cleanup_(plan_unrefp) Plan *numbers = plan_new(1, "rig", "numbers"), *longs = plan_new(2, "rig", "long");
        Snapshot *s = snapshot_new(generation, 1, RIG_EVENTS);
        SnapshotStream *streams = snapshot_streams_new(RIG_STREAMS);
        PlanField *f;
        int r;

        assert(numbers && longs && s && streams);
        f = plan_add_field(numbers, "value", "u64 value");
        assert(f);
        f->kind = FIELD_UNSIGNED;
        f->offset = RIG_COMMON;
        f->element_size = 8;
        numbers->min_size = RIG_COMMON + 8;
        f = plan_add_field(longs, "list", "__data_loc u8[] list");
        assert(f);
        f->kind = FIELD_UNSIGNED;
        f->place = PLACE_DATA_LOC;
        f->offset = RIG_COMMON;
        f->count = 0;
        longs->min_size = RIG_COMMON + 4;

        rig_event(s, RIG_NUMBERS, numbers, &rig->plain, both, 2);
        rig_route(&s->events[RIG_NUMBERS], 0, 0, NULL);
        rig_route(&s->events[RIG_NUMBERS], 1, 1, "value & 1");
        rig_route(&s->events[RIG_NUMBERS], 2, 0, "value >= 1000");
        rig_event(s, RIG_SOFTWARE, NULL, &rig->software, both, 1);
        rig_route(&s->events[RIG_SOFTWARE], 3, 0, NULL);
        rig_route(&s->events[RIG_SOFTWARE], 6, 0, "comm ~ \"wanted*\"");
        s->events[RIG_SOFTWARE].exclude_self = s->events[RIG_SOFTWARE].table->needs_comm = true;
        rig_event(s, RIG_UNWANTED, NULL, &rig->plain, both, 1);
        rig_event(s, RIG_LONG, longs, &rig->plain, raw_first, 2);
        rig_route(&s->events[RIG_LONG], 4, 0, NULL);
        rig_route(&s->events[RIG_LONG], 5, 1, NULL);
        rig_event(s, RIG_FAULTS, NULL, &rig->faults, both, 1);
        rig_route(&s->events[RIG_FAULTS], 7, 0, NULL);
        rig_event(s, RIG_OFTEN, NULL, &rig->often, both, 1);
        rig_route(&s->events[RIG_OFTEN], 11, 0, NULL);

        for (size_t i = 0; i < RIG_EVENTS; i++)
                rig_finish_event(&s->events[i]);
        streams[0] = (SnapshotStream){ .id = 1, .fd = -1, .record_layout = RECORD_LAYOUT_BASE, .event = RIG_NUMBERS };
        streams[1] = (SnapshotStream){ .id = 2, .fd = -1, .record_layout = RECORD_LAYOUT_BASE, .event = RIG_NUMBERS, .is_standby = true };
        streams[2] = (SnapshotStream){ .id = 3, .fd = -1, .event = RIG_SOFTWARE };
        streams[3] = (SnapshotStream){ .id = 4, .fd = -1, .record_layout = RECORD_LAYOUT_BASE, .event = RIG_UNWANTED };
        streams[4] = (SnapshotStream){ .id = 5, .fd = -1, .record_layout = RECORD_LAYOUT_BASE, .event = RIG_LONG };
        streams[5] = (SnapshotStream){ .id = 6, .fd = -1, .event = RIG_FAULTS, .is_shared = true };
        streams[6] = (SnapshotStream){ .id = 7, .fd = -1, .event = RIG_OFTEN, .is_shared = true };
        r = snapshot_set_streams(s, 0, streams, RIG_STREAMS);
        assert(r == 0);
        for (unsigned i = 0; i < 4; i++)
                subscription_set_add(&s->record_wants[i], 8 + i / 2);
        subscription_set_add(&s->all_want, 10);
        return s;
}

/* Samples that read a value, an id and losses, which nobody has asked for. */
static inline void rig_layout_with_id(SampleLayout *l, uint64_t sample_type) {
        struct perf_event_attr attr = { .size = sizeof(attr), .sample_id_all = 1, .sample_type = sample_type | PERF_SAMPLE_READ,
                                        .read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST };
        int r = sample_layout_init(l, &attr);

        assert(r == 0);
        sample_layout_hide_read(l);
}

/* size: of the ring, a power of two; n_batches: at least two. */
static inline void rig_init(Rig *rig, size_t size, size_t n_batches) {
        size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
        int r;

        *rig = (Rig){ .size = size, .memory = aligned_alloc(page_size, page_size + size) };
        assert(rig->memory);
        memset(rig->memory, 0, page_size + size);
        rig->page = (struct perf_event_mmap_page *)rig->memory;
        rig->data = rig->memory + page_size;
        r = sample_layout_init_type(&rig->plain, SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW);
        assert(r == 0);
        r = sample_layout_init_type(&rig->software, SAMPLE_TYPE_BASE | PERF_SAMPLE_IP);
        assert(r == 0);
        rig_layout_with_id(&rig->faults, SAMPLE_TYPE_BASE | PERF_SAMPLE_IP);
        rig_layout_with_id(&rig->often, SAMPLE_TYPE_BASE | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
        r = comm_table_init(&rig->comms, 1024);
        assert(r == 0);
        r = doorbell_init(&rig->dispatching.bell);
        assert(r == 0);
        rig->reader = (Reader){ .thread = THREAD_NULL, .clock = CLOCK_MONOTONIC, .carrier_fd = -1,
                                .carrier_id = RIG_CARRIER, .own_pid = RIG_OWN_PID, .base_tick = NSEC_PER_MSEC,
                                .comms = &rig->comms, .dispatching = &rig->dispatching, .acknowledge_fd = -1, .overdue_fd = -1, .stall_fd = -1 };
        r = ring_init_memory(&rig->reader.ring, rig->memory, size);
        assert(r == 0);
        r = reader_init(&rig->reader, n_batches * (BATCH_ARENA + BATCH_ENTRIES * sizeof(BatchEntry)));
        assert(r == 0);
        rig->reader.snapshot = rig_snapshot_new(rig, 1);
}

static inline void rig_deinit(Rig *rig) {
        reader_deinit(&rig->reader);
        comm_table_deinit(&rig->comms);
        doorbell_deinit(&rig->dispatching.bell);
        free(rig->memory);
}

static inline EventCounters *rig_counters(const Rig *rig, size_t event) {
        return &rig->reader.snapshot->events[event].event->counters[0];
}

static inline bool rig_has_room(const Rig *rig, size_t length) {
        return rig->page->data_head + length - __atomic_load_n(&rig->page->data_tail, __ATOMIC_ACQUIRE) <= rig->size;
}

/* As perf_output_begin() and perf_output_end(): false, and nothing written, if the ring is full. */
static inline bool rig_put(Rig *rig, const void *bytes, size_t length) {
        uint64_t head = rig->page->data_head;
        size_t at = head & (rig->size - 1), first = rig->size - at < length ? rig->size - at : length;

        if (!rig_has_room(rig, length))
                return false;
        memcpy(rig->data + at, bytes, first);
        memcpy(rig->data, (const uint8_t *)bytes + first, length - first);
        __atomic_store_n(&rig->page->data_head, head + length, __ATOMIC_RELEASE);
        return true;
}

/* A record of any type; its body, already with the trailer where it has one, is 8-aligned by the caller. */
static inline bool rig_put_record(Rig *rig, uint32_t type, uint16_t misc, const void *body, size_t size) {
        static _Thread_local uint8_t record[64 * 1024];
        struct perf_event_header header = { .type = type, .misc = misc, .size = (uint16_t)(sizeof(header) + size) };

        assert(size % 8 == 0 && sizeof(header) + size < sizeof(record));
        memcpy(record, &header, sizeof(header));
        memcpy(record + sizeof(header), body, size);
        return rig_put(rig, record, sizeof(header) + size);
}

typedef struct RigWho {
        uint32_t pid, tid;
        nsec_t time;
} RigWho;

/* A tracepoint's; raw_size is 4 less than a multiple of 8, as the kernel makes it. */
static inline bool rig_put_sample(Rig *rig, uint64_t id, RigWho who, const void *raw, uint32_t raw_size) {
        static _Thread_local uint8_t body[64 * 1024];

        if (!rig_has_room(rig, 36 + (size_t)raw_size))
                return false;
        memcpy(body, &id, 8);
        memcpy(body + 8, &who, 16);
        memcpy(body + 24, &raw_size, 4);
        memcpy(body + 28, raw, raw_size);
        return rig_put_record(rig, PERF_RECORD_SAMPLE, 0, body, 28 + raw_size);
}

/* Of NUMBERS, or of what is like it; `extra` bytes, a multiple of 8, behind what the plan knows. */
static inline bool rig_put_number(Rig *rig, uint64_t id, RigWho who, uint64_t value, uint32_t extra) {
        static _Thread_local uint8_t raw[60 * 1024];

        memcpy(raw + RIG_COMMON, &value, sizeof(value));
        return rig_put_sample(rig, id, who, raw, RIG_COMMON + 8 + 4 + extra);
}

/* Of LONG, with `n` elements, a multiple of 8. */
static inline bool rig_put_long(Rig *rig, RigWho who, uint32_t n) {
        static _Thread_local uint8_t raw[64 * 1024];
        uint32_t place = n << 16 | (RIG_COMMON + 4);

        memcpy(raw + RIG_COMMON, &place, sizeof(place));
        memset(raw + RIG_COMMON + 4, 0xff, n);
        return rig_put_sample(rig, 5, who, raw, RIG_COMMON + 4 + n);
}

static inline bool rig_put_software(Rig *rig, RigWho who, uint64_t ip) {
        uint64_t body[4] = { 3, ip };

        memcpy(&body[2], &who, sizeof(who));
        return rig_put_record(rig, PERF_RECORD_SAMPLE, 0, body, sizeof(body));
}

/* `named` is the id that the kernel writes, `own` the one that it reads. A period of 0: without one. */
static inline bool rig_put_faults(Rig *rig, uint64_t named, uint64_t own, RigWho who, uint64_t period) {
        uint64_t body[8] = { named, 0x1000 };
        size_t n = 4;

        memcpy(&body[2], &who, sizeof(who));
        if (period)
                body[n++] = period;
        body[n++] = 5; /* value */
        body[n++] = own;
        body[n++] = 0; /* lost */
        return rig_put_record(rig, PERF_RECORD_SAMPLE, 0, body, n * sizeof(*body));
}

/* What is no sample: a body and the trailer TID TIME IDENTIFIER. */
static inline bool rig_put_side(Rig *rig, uint32_t type, uint64_t id, RigWho who, const void *body, size_t size) {
        uint8_t all[512];

        assert(size % 8 == 0 && size + 24 <= sizeof(all));
        memcpy(all, body, size);
        memcpy(all + size, &who, sizeof(who));
        memcpy(all + size + sizeof(who), &id, sizeof(id));
        return rig_put_record(rig, type, 0, all, size + 24);
}

static inline bool rig_put_comm(Rig *rig, RigWho who, const char *comm) {
        uint8_t body[8 + COMM_SIZE] = { 0 };

        memcpy(body, &who, 8);
        strncpy((char *)body + 8, comm, COMM_SIZE - 1);
        return rig_put_side(rig, PERF_RECORD_COMM, RIG_CARRIER, who, body, sizeof(body));
}

static inline bool rig_put_fork(Rig *rig, RigWho parent, uint32_t child) {
        uint32_t body[6] = { child, parent.pid, child, parent.tid };

        return rig_put_side(rig, PERF_RECORD_FORK, RIG_CARRIER, parent, body, sizeof(body));
}

static inline bool rig_put_lost(Rig *rig, uint64_t id, RigWho who, uint64_t lost) {
        uint64_t body[2] = { id, lost };

        return rig_put_side(rig, PERF_RECORD_LOST, id, who, body, sizeof(body));
}

/* The sum that must hold whatever was in the ring. Ends the program if it does not. */
static inline void rig_check_sums(const Rig *rig) {
        const RingCounters *c = &rig->reader.counters;
        uint64_t samples = 0;

        assert(counter_get(&c->records) == counter_get(&c->samples) + counter_get(&c->side_records) +
                                                   counter_get(&c->unknown_id) + counter_get(&c->undecodable));
        for (size_t i = 0; i < RIG_EVENTS; i++) {
                const EventCounters *e = rig_counters(rig, i);

                samples += counter_get(&e->delivered) + counter_get(&e->filtered) + counter_get(&e->duplicates);
                for (int k = 0; k < _LOSS_EVENT_MAX; k++)
                        samples += counter_get(&e->lost[k]);
        }
        assert(samples == counter_get(&c->samples));
}
