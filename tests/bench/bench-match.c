/*
 * What it costs a reader to ask one filter about one sample: ns of CPU per match, on records that lie in the cache as
 * those of a ring being drained do. Prints a line for each kind of expression.
 */
#include <stdio.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/route/match.h"
#include "tests/unit/filter-plan.h"

#define N_RECORDS 512
#define N_ROUNDS 4000
#define N_TRIES 5 /* the least of them: what disturbs only adds */

static const char *const expressions[] = {
        "1",
        "pid == 77",
        "u8 > 100",
        "flags & O_CREAT",
        "prev_comm == \"postgres\"",
        "prev_comm == \"postgres\" && (pid > 100 || flags & O_CREAT)",
        "prev_comm ~ \"post*\"",
        "prev_comm ~ \"*gre*\"",
        "comm == \"nginx\"",
        "filename == \"/var/log/nginx/access.log\"",
        "filename ~ \"*/nginx/*.log\"",
        "prev_comm != next_comm",
        "s32 < u64",
        "u8 & u16 == 64",
        "list[2] == 20",
        "pid == 1 || pid == 2 || pid == 3 || pid == 4 || pid == 5 || pid == 6 || pid == 7 || pid == 8",
};

static double bench(const char *expression, const Plan *plan, const Record *records, unsigned *ret_hits) {
        _cleanup_(match_program_unrefp) MatchProgram *program = NULL;
        _cleanup_(filter_freep) Filter *filter = NULL;
        Explanation e = EXPLANATION_NULL;
        nsec_t least = UINT64_MAX;

        if (filter_parse(expression, &filter, &e) != 0 || filter_compile(filter, plan, NULL, &program, &e) != 0) {
                fprintf(stderr, "%s: %u: %s\n", expression, e.position, e.text);
                exit(EXIT_FAILURE);
        }
        for (int k = 0; k < N_TRIES; k++) {
                nsec_t begin = clock_now(CLOCK_THREAD_CPUTIME_ID), spent;
                unsigned n_hits = 0;

                for (unsigned i = 0; i < N_ROUNDS; i++)
                        for (unsigned n = 0; n < N_RECORDS; n++)
                                n_hits += match_run(program, &records[n]);
                spent = clock_now(CLOCK_THREAD_CPUTIME_ID) - begin;
                least = spent < least ? spent : least;
                *ret_hits = n_hits / N_ROUNDS;
        }
        return (double)least / (N_ROUNDS * N_RECORDS);
}

int main(void) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        static SampleBytes bytes[N_RECORDS];
        static Record records[N_RECORDS];

        for (unsigned i = 0; i < N_RECORDS; i++) {
                sample_init(&bytes[i]);
                bytes[i].pid = (int32_t)(70 + i * 7919 % 16);
                records[i] = sample_record(&bytes[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(expressions); i++) {
                unsigned n_hits;
                double ns = bench(expressions[i], plan, records, &n_hits);

                printf("%6.2f ns  %3u of %u  %s\n", ns, n_hits, N_RECORDS, expressions[i]);
        }
        return EXIT_SUCCESS;
}
