/*
 * CPU per item that libperfd takes to read a stream, beside bare readers of the same bytes: from the ring in shared memory,
 * or the socket, to sums of what it says; and that perfctl takes to print it, beside a loop that writes the same lines. They
 * run in turns, so that ratios hold where times do not.
 *
 *   bench-client [--json PATH] [--quick] [--only TEXT]
 *   bench-client --list-counted
 *   bench-client --play NAME ITEMS
 *
 * --only: bare readers, and those rows whose names have the text. --list-counted, --play: as of bench-pipeline, for
 * tests/bench/instructions.
 *
 * Each number is the median of several runs. What writes the bytes is not in it.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/bench/stopwatch.h"
#include "tests/bench/stream-feed.h"
#include "tests/bench/stream-readers.h"

#define RUNS 11
#define ITEMS 400000 /* of a run, at least */
#define RUNS_QUICK 3
#define ITEMS_QUICK 40000

int stopwatch_counter = -1;

typedef struct Case {
        const char *name;
        StreamReading reading;
        FeedEvents events;
        bool by_socket, is_left_out;
        Feed feed;
        StreamReader reader;
        Stopwatch watch;
        uint64_t n_items;
        double runs[RUNS], ns, instructions;
} Case;

static Case cases[] = {
        { "bare: skip items", .reading = READ_BARE_SKIP },
        { "bare: add up all numbers", .reading = READ_BARE_SUM },
        { "bare: skip items, by socket", .reading = READ_BARE_SKIP, .by_socket = true },
        { "bare: add up all numbers, by socket", .reading = READ_BARE_SUM, .by_socket = true },

        { "sys_enter: nothing of it", .reading = READ_NONE },
        { "sys_enter: all fields", .reading = READ_FIELDS },
        { "sys_enter: fields, time, CPU, thread", .reading = READ_ALL },
        { "sys_enter: the same by name", .reading = READ_BY_NAME },
        { "sys_enter: batches", .reading = READ_BATCHES },
        { "sys_enter: batches, times and events", .reading = READ_HEADS },
        { "sys_enter: batches, a column", .reading = READ_COLUMN },
        { "sys_enter: batches, all columns", .reading = READ_COLUMNS },
        { "sys_enter: nothing of it, by socket", .reading = READ_NONE, .by_socket = true },
        { "sys_enter: all fields, by socket", .reading = READ_FIELDS, .by_socket = true },
        { "sys_enter: batches, by socket", .reading = READ_BATCHES, .by_socket = true },
        { "sys_enter: batches, all columns, by socket", .reading = READ_COLUMNS, .by_socket = true },
        { "sched_switch: nothing of it", .reading = READ_NONE, .events = FEED_SWITCH },
        { "sched_switch: all fields", .reading = READ_FIELDS, .events = FEED_SWITCH },
        { "sched_switch: fields, time, CPU, thread", .reading = READ_ALL, .events = FEED_SWITCH },
        { "sched_switch: the same by name", .reading = READ_BY_NAME, .events = FEED_SWITCH },
        { "sched_switch: batches", .reading = READ_BATCHES, .events = FEED_SWITCH },
        { "sched_switch: batches, a column", .reading = READ_COLUMN, .events = FEED_SWITCH },
        { "both in turns: nothing of it", .reading = READ_NONE, .events = FEED_BOTH },
        { "both in turns: all fields", .reading = READ_FIELDS, .events = FEED_BOTH },
        { "both in turns: batches", .reading = READ_BATCHES, .events = FEED_BOTH },
        { "both in turns: batches, a column of each", .reading = READ_COLUMN, .events = FEED_BOTH },

        { "bare: write lines of sys_enter", .reading = READ_BARE_LINES },
        { "bare: write JSON of sys_enter", .reading = READ_BARE_JSON },
        { "bare: write lines of sched_switch", .reading = READ_BARE_LINES, .events = FEED_SWITCH },
        { "bare: write JSON of sched_switch", .reading = READ_BARE_JSON, .events = FEED_SWITCH },
        { "sys_enter: lines of text", .reading = READ_LINES },
        { "sys_enter: lines of JSON", .reading = READ_JSON },
        { "sched_switch: lines of text", .reading = READ_LINES, .events = FEED_SWITCH },
        { "sched_switch: lines of JSON", .reading = READ_JSON, .events = FEED_SWITCH },
};

static double own; /* of the watch, ns */

static bool is_bare(const Case *c) {
        return c->reading < READ_NONE || c->reading >= READ_BARE_LINES;
}

static void case_init(Case *c) {
        if (c->is_left_out)
                return;
        feed_init(&c->feed, c->events, c->by_socket);
        stream_reader_init(&c->reader, c->reading, &c->feed);
}

static void case_deinit(Case *c) {
        if (c->is_left_out)
                return;
        stream_reader_deinit(&c->reader);
        feed_deinit(&c->feed);
}

