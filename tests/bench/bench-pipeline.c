/*
 * CPU per sample of the way from a ring to subscribers, on rings in memory: repeatable, and without what wakeups
 * cost. The bare loops beside it are run in turns with it, so that ratios hold where times do not: another
 * machine, another day, a busy neighbour.
 *
 *   bench-pipeline [--json PATH] [--quick] [--only TEXT]
 *   bench-pipeline --list-counted
 *   bench-pipeline --play NAME SAMPLES
 *
 * --only: bare loops, and those rows whose names have the text: for a profiler. --list-counted: names of the rows whose
 * instructions tests/bench/instructions counts; --play: one of them for about so many samples, and how many they were.
 *
 * Each number is the median of several runs. reader: reader_drain() and the hand-over of batches; dispatcher: from the
 * batch to the subscriber's memory or sendmsg(2), in the same thread, so with batches that are still in its cache. What
 * the peer spends is not in it.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/bench/bare-loop.h"
#include "tests/bench/pipeline.h"

#define RUNS 11
#define SAMPLES 160000 /* of a run, at least */
#define RUNS_QUICK 3
#define SAMPLES_QUICK 20000

int stopwatch_counter = -1;

typedef struct Cost {
        double reader, dispatcher, both;
        double instructions;
} Cost;

typedef struct Case {
        const char *name;
        bool is_bare, is_counted;
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
#define CPUS(n) .n_cpus = (n), .n_busy = (n), .order = STREAM_BY_TIME, .n_subscriptions = 1
#define EACH_20K .per_turn = PIPELINE_RATE * READER_TICK / NSEC_PER_SEC /* what comes in a tick */

static Case cases[] = {
        { "bare: advance the tail", .is_bare = true, .bare = BARE_TAIL },
        { "bare: copy", .is_bare = true, .bare = BARE_COPY },
        { "bare: copy and socket", .is_bare = true, .bare = BARE_SOCKET },

        { "nobody subscribes", .is_counted = true, .shape = { ONE_CPU } },
        { "raw", .is_counted = true, .shape = { ONE_CPU, .n_subscriptions = 1, .payload = PAYLOAD_RAW } },
        { "fields", .is_counted = true, .shape = { ONE_CPU, .n_subscriptions = 1 } },
        { "fields, by socket", .is_counted = true, .shape = { ONE_CPU, .n_subscriptions = 1, .by_socket = true } },
        { "raw and fields", .is_counted = true, .shape = { ONE_CPU, .n_subscriptions = 1, .payload = PAYLOAD_BOTH } },
        { "fields, two conditions, 1 % pass", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 1, .where = "id == 39 && args[0] != 1" } },
        { "sched_switch: raw",
          .shape = { ONE_CPU, .event = PLAYED_SWITCH, .n_subscriptions = 1, .payload = PAYLOAD_RAW } },
        { "sched_switch: fields", .is_counted = true,
          .shape = { ONE_CPU, .event = PLAYED_SWITCH, .n_subscriptions = 1 } },

        { "1,000 events, one happens", .shape = { ONE_CPU, .n_subscriptions = 1, .n_events = 1000 } },
        { "1,000 events, all happen", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 1, .n_events = 1000, .n_fired = 1000 } },
        { "1 subscription, 64 % pass", .shape = { ONE_CPU, .n_subscriptions = 1, .where = "id < 64" } },
        { "64 subscriptions, 1 % pass each", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 64, .where = "id == %u" } },
        { "fields, subscription 1,000", .is_counted = true, .shape = { ONE_CPU, .n_subscriptions = 1, .number = 999 } },
        { "1,000 events of 1,000 subscriptions", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 1000, .n_events = 1000, .n_fired = 1000, .is_apart = true } },
        { "1,000 subscriptions, 40 of each event", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 1000, .n_events = 25, .n_fired = 25, .is_apart = true, .where = "id == %u" } },
        { "128 subscriptions, 1 % pass each", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 128, .where = "id == %u" } },
        { "time order, turns, 1,000 subscriptions", .is_counted = true,
          .shape = { .n_cpus = 2, .n_busy = 2, .order = STREAM_BY_TIME, .n_subscriptions = 1000, .n_events = 1000,
                     .n_fired = 1000, .is_apart = true, .in_turn = true } },
        { "2 subscribers", .is_counted = true, .shape = { ONE_CPU, .n_subscriptions = 1, .n_subscribers = 2 } },
        { "4 subscribers in 4 encodings", .shape = { ONE_CPU, .n_subscriptions = 4, .n_encodings = 4 } },
        { "16 subscribers", .shape = { ONE_CPU, .n_subscriptions = 1, .n_subscribers = 16 } },
        { "16 subscribers in 4 encodings", .is_counted = true,
          .shape = { ONE_CPU, .n_subscriptions = 4, .n_encodings = 4, .n_subscribers = 4 } },

        { "time order, 1 of 2 CPUs busy", .shape = { .n_cpus = 2, .n_busy = 1, .n_subscriptions = 1 } },
        { "time order, 2 CPUs", .shape = { CPUS(2) } },
        { "time order, 2 CPUs in strict turns", .is_counted = true, .shape = { CPUS(2), .in_turn = true } },
        { "time order, turns, 2 subscriptions", .is_counted = true,
          .shape = { .n_cpus = 2, .n_busy = 2, .order = STREAM_BY_TIME, .n_subscriptions = 2, .in_turn = true } },
        { "time order, 2 CPUs at 20 k/s", .shape = { CPUS(2), EACH_20K } },
        { "time order, 8 CPUs at 20 k/s", .shape = { CPUS(8), EACH_20K } },
        { "time order, 32 CPUs at 20 k/s", .shape = { CPUS(32), EACH_20K } },
        { "time order, 128 CPUs at 20 k/s", .is_counted = true, .shape = { CPUS(128), EACH_20K } },
        { "time order, 128 CPUs at 20 k/s, by socket", .shape = { CPUS(128), EACH_20K, .by_socket = true } },
        { "cpu order, 128 CPUs at 20 k/s",
          .shape = { .n_cpus = 128, .n_busy = 128, .order = STREAM_BY_CPU, .n_subscriptions = 1, EACH_20K } },
};

