/*
 * CPU per sample of the way from a ring to a subscriber's socket, on rings in memory: repeatable, and without what
 * wakeups cost. The bare loops beside it are run in turns with it, so that ratios hold where times do not: another
 * machine, another day, a busy neighbour.
 *
 *   bench-pipeline [--json PATH] [--quick] [--only TEXT]
 *
 * --only: bare loops, and those rows whose names have the text: for a profiler.
 * Each number is the median of several runs. reader: reader_drain() and the hand-over of batches; dispatcher: from the
 * batch to sendmsg(2), in the same thread, so with batches that are still in its cache. What the peer spends is not in it.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/bare-loop.h"
#include "tests/bench/pipeline.h"

#define RUNS 11
#define TURNS 64 /* of a run: some 160,000 samples */
#define RUNS_QUICK 3
#define TURNS_QUICK 8

int stopwatch_counter = -1;

typedef struct Cost {
        double reader, dispatcher, both;
        double instructions;
} Cost;

typedef struct Case {
        const char *name;
        bool is_bare;
        BareKind bare;
        PipelineShape shape;
        union {
                BareLoop loop;
                Pipeline pipeline;
        };
        Cost runs[RUNS], median;
        bool is_left_out;
} Case;

#define ONE_CPU .n_cpus = 1, .n_busy = 1, .order = STREAM_BY_CPU

enum { COPY = 1, COPY_AND_SOCKET = 2 }; /* places of what ratios are of */

static Case cases[] = {
        { "bare: advance the tail", .is_bare = true, .bare = BARE_TAIL },
        { "bare: copy", .is_bare = true, .bare = BARE_COPY },
        { "bare: copy and socket", .is_bare = true, .bare = BARE_SOCKET },
        { "nobody subscribes", .shape = { ONE_CPU } },
        { "raw, cpu order", .shape = { ONE_CPU, .is_subscribed = true, .payload = PAYLOAD_RAW } },
        { "fields, cpu order", .shape = { ONE_CPU, .is_subscribed = true } },
        { "fields, two conditions, 1 % pass", .shape = { ONE_CPU, .is_subscribed = true,
                                                         .where = "id == 39 && args[0] != 1" } },
        { "fields, time order, 1 of 2 CPUs busy", .shape = { .n_cpus = 2, .n_busy = 1, .is_subscribed = true } },
        { "fields, time order, 2 of 2 CPUs busy", .shape = { .n_cpus = 2, .n_busy = 2, .is_subscribed = true } },
        { "sched_switch: raw, cpu order", .shape = { ONE_CPU, .event = PLAYED_SWITCH, .is_subscribed = true,
                                                     .payload = PAYLOAD_RAW } },
        { "sched_switch: fields, cpu order", .shape = { ONE_CPU, .event = PLAYED_SWITCH, .is_subscribed = true } },
};

static void case_init(Case *c) {
        if (c->is_left_out)
                return;
        if (c->is_bare)
                bare_loop_init(&c->loop, c->bare);
        else
                pipeline_init(&c->pipeline, &c->shape);
}

static void case_deinit(Case *c) {
        if (c->is_left_out)
                return;
        if (c->is_bare)
                bare_loop_deinit(&c->loop);
        else
                pipeline_deinit(&c->pipeline);
}

static Cost case_run_bare(BareLoop *l, unsigned turns) {
        double n;

        l->reading = (Stopwatch){ .spent = 0 };
        l->n_samples = 0;
        for (unsigned i = 0; i < turns; i++)
                bare_loop_turn(l);
        n = (double)l->n_samples;
        return (Cost){ .reader = (double)l->reading.spent / n, .both = (double)l->reading.spent / n,
                       .instructions = (double)l->reading.instructions / n };
}

static Cost case_run_pipeline(Pipeline *p, unsigned turns) {
        double n;

        p->reading = p->dispatching = (Stopwatch){ .spent = 0 };
        p->n_samples = 0;
        for (unsigned i = 0; i < turns; i++)
                pipeline_turn(p);
        pipeline_check(p);
        n = (double)p->n_samples;
        return (Cost){ .reader = (double)p->reading.spent / n, .dispatcher = (double)p->dispatching.spent / n,
                       .both = (double)(p->reading.spent + p->dispatching.spent) / n,
                       .instructions = (double)(p->reading.instructions + p->dispatching.instructions) / n };
}

