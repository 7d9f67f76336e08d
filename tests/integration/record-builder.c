/*
 * Writes a perf.data of records that no machine here can make: `record-builder FILE SAMPLE-TYPE [N [READ-FORMAT
 * BRANCH-SAMPLE-TYPE REGS-USER REGS-INTR]]`, numbers as strtoull(3) takes them, for samples of one event, with rising
 * times, as tests/unit/built-sample.h builds them; `record-builder FILE side` for those of tests/unit/side-records.h.
 */
#include <stdlib.h>

#include "tests/integration/recording.h"
#include "tests/unit/built-sample.h"
#include "tests/unit/side-records.h"

#define ID 5
#define SIDE_ID 0x21 /* in the trailer */

static uint64_t argument(int argc, char **argv, int i, uint64_t otherwise) {
        return argc > i ? strtoull(argv[i], NULL, 0) : otherwise;
}

static size_t word_of(const BuiltSample *b, uint64_t bit) {
        size_t at = 1 + built_has(b, PERF_SAMPLE_IDENTIFIER);

        if (bit == PERF_SAMPLE_IP)
                return at;
        at += built_has(b, PERF_SAMPLE_IP);
        return bit == PERF_SAMPLE_TID ? at : at + 1;
}

/* perf takes hw_idx for granted. */
static bool is_for_perf(const BuiltSample *b) {
        return !built_has(b, PERF_SAMPLE_BRANCH_STACK) || !(b->attr.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) ||
               b->n_branches > 0 || b->hw_index != UINT64_MAX;
}

static uint64_t records[1 << 16];
static size_t n_words;

static void append(const uint64_t *words, size_t size) {
        memcpy(records + n_words, words, size);
        n_words += size / sizeof(*words);
}

static void append_samples(const struct perf_event_attr *attr, uint64_t n) {
        static BuiltSample b;

        for (uint64_t seed = 1, made = 0; made < n; seed++) {
                memset(&b, 0, sizeof(b));
                b.state = seed * 0x9E3779B97F4A7C15ULL;
                b.attr = *attr;
                built_sample_fill(&b);
                if (!is_for_perf(&b))
                        continue;
                b.words[1] = ID;
                b.words[word_of(&b, PERF_SAMPLE_TID)] = 1ULL << 32 | 1;
                b.words[word_of(&b, PERF_SAMPLE_TIME)] = 1000 * ++made;
                append(b.words, built_size(&b));
        }
}

#define APPEND(record) append((record), sizeof(record))

static void append_side_records(void) {
        APPEND(RECORD_SWITCH_IN);
        APPEND(RECORD_SWITCH_OUT);
        APPEND(RECORD_NAMESPACES);
        APPEND(RECORD_KSYMBOL);
        APPEND(RECORD_BPF_EVENT);
        APPEND(RECORD_CGROUP);
        APPEND(RECORD_TEXT_POKE);
        APPEND(RECORD_ITRACE_START);
        APPEND(RECORD_HW_ID);
        for (size_t i = 0, time = 0; i < n_words; i += records[i] >> 51) /* of each: the word before its last */
                records[i + (records[i] >> 51) - 2] = 1000 * ++time;
}

int main(int argc, char **argv) {
        FILE *f = argc > 2 ? fopen(argv[1], "w") : NULL;
        struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
                                        .sample_period = 1, .sample_id_all = 1 };
        uint64_t id = ID;

        if (!f) {
                perror("record-builder");
                return EXIT_FAILURE;
        }
        attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        if (strcmp(argv[2], "side") == 0) {
                id = SIDE_ID;
                append_side_records();
        } else {
                attr.sample_type |= argument(argc, argv, 2, 0);
                attr.read_format = argument(argc, argv, 4, PERF_FORMAT_ID);
                attr.branch_sample_type = argument(argc, argv, 5, PERF_SAMPLE_BRANCH_ANY);
                attr.sample_regs_user = argument(argc, argv, 6, 0x1ff);
                attr.sample_regs_intr = argument(argc, argv, 7, 0x1ff);
                append_samples(&attr, argument(argc, argv, 3, 20));
        }
        if (!recording_write(f, &attr, 1, &id, &(size_t){ 1 }, records, n_words * sizeof(uint64_t)) || fclose(f) != 0) {
                perror(argv[1]);
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