/* What the rows are to reach; without `beside` the cost itself, else what they cost of it, or more than it. */
typedef struct Goal {
        const char *text, *name, *beside;
        enum { OF_BOTH, OF_READER, OF_DISPATCHER } part;
        enum { TIMES, NSEC, NSEC_MORE } unit;
        double most;  /* 0: only to be known */
        unsigned per; /* NSEC_MORE: for each of so many */
} Goal;

/* What a sample may cost of copying it has its goals where the kernel's share is in both: tests/bench/live. */
static const Goal goals[] = {
        { "raw, of copy and socket", "raw", "bare: copy and socket" },
        { "fields, of copy and socket", "fields", "bare: copy and socket" },
        { "fields in time order, of copy and socket", "time order, 2 CPUs", "bare: copy and socket" },
        { "1 % pass, of copy", "fields, two conditions, 1 % pass", "bare: copy" },
        { "1,000 events that happen, of one", "1,000 events, all happen", "fields", .most = 1.1 },
        { "1,000 events of which one happens, of one", "1,000 events, one happens", "fields", .most = 1.1 },
        { "each further subscription of 64, reader", "64 subscriptions, 1 % pass each", "1 subscription, 64 % pass",
          OF_READER, NSEC_MORE, .per = 63 },
        { "64 subscriptions, dispatcher, of one", "64 subscriptions, 1 % pass each", "1 subscription, 64 % pass",
          OF_DISPATCHER },
        { "a second subscriber", "2 subscribers", "fields", OF_BOTH, NSEC_MORE, 15, 1 },
        { "each further subscriber of 16", "16 subscribers", "fields", OF_BOTH, NSEC_MORE, 15, 15 },
        { "16 subscribers in 4 encodings, of one", "16 subscribers in 4 encodings", "fields", .most = 8 },
        { "128 CPUs, of 2, at 20 k/s each", "time order, 128 CPUs at 20 k/s", "time order, 2 CPUs at 20 k/s",
          .most = 1.2 },
        { "128 CPUs at 20 k/s, of 2 at the same sum, dispatcher", "time order, 128 CPUs at 20 k/s",
          "time order, 2 CPUs", OF_DISPATCHER },
        { "time order, 2 CPUs in strict turns, dispatcher", "time order, 2 CPUs in strict turns", NULL, OF_DISPATCHER,
          NSEC, 25 },
        { "time order, 128 CPUs, dispatcher", "time order, 128 CPUs at 20 k/s", NULL, OF_DISPATCHER, NSEC, 25 },
};

