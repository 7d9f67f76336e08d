/* For tests of orders: a large recording whose records say which they are, and what must be true of any order of it. */
#pragma once

#define BUILT_MAX ((size_t)32 << 20)
#include <linux/perf_event.h>
#include <stdlib.h>

#include "client/perfd.h"
#include "tests/unit/built-recording.h"

#define WITH_TIME (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define WITHOUT_TIME (PERF_SAMPLE_IP | PERF_SAMPLE_TID)
#define RECORDS_MAX 600000

static inline void order_begin(Built *b, bool swap, uint64_t sample_type) {
        size_t at;

        b->swap = swap;
        b->n = 0;
        built_u64(b, PERF_DATA_MAGIC);
        built_u64(b, PERF_DATA_PIPE_SIZE);
        at = built_record(b, PERF_DATA_HEADER_ATTR, 0);
        built_attr(b, 112, 1, 2, sample_type, PERFD_ATTR_SAMPLE_ID_ALL);
        built_u64(b, 100);
        built_record_end(b, at);
}

/* time 0 is none. */
static inline void order_sample(Built *b, uint64_t number, uint64_t time) {
        const size_t at = built_record(b, PERF_RECORD_SAMPLE, 2);

        built_u64(b, number);
        built_u32(b, 10);
        built_u32(b, 11);
        built_u64(b, time);
        built_record_end(b, at);
}

static inline void order_comm(Built *b, uint64_t number, uint64_t time) {
        const size_t at = built_record(b, PERF_RECORD_COMM, 0);

        built_u64(b, number); /* of which pid and tid are made */
        built_bytes(b, "program\0", 8);
        built_u32(b, 10);
        built_u32(b, 11);
        built_u64(b, time);
        built_record_end(b, at);
}

/* One of perf's own: of n bytes, at least 8. */
static inline void order_own(Built *b, uint64_t number, size_t n) {
        const size_t at = built_record(b, PERF_DATA_BPF_METADATA, 0);

        built_u64(b, number);
        built_zeros(b, n - 8);
        built_record_end(b, at);
}

static inline void order_round(Built *b) {
        built_record_end(b, built_record(b, PERF_DATA_FINISHED_ROUND, 0));
}

/* The same in each run. */
static inline uint64_t order_random(uint64_t *state) {
        *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
        return *state >> 33;
}

typedef struct Given {
        uint32_t type;
        uint64_t number, time; /* its number in the recording; 0: it has no time */
        bool is_compressed;
} Given;

typedef struct Sequence {
        Given list[RECORDS_MAX];
        size_t n;
} Sequence;

static inline bool order_is_state(const Given *g) {
        return g->type == PERF_RECORD_COMM;
}

/* Records that have a number, as they come. Gives what ended it. */
static inline int order_read(perfd_recording *r, Sequence *s) {
        const perfd_recorded *record;
        int code;

        s->n = 0;
        while ((code = perfd_recording_next(r, &record)) == 0) {
                Given g = { .type = record->type, .is_compressed = record->is_compressed };
                perfd_recorded_sample sample;
                perfd_recorded_id id;
                uint64_t number;

                if (record->type != PERF_RECORD_SAMPLE && record->type != PERF_RECORD_COMM && record->type != PERF_DATA_BPF_METADATA)
                        continue;
                assert_true(record->size >= 8);
                memcpy(&number, record->bytes, sizeof(number));
                if ((perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
                        number = bswap_64(number);
                g.number = number;
                assert_int_equal(perfd_recording_id(r, record, &id), 0);
                g.time = (id.has & PERF_SAMPLE_TIME) != 0 && id.time != UINT64_MAX ? id.time : 0;
                if (record->type == PERF_RECORD_SAMPLE) {
                        assert_int_equal(perfd_recording_sample(r, record, &sample), 0);
                        assert_int_equal(sample.ip, number);
                        assert_int_equal(record->misc, 2);
                }
                assert_true(s->n < RECORDS_MAX);
                s->list[s->n++] = g;
        }
        return code;
}

/* Each is there once. */
static inline void order_check_whole(const Sequence *s, size_t n) {
        uint8_t *seen = calloc(n > 0 ? n : 1, 1);

        assert_int_equal(s->n, n);
        for (size_t i = 0; i < n; i++) {
                assert_true(s->list[i].number < n);
                assert_int_equal(seen[s->list[i].number]++, 0);
        }
        free(seen);
}

/* What has no time comes before all that follows it in the recording. */
static inline void order_check_places(const Sequence *s) {
        uint64_t largest = 0;

        for (size_t i = 0; i < s->n; i++) {
                const uint64_t number = s->list[i].number;

                if (s->list[i].time == 0)
                        assert_true(i == 0 || number > largest);
                if (number > largest)
                        largest = number;
        }
}

/* Never backwards, and equal times as they were. */
static inline void order_check_time(const Sequence *s) {
        const Given *last = NULL;

        for (size_t i = 0; i < s->n; i++) {
                const Given *g = &s->list[i];

                if (g->time == 0)
                        continue;
                if (last)
                        assert_true(last->time < g->time || (last->time == g->time && last->number < g->number));
                last = g;
        }
}

/* No state is later than what has its time or a later one; states are in order of time, and the rest is in the order of the recording. */
static inline void order_check_causal(const Sequence *s) {
        uint64_t latest = 0, number = 0, state = 0;

        for (size_t i = 0; i < s->n; i++) {
                const Given *g = &s->list[i];

                if (order_is_state(g) && g->time > 0) {
                        assert_true(g->time > latest && g->time >= state);
                        state = g->time;
                } else {
                        assert_true(number == 0 || g->number > number);
                        number = g->number;
                        latest = g->time > latest ? g->time : latest;
                }
        }
}
