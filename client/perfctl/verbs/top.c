/* The command line of top/top.c and top/read.c. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/default-event.h"
#include "client/perfctl/events/event-words.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/command-line/stream-options.h"
#include "client/perfctl/events/target.h"
#include "client/perfctl/names/live-names.h"
#include "client/perfctl/samples/live-or-file.h"
#include "client/perfctl/top/screen.h"
#include "client/perfctl/top/top.h"

#define INTERVAL UINT64_C(1000000000) /* ns */
/* Times a second: the daemon's own rate is made for events that run all day, and of a second of it a table has a hundred samples. */
#define RATE "1000"
#define ROWS_OF_TERMINAL 20
#define INTERVAL_LEAST UINT64_C(50000000) /* ns: nobody reads faster, and samples are to come within a quarter of it */

static bool is_given(const Perfctl *p, const Option *o) {
        size_t n;

        return o->repeats ? (perfctl_get_all(p, o->name, &n), n > 0) : perfctl_get(p, o->name) != NULL;
}

/* Of a recording all has been decided. */
static int check_input(const Perfctl *p) {
        static const char *const allowed[] = { "input", "by", "batch", "rows", "total" };

        for (const Option *o = p->verb->options; o->name; o++) {
                bool is_allowed = false;

                for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
                        is_allowed |= strcmp(o->name, allowed[i]) == 0;
                if (!is_allowed && is_given(p, o))
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s is for a live host: of a recording, with --input, one table is printed, "
                                            "of the events that are named, as `perfctl top --input FILE --by comm 'sched:*'`", o->name);
        }
        return 0;
}

/* A window has to be longer than the way of a sample. */
static int parse_interval(const Perfctl *p, uint64_t *ret) {
        const char *text = perfctl_get(p, "interval");

        *ret = INTERVAL;
        if (!text)
                return 0;
        if (!quantity_parse_time(text, ret) || *ret == 0)
                return perfctl_fail(p, PERFCTL_USAGE, "--interval: '%s' is not a time such as 500ms, 1s, 1m%s", text, quantity_lack_of_time(text));
        return *ret < INTERVAL_LEAST ? perfctl_fail(p, PERFCTL_USAGE, "--interval: '%s' is less than 50ms", text) : 0;
}

/* Tables where there is no screen; one, if nothing says how many. */
static int parse_batch(const Perfctl *p, TopOptions *o) {
        int r;

        o->is_batch = o->input || perfctl_get(p, "batch") || p->json || !screen_is_possible();
        if (!o->is_batch && perfctl_get(p, "count"))
                return perfctl_fail(p, PERFCTL_USAGE, "--count is of tables, which --batch prints");
        if (!o->is_batch && perfctl_get(p, "rows"))
                return perfctl_fail(p, PERFCTL_USAGE, "--rows is of tables, which --batch prints: the screen has as many as fit");
        if (p->json && perfctl_get(p, "rows"))
                return perfctl_fail(p, PERFCTL_USAGE, "--rows applies to tables only: JSON has all rows, the largest first");
        if (o->is_batch && !o->duration)
                o->count = 1;
        o->rows = p->human ? ROWS_OF_TERMINAL : 0;
        r = number_parse(p, "--rows: ", perfctl_get(p, "rows"), &o->rows);
        return r == 0 ? number_parse(p, "--count: ", perfctl_get(p, "count"), &o->count) : r;
}

/* Who did it is certain in the order of time only, and what was mapped too. */
static void choose_order(TopOptions *o) {
        const bool is_of_cpus = strcmp(o->by, "cpu") == 0 || strcmp(o->by, "event") == 0;

        o->subscription.order = o->is_batch && is_of_cpus && !o->subscription.where ? PERFD_ORDER_CPU : PERFD_ORDER_TIME;
        o->subscription.records = o->is_batch && is_of_cpus ? 0 : LIVE_NAMES_RECORDS;
}

static int parse_options(const Perfctl *p, TopOptions *o) {
        int r;

        o->by = perfctl_get(p, "by") ? perfctl_get(p, "by") : "symbol";
        o->input = perfctl_get(p, "input");
        o->is_total = perfctl_get(p, "total");
        o->has_tables = perfctl_get(p, "ledger");
        o->may_lose = perfctl_get(p, "allow-loss");
        o->subscription.where = perfctl_get(p, "where");
        r = stray_recording_check(p);
        if (r == 0 && o->input)
                r = check_input(p);
        if (r == 0)
                r = stream_options_parse(p, &o->subscription, &o->duration);
        if (r == 0)
                r = parse_interval(p, &o->interval);
        return r == 0 ? parse_batch(p, o) : r;
}

static int verb_top_run(Perfctl *p) {
        TopOptions o = { .subscription = PERFD_SUBSCRIPTION_INIT };
        int r = parse_options(p, &o);

        if (r != 0)
                return r;
        if (o.input)
                return top_read(p, &o);
        choose_order(&o);
        (void)default_event_choose(p, RATE);
        return top_run(p, &o);
}

const Verb verb_top = {
        .name = "top",
        .arguments = "[EVENT...]",
        .help = "show live what has the most samples, by function, process or field",
        .options = {
                EVENT_OPTION(WORDS_SHOWN),
                { .name = "by", .argument = "FIELD,...", .help = "rows by symbol, dso, comm, pid, unit, a field, ...; symbol",
                  .choices = "symbol dso comm pid tid cpu event exe uid cgroup container unit ip addr period" },
                { .name = "batch", .letter = 'b', .help = "print tables, and use no screen" },
                { .name = "count", .letter = 'n', .argument = "N", .help = "with --batch: stop after N tables; 1 without --for" },
                { .name = "interval", .argument = "TIME", .help = "a table each 500ms, 1s, 1m; 1s" },
                { .name = "total", .help = "shares and order of all since the start, not of the last interval" },
                { .name = "rows", .argument = "N", .help = "with --batch: only the N largest rows; 20 on a terminal" },
                { .name = "input", .letter = 'i', .argument = "FILE", .help = "one table of a recording of perf; - is stdin",
                  .words = WORDS_FILES },
                { .name = "where", .argument = "EXPR", .help = "only samples that match this expression", .words = WORDS_FIELDS },
                { .name = "for", .argument = "TIME", .help = "stop after 500ms, 10s, 2m" },
                { .name = "ledger", .help = "always print the closing ledger" },
                { .name = "allow-loss", .help = "exit with 0, not 4, if samples were lost" },
                { .name = "latency", .argument = "TIME", .help = "maximum delivery latency, e.g. 200us; costs wakeups" },
                { .name = "queue", .argument = "SIZE", .help = "size of the queue in the daemon, e.g. 4MiB" },
                ALL_CPUS_OPTION,
                TARGET_OPTIONS,
                SPEC_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .run = verb_top_run,
};