static double own; /* of the watches, ns */

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

static Cost case_run_bare(BareLoop *l, size_t n_samples) {
        double n, spent;

        l->reading = (Stopwatch){ .spent = 0 };
        l->n_samples = 0;
        while (l->n_samples < n_samples)
                bare_loop_turn(l);
        n = (double)l->n_samples;
        spent = stopwatch_spent(&l->reading, own) / n;
        return (Cost){ .reader = spent, .both = spent, .instructions = (double)l->reading.instructions / n };
}

static Cost case_run_pipeline(Pipeline *p, size_t n_samples) {
        Cost c;
        double n;

        p->reading = p->dispatching = (Stopwatch){ .spent = 0 };
        p->n_samples = 0;
        while (p->n_samples < n_samples)
                pipeline_turn(p);
        pipeline_check(p);
        n = (double)p->n_samples;
        c = (Cost){ .reader = stopwatch_spent(&p->reading, own) / n,
                    .dispatcher = stopwatch_spent(&p->dispatching, own) / n,
                    .instructions = (double)(p->reading.instructions + p->dispatching.instructions) / n };
        c.both = c.reader + c.dispatcher;
        return c;
}

static Cost case_run(Case *c, size_t n_samples) {
        if (c->is_left_out)
                return (Cost){ .both = 0 };
        return c->is_bare ? case_run_bare(&c->loop, n_samples) : case_run_pipeline(&c->pipeline, n_samples);
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

static Case *case_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (strcmp(cases[i].name, name) == 0)
                        return &cases[i];
        return NULL;
}

/* Where the machine does not count: what callgrind counted of those rows (tests/bench/instructions). */
static void read_instructions(void) {
        _cleanup_fclose_ FILE *f = fopen(INSTRUCTIONS, "re");
        char line[256];

        while (f && fgets(line, sizeof(line), f)) {
                char *name_end = strstr(line, "  ");
                double reader, dispatcher;
                Case *c;

                if (!name_end || sscanf(name_end, "%lf %*f %*f %lf", &reader, &dispatcher) != 2)
                        continue;
                *name_end = '\0';
                c = case_find(line);
                if (c)
                        c->median.instructions = reader + dispatcher;
        }
}

static double copying(const char *how) {
        return case_find(how)->median.both;
}

static void print_table(void) {
        printf("ns of CPU per sample, medians; instructions %s\n\n",
               stopwatch_counter >= 0 ? "counted here" : "as in tests/bench/instructions.txt");
        printf("%-40s %7s %10s %7s %8s %16s %13s\n", "", "reader", "dispatcher", "both", "x copy", "x copy+socket",
               "instructions");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Cost *m = &cases[i].median;

                if (cases[i].is_left_out)
                        continue;
                printf("%-40s %7.1f %10.1f %7.1f %8.2f %16.2f", cases[i].name, m->reader, m->dispatcher, m->both,
                       m->both / copying("bare: copy"), m->both / copying("bare: copy and socket"));
                if (m->instructions > 0)
                        printf(" %13.0f\n", m->instructions);
                else
                        printf(" %13s\n", "-");
        }
}

static double goal_part(const Goal *g, const char *name) {
        const Cost *m = &case_find(name)->median;

        return g->part == OF_READER ? m->reader : g->part == OF_DISPATCHER ? m->dispatcher : m->both;
}

/* False: one of its rows was left out. */
static bool goal_get(const Goal *g, double *ret) {
        double beside;

        if (case_find(g->name)->is_left_out || (g->beside && case_find(g->beside)->is_left_out))
                return false;
        beside = g->beside ? goal_part(g, g->beside) : 0;
        *ret = goal_part(g, g->name);
        if (g->unit == TIMES)
                *ret /= beside;
        else if (g->unit == NSEC_MORE)
                *ret = (*ret - beside) / g->per;
        return true;
}

static void print_goals(void) {
        double is;

        printf("\n%-58s %10s %10s\n", "", "is", "goal");
        for (size_t i = 0; i < ARRAY_SIZE(goals); i++) {
                const Goal *g = &goals[i];

                if (!goal_get(g, &is))
                        continue;
                printf("%-58s %7.2f %-2s", g->text, is, g->unit == TIMES ? "x" : "ns");
                if (g->most > 0)
                        printf(" %10.1f%s", g->most, is <= g->most ? "" : "  missed");
                printf("\n");
        }
}