static Cost case_run(Case *c, unsigned turns) {
        if (c->is_left_out)
                return (Cost){ .both = 0 };
        return c->is_bare ? case_run_bare(&c->loop, turns) : case_run_pipeline(&c->pipeline, turns);
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static double median_of(const Cost *runs, unsigned n, size_t offset) {
        double values[RUNS];

        for (unsigned i = 0; i < n; i++)
                memcpy(&values[i], (const uint8_t *)&runs[i] + offset, sizeof(values[i]));
        qsort(values, n, sizeof(*values), compare);
        return values[n / 2];
}

static void case_set_median(Case *c, unsigned n) {
        c->median = (Cost){ .reader = median_of(c->runs, n, offsetof(Cost, reader)),
                            .dispatcher = median_of(c->runs, n, offsetof(Cost, dispatcher)),
                            .both = median_of(c->runs, n, offsetof(Cost, both)),
                            .instructions = median_of(c->runs, n, offsetof(Cost, instructions)) };
}

static void print_table(void) {
        printf("ns of CPU per sample, medians%s\n\n", stopwatch_counter < 0 ? "; this machine counts no instructions" : "");
        printf("%-40s %7s %10s %7s %8s %16s %13s\n", "", "reader", "dispatcher", "both", "x copy", "x copy+socket",
               "instructions");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Cost *m = &cases[i].median;

                if (cases[i].is_left_out)
                        continue;
                printf("%-40s %7.1f %10.1f %7.1f %8.2f %16.2f", cases[i].name, m->reader, m->dispatcher, m->both,
                       m->both / cases[COPY].median.both, m->both / cases[COPY_AND_SOCKET].median.both);
                if (stopwatch_counter >= 0)
                        printf(" %13.0f", m->instructions);
                else
                        printf(" %13s", "-");
                printf("\n");
        }
}

static int write_json(const char *path, unsigned runs) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");

        if (!f) {
                perror(path);
                return EXIT_FAILURE;
        }
        fprintf(f, "{\"benchmark\":\"pipeline\",\"runs\":%u,\"rows\":[", runs);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Cost *m = &cases[i].median;

                if (cases[i].is_left_out)
                        continue;
                fprintf(f, "%s\n{\"name\":\"%s\",\"reader_ns\":%.2f,\"dispatcher_ns\":%.2f,\"ns\":%.2f,"
                        "\"x_copy\":%.3f,\"x_copy_socket\":%.3f", i ? "," : "", cases[i].name, m->reader, m->dispatcher,
                        m->both, m->both / cases[COPY].median.both, m->both / cases[COPY_AND_SOCKET].median.both);
                if (stopwatch_counter >= 0)
                        fprintf(f, ",\"instructions\":%.1f", m->instructions);
                fprintf(f, "}");
        }
        fprintf(f, "]}\n");
        if (ferror(f)) {
                perror(path);
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

/* To the last CPU. */
static void pin(void) {
        cpu_set_t allowed, one;
        int last = -1;

        if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &allowed))
                        last = cpu;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        (void)sched_setaffinity(0, sizeof(one), &one); /* only steadier numbers */
}

int main(int argc, char **argv) {
        unsigned runs = RUNS, turns = TURNS;
        const char *json = NULL;

        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--quick") == 0) {
                        runs = RUNS_QUICK;
                        turns = TURNS_QUICK;
                } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
                        json = argv[++i];
                else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
                        i++;
                        for (size_t k = 0; k < ARRAY_SIZE(cases); k++)
                                cases[k].is_left_out = !cases[k].is_bare && !strstr(cases[k].name, argv[i]);
                } else {
                        fprintf(stderr, "usage: bench-pipeline [--json PATH] [--quick] [--only TEXT]\n");
                        return 2;
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_init(&cases[i]);
        pin();
        stopwatch_open_counter();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                (void)case_run(&cases[i], turns / 4); /* memory is mapped, code is known */
        for (unsigned run = 0; run < runs; run++)
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                        cases[i].runs[run] = case_run(&cases[i], turns);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_set_median(&cases[i], runs);
        print_table();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_deinit(&cases[i]);
        return json ? write_json(json, runs) : EXIT_SUCCESS;
}