static void case_run(Case *c, size_t n_items) {
        c->watch = (Stopwatch){ .spent = 0 };
        for (c->n_items = 0; c->n_items < n_items && !c->is_left_out; c->n_items += c->feed.n_items) {
                if (c->reading < READ_BARE_LINES)
                        feed_turn(&c->feed);
                stopwatch_start(&c->watch);
                stream_reader_read(&c->reader);
                stopwatch_stop(&c->watch);
        }
        stream_reader_check(&c->reader, c->n_items);
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
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
                double counted;
                Case *c;

                if (!name_end || sscanf(name_end, "%lf %*f %*f", &counted) != 1)
                        continue;
                *name_end = '\0';
                c = case_find(line);
                if (c)
                        c->instructions = counted;
        }
}

/* What it is compared with: a bare row that does the same without the library. */
static const Case *beside(const Case *c) {
        if (c->reading < READ_LINES)
                return case_find(c->by_socket ? "bare: add up all numbers, by socket" : "bare: add up all numbers");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (cases[i].events == c->events && cases[i].reading >= READ_BARE_LINES &&
                    (cases[i].reading == READ_BARE_JSON) == (c->reading == READ_JSON || c->reading == READ_BARE_JSON))
                        return &cases[i];
        return NULL;
}

static void print_table(void) {
        printf("ns of CPU per item, medians; instructions %s\n\n%-44s %8s %8s %8s %13s\n",
               stopwatch_counter >= 0 ? "counted here" : "as in tests/bench/client-instructions.txt", "", "ns", "M/s", "x bare", "instructions");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];

                if (c->is_left_out)
                        continue;
                printf("%-44s %8.1f %8.2f %8.2f", c->name, c->ns, 1000 / c->ns, c->ns / beside(c)->ns);
                if (c->instructions > 0)
                        printf(" %13.1f\n", c->instructions);
                else
                        printf(" %13s\n", "-");
        }
}

static int write_json(const char *path, unsigned runs) {
        _cleanup_fclose_ FILE *f = fopen(path, "we");
        const char *separator = "";

        if (!f) {
                perror(path);
                return EXIT_FAILURE;
        }
        fprintf(f, "{\"benchmark\":\"client\",\"runs\":%u,\"rows\":[", runs);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];

                if (c->is_left_out)
                        continue;
                fprintf(f, "%s\n{\"name\":\"%s\",\"ns\":%.2f,\"x_bare\":%.3f", separator, c->name, c->ns, c->ns / beside(c)->ns);
                if (c->instructions > 0)
                        fprintf(f, ",\"instructions\":%.1f", c->instructions);
                fprintf(f, "}");
                separator = ",";
        }
        fprintf(f, "]}\n");
        if (ferror(f)) {
                perror(path);
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

static int measure(unsigned runs, size_t n_items, const char *json) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_init(&cases[i]);
        stopwatch_pin();
        stopwatch_open_counter();
        own = stopwatch_own();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_run(&cases[i], n_items / 4); /* memory is mapped, code is known */
        for (unsigned run = 0; run < runs; run++)
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        Case *c = &cases[i];

                        case_run(c, n_items);
                        c->runs[run] = c->is_left_out ? 0 : stopwatch_spent(&c->watch, own) / (double)c->n_items;
                        c->instructions = c->is_left_out ? 0 : (double)c->watch.instructions / (double)c->n_items;
                }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                qsort(cases[i].runs, runs, sizeof(double), compare);
                cases[i].ns = cases[i].runs[runs / 2];
        }
        if (stopwatch_counter < 0)
                read_instructions();
        print_table();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                case_deinit(&cases[i]);
        return json ? write_json(json, runs) : EXIT_SUCCESS;
}

static int list_counted(void) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (!cases[i].by_socket) /* the instructions are the same */
                        printf("%s\n", cases[i].name);
        return EXIT_SUCCESS;
}

static int play(const char *name, const char *items) {
        Case *c = case_find(name);
        size_t n = strtoul(items, NULL, 10);

        if (!c || n == 0) {
                fprintf(stderr, "bench-client: no such row, or no number: see --list-counted\n");
                return 2;
        }
        case_init(c);
        case_run(c, n);
        printf("%llu\n", (unsigned long long)c->n_items);
        case_deinit(c);
        return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        unsigned runs = RUNS;
        size_t n_items = ITEMS;
        const char *json = NULL;

        if (argc == 2 && strcmp(argv[1], "--list-counted") == 0)
                return list_counted();
        if (argc == 4 && strcmp(argv[1], "--play") == 0)
                return play(argv[2], argv[3]);
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--quick") == 0) {
                        runs = RUNS_QUICK;
                        n_items = ITEMS_QUICK;
                } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
                        json = argv[++i];
                else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
                        i++;
                        for (size_t k = 0; k < ARRAY_SIZE(cases); k++)
                                cases[k].is_left_out = !is_bare(&cases[k]) && !strstr(cases[k].name, argv[i]);
                } else {
                        fprintf(stderr, "usage: bench-client [--json PATH] [--quick] [--only TEXT]\n"
                                        "       bench-client --list-counted | --play NAME ITEMS\n");
                        return 2;
                }
        }
        return measure(runs, n_items, json);
}