static void write_rows(FILE *f) {
        const char *separator = "";

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Cost *m = &cases[i].median;

                if (cases[i].is_left_out)
                        continue;
                fprintf(f, "%s\n{\"name\":\"%s\",\"reader_ns\":%.2f,\"dispatcher_ns\":%.2f,\"ns\":%.2f,"
                        "\"x_copy\":%.3f,\"x_copy_socket\":%.3f", separator, cases[i].name, m->reader, m->dispatcher,
                        m->both, m->both / copying("bare: copy"), m->both / copying("bare: copy and socket"));
                if (m->instructions > 0)
                        fprintf(f, ",\"instructions\":%.1f", m->instructions);
                fprintf(f, "}");
                separator = ",";
        }
}

static void write_goals(FILE *f) {
        const char *separator = "";
        double is;

        for (size_t i = 0; i < ARRAY_SIZE(goals); i++)
                if (goal_get(&goals[i], &is)) {
                        fprintf(f, "%s\n{\"name\":\"%s\",\"is\":%.3f,\"unit\":\"%s\",\"goal\":%.1f}", separator,
                                goals[i].text, is, goals[i].unit == TIMES ? "x" : "ns", goals[i].most);
                        separator = ",";
                }
}

static int write_json(const char *path, unsigned runs) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");

        if (!f) {
                perror(path);
                return EXIT_FAILURE;
        }
        fprintf(f, "{\"benchmark\":\"pipeline\",\"runs\":%u,\"rows\":[", runs);
        write_rows(f);
        fprintf(f, "],\"goals\":[");
        write_goals(f);
        fprintf(f, "]}\n");
        if (ferror(f)) {
                perror(path);
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

static int list_counted(void) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (cases[i].is_counted)
                        printf("%s\n", cases[i].name);
        return EXIT_SUCCESS;
}

static int play(const char *name, const char *samples) {
        Case *c = case_find(name);
        size_t n = strtoul(samples, NULL, 10);

        if (!c || c->is_bare || n == 0) {
                fprintf(stderr, "bench-pipeline: no such row, or no number: see --list-counted\n");
                return 2;
        }
        case_init(c);
        (void)case_run(c, n);
        printf("%llu\n", (unsigned long long)c->pipeline.n_samples);
        case_deinit(c);
        return EXIT_SUCCESS;
}

static void leave_out(const char *text) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                cases[i].is_left_out = !cases[i].is_bare && !strstr(cases[i].name, text);
}

static int measure(unsigned runs, size_t n_samples, const char *json) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_init(&cases[i]);
        stopwatch_pin();
        stopwatch_open_counter();
        own = stopwatch_own();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                (void)case_run(&cases[i], n_samples / 4); /* memory is mapped, code is known */
        for (unsigned run = 0; run < runs; run++)
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                        cases[i].runs[run] = case_run(&cases[i], n_samples);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_set_median(&cases[i], runs);
        if (stopwatch_counter < 0)
                read_instructions();
        print_table();
        print_goals();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_deinit(&cases[i]);
        return json ? write_json(json, runs) : EXIT_SUCCESS;
}

/* Two for each of thousands of subscribers, where that may be. */
static void raise_limit_of_fds(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &limit); /* what is too little is said by who needs more */
        }
}

int main(int argc, char **argv) {
        unsigned runs = RUNS;
        size_t n_samples = SAMPLES;
        const char *json = NULL;

        raise_limit_of_fds();
        if (argc == 2 && strcmp(argv[1], "--list-counted") == 0)
                return list_counted();
        if (argc == 4 && strcmp(argv[1], "--play") == 0)
                return play(argv[2], argv[3]);
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--quick") == 0) {
                        runs = RUNS_QUICK;
                        n_samples = SAMPLES_QUICK;
                } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
                        json = argv[++i];
                else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
                        leave_out(argv[++i]);
                else {
                        fprintf(stderr, "usage: bench-pipeline [--json PATH] [--quick] [--only TEXT]\n"
                                        "       bench-pipeline --list-counted | --play NAME SAMPLES\n");
                        return 2;
                }
        }
        return measure(runs, n_samples, json);
}
