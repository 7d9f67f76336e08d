/*
 * What a sample costs between the ring and the batch: record bytes to Record, Record to encoded item, in memory and
 * warm, one CPU, no kernel. The records are captured ones; thousands of rounds over a few hundred copies with changing
 * numbers, so that the branch predictor does not learn one record by heart.
 */
#include <stdio.h>

#include "daemon/base/clock.h"
#include "daemon/decode/fields.h"
#include "daemon/decode/record.h"
#include "daemon/encode/item.h"
#include "tests/unit/format-file.h"
#include "tests/unit/kernel-records.h"

#define COPIES 256
#define ROUNDS 4000
#define RAW_AT 36 /* | header 8 | identifier 8 | pid tid 8 | time 8 | size 4 | raw */

typedef struct Case {
        const char *format;
        const uint64_t *words;
        size_t size;
} Case;

static const Case cases[] = {
        { "raw_syscalls.sys_enter", RECORD_SYS_ENTER, sizeof(RECORD_SYS_ENTER) },
        { "sched.sched_switch", RECORD_SWITCH, sizeof(RECORD_SWITCH) },
        { "sched.sched_process_exec", RECORD_EXEC, sizeof(RECORD_EXEC) },
};

static uint64_t next_random(uint64_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* Copies whose times grow and, for sys_enter, whose arguments are of all widths, as those of real calls are. */
static void make_records(uint64_t *records, const Case *c) {
        uint64_t state = 88172645463325252ULL;

        for (size_t i = 0; i < COPIES; i++) {
                uint64_t *record = records + i * c->size / sizeof(uint64_t);

                memcpy(record, c->words, c->size);
                record[3] += i * 1000; /* time */
                if (c->words != RECORD_SYS_ENTER)
                        continue;
                for (size_t k = 0; k < 6; k++) {
                        uint64_t argument = next_random(&state) >> (17 + next_random(&state) % 40);

                        if (k % 2)
                                argument %= 4096;
                        memcpy((uint8_t *)record + RAW_AT + 16 + k * sizeof(argument), &argument, sizeof(argument));
                }
        }
}

static void print(const Case *c, const char *what, nsec_t took, size_t bytes) {
        printf("%-28s %-16s %6.1f ns", c->format, what, (double)took / COPIES / ROUNDS);
        if (bytes > 0)
                printf("   %zu bytes an item", bytes);
        printf("\n");
}

static void run(const Case *c) {
        _cleanup_(plan_unrefp) Plan *plan = format_file_plan(c->format);
        _cleanup_(encode_plan_unrefp) EncodePlan *encode = encode_plan_new(plan, 7, PAYLOAD_FIELDS, NULL, 0);
        _cleanup_free_ uint64_t *records = malloc(c->size * COPIES);
        static Record decoded[COPIES];
        uint8_t item[4096];
        size_t length, bytes = 0, n_bad = 0;
        SampleLayout l;
        nsec_t begin;

        if (!encode || !records || sample_layout_init_type(&l, SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW) != 0)
                exit(EXIT_FAILURE);
        make_records(records, c);

        begin = clock_now(CLOCK_THREAD_CPUTIME_ID);
        for (size_t round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < COPIES; i++)
                        n_bad += record_decode(&l, (uint8_t *)records + i * c->size, c->size, &decoded[i]) != 0;
        print(c, "decode", clock_now(CLOCK_THREAD_CPUTIME_ID) - begin, 0);

        begin = clock_now(CLOCK_THREAD_CPUTIME_ID);
        for (size_t round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < COPIES; i++)
                        n_bad += plan_check(plan, decoded[i].raw, decoded[i].raw_size) != 0;
        print(c, "check", clock_now(CLOCK_THREAD_CPUTIME_ID) - begin, 0);

        for (size_t i = 0; i < COPIES; i++) {
                decoded[i].comm = "postgres";
                decoded[i].cpu = 1;
        }
        begin = clock_now(CLOCK_THREAD_CPUTIME_ID);
        for (size_t round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < COPIES; i++) {
                        n_bad += item_encode(encode, &decoded[i], item, sizeof(item), &length) != 0;
                        bytes += length;
                }
        print(c, "encode", clock_now(CLOCK_THREAD_CPUTIME_ID) - begin, bytes / COPIES / ROUNDS);
        if (n_bad > 0) {
                printf("%zu were refused\n", n_bad);
                exit(EXIT_FAILURE);
        }
}

int main(void) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                run(&cases[i]);
        return EXIT_SUCCESS;
}
