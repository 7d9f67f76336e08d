/* For tests of recordings: whole ones, of one event, with all that a test asks of them. */
#pragma once

#include "client/perfd.h"
#include "tests/unit/built-recording.h"

#define FLAGS (PERFD_ATTR_FREQ | PERFD_ATTR_SAMPLE_ID_ALL | UINT64_C(2) << 15 | 1) /* 2: of precise_ip */
#define N_FEATURES 8

static inline void build_sample(Built *b, uint64_t ip) {
        const size_t at = built_record(b, 9, 2);

        built_u64(b, ip);
        built_u32(b, 10);
        built_u32(b, 11);
        built_record_end(b, at);
}

static inline void build_comm(Built *b) {
        const size_t at = built_record(b, 3, 0);

        built_u32(b, 10);
        built_u32(b, 11);
        built_bytes(b, "program\0", 8);
        built_record_end(b, at);
}

static inline void build_records(Built *b) {
        size_t at;

        build_comm(b);
        for (uint64_t i = 0; i < 5; i++)
                build_sample(b, 0x1000 + i);
        at = built_record(b, PERF_DATA_AUXTRACE, 0);
        built_u64(b, 24); /* bytes behind it */
        built_zeros(b, 32);
        built_record_end(b, at);
        built_zeros(b, 24);
        at = built_record(b, PERF_DATA_FINISHED_ROUND, 0);
        built_record_end(b, at);
}

static inline void build_event_desc(Built *b, size_t attr_size) {
        built_u32(b, 1);
        built_u32(b, (uint32_t)attr_size);
        built_attr(b, attr_size, 1, 2, 3, FLAGS);
        built_u32(b, 2);
        built_string(b, "page-faults");
        built_u64(b, 100);
        built_u64(b, 101);
}

static inline void build_build_id(Built *b) {
        const size_t at = built_record(b, 0, PERF_DATA_BUILD_ID_HAS_SIZE | 2);

        built_u32(b, UINT32_MAX); /* pid */
        built_bytes(b, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\0\0\0\0\20\0\0\0", 24); /* 16 of them */
        built_bytes(b, "/bin/program\0\0\0", 16);
        built_record_end(b, at);
}

static inline void build_feature(Built *b, unsigned bit, size_t attr_size) {
        switch (bit) {
        case PERF_DATA_FEATURE_BUILD_ID:
                build_build_id(b);
                break;
        case PERF_DATA_FEATURE_HOSTNAME:
                built_string(b, "host");
                break;
        case PERF_DATA_FEATURE_NRCPUS:
                built_u32(b, 4);
                built_u32(b, 2);
                break;
        case PERF_DATA_FEATURE_TOTAL_MEM:
                built_u64(b, 1 << 20);
                break;
        case PERF_DATA_FEATURE_CMDLINE:
                built_u32(b, 2);
                built_string(b, "perf");
                built_string(b, "record");
                break;
        case PERF_DATA_FEATURE_EVENT_DESC:
                build_event_desc(b, attr_size);
                break;
        case PERF_DATA_FEATURE_SAMPLE_TIME:
                built_u64(b, 5);
                built_u64(b, 6);
                break;
        }
}

static const unsigned features[] = { PERF_DATA_FEATURE_BUILD_ID,  PERF_DATA_FEATURE_HOSTNAME,   PERF_DATA_FEATURE_NRCPUS,
                                     PERF_DATA_FEATURE_TOTAL_MEM, PERF_DATA_FEATURE_CMDLINE,    PERF_DATA_FEATURE_EVENT_DESC,
                                     PERF_DATA_FEATURE_STAT,      PERF_DATA_FEATURE_SAMPLE_TIME };
_Static_assert(sizeof(features) / sizeof(features[0]) == N_FEATURES, "one for each");

/* has_words_of_32: by a machine whose unsigned long has 32 bits. */
static inline void build_bits(Built *b, bool has_words_of_32) {
        uint64_t words[4] = { 0 };

        for (size_t i = 0; i < N_FEATURES; i++)
                words[features[i] / 64] |= UINT64_C(1) << features[i] % 64;
        for (size_t i = 0; i < 4; i++)
                if (has_words_of_32) {
                        built_u32(b, (uint32_t)words[i]);
                        built_u32(b, (uint32_t)(words[i] >> 32));
                } else
                        built_u64(b, words[i]);
}

static inline void build_file(Built *b, bool swap, size_t attr_size, bool has_words_of_32) {
        size_t data, data_end;

        b->swap = swap;
        b->n = 0;
        built_u64(b, PERF_DATA_MAGIC);
        built_u64(b, PERF_DATA_HEADER_SIZE);
        built_u64(b, attr_size + PERF_DATA_SECTION);
        built_u64(b, 120); /* attrs */
        built_u64(b, attr_size + PERF_DATA_SECTION);
        built_zeros(b, 16); /* data */
        built_zeros(b, 16);
        build_bits(b, has_words_of_32);
        assert_int_equal(b->n, PERF_DATA_HEADER_SIZE);
        built_u64(b, 100); /* ids */
        built_u64(b, 101);
        built_attr(b, attr_size, 1, 2, 3, FLAGS);
        built_u64(b, PERF_DATA_HEADER_SIZE);
        built_u64(b, 16);
        data = b->n;
        build_records(b);
        data_end = b->n;
        built_u64_at(b, 40, data);
        built_u64_at(b, 48, data_end - data);
        built_zeros(b, N_FEATURES * PERF_DATA_SECTION);
        for (size_t i = 0; i < N_FEATURES; i++) {
                const size_t at = b->n;

                build_feature(b, features[i], attr_size);
                built_u64_at(b, data_end + i * PERF_DATA_SECTION, at);
                built_u64_at(b, data_end + i * PERF_DATA_SECTION + 8, b->n - at);
        }
}

static inline void build_pipe(Built *b, bool swap, size_t attr_size) {
        size_t at;

        b->swap = swap;
        b->n = 0;
        built_u64(b, PERF_DATA_MAGIC);
        built_u64(b, PERF_DATA_PIPE_SIZE);
        at = built_record(b, PERF_DATA_HEADER_ATTR, 0);
        built_attr(b, attr_size, 1, 2, 3, FLAGS);
        built_u64(b, 100);
        built_u64(b, 101);
        built_record_end(b, at);
        at = built_record(b, PERF_DATA_EVENT_UPDATE, 0);
        built_u64(b, 2); /* a name */
        built_u64(b, 101);
        built_bytes(b, "page-faults\0\0\0\0", 16);
        built_record_end(b, at);
        for (size_t i = 0; i < N_FEATURES; i++) {
                if (features[i] == PERF_DATA_FEATURE_BUILD_ID) {
                        const size_t from = b->n;

                        build_build_id(b);
                        b->n = from; /* its type is another one here */
                        built_u32(b, PERF_DATA_HEADER_BUILD_ID);
                        b->n = from + 8 + 4 + 24 + 16;
                        continue;
                }
                at = built_record(b, PERF_DATA_HEADER_FEATURE, 0);
                built_u64(b, features[i]);
                build_feature(b, features[i], attr_size);
                built_record_end(b, at);
        }
        for (uint64_t bit = 22; bit < 36; bit += 13) { /* what ends them: the first number that this perf knew none of */
                at = built_record(b, PERF_DATA_HEADER_FEATURE, 0);
                built_u64(b, bit);
                built_record_end(b, at);
        }
        at = built_record(b, PERF_DATA_HEADER_TRACING_DATA, 0);
        built_u32(b, 13);
        built_record_end(b, at);
        built_zeros(b, 16);
        build_records(b);
}
