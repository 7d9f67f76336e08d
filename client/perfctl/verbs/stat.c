/* The command line of counters; stat/stat.c runs them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/events/event-advice.h"
#include "client/perfctl/events/event-words.h"
#include "client/perfctl/events/function-globs.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/stat/stat.h"
#include "client/perfctl/events/target.h"

/* What perf-stat(1) counts, but for what needs a group. */
static const char *const usual_events[] = {
        "task-clock", "context-switches", "cpu-migrations", "page-faults",
        "cycles",     "instructions",     "branches",       "branch-misses",
};

static void add_events(StatOptions *o, char ***list, const char *text) {
        size_t n;
        char **more = stat_events_split(text, &n);

        *list = must_have(reallocarray(*list, o->asked.n_events + n, sizeof(**list)));
        memcpy(*list + o->asked.n_events, more, n * sizeof(**list));
        o->asked.n_events += n;
        free(more);
}

/* -e A,B as perf-stat(1) takes it; the commas of arguments part them later, as in other verbs. */
static int parse_events(const Perfctl *p, StatOptions *o) {
        char **list = NULL;
        size_t n_lists;
        const char *const *lists = perfctl_get_all(p, "event", &n_lists);

        for (size_t i = 0; i < n_lists; i++)
                add_events(o, &list, lists[i]);
        for (size_t i = 0; i < p->n_arguments; i++) {
                list = must_have(reallocarray(list, o->asked.n_events + 1, sizeof(*list)));
                list[o->asked.n_events++] = must_have(strdup(p->arguments[i]));
        }
        for (size_t i = 0; n_lists + p->n_arguments == 0 && i < sizeof(usual_events) / sizeof(usual_events[0]); i++)
                add_events(o, &list, usual_events[i]);
        o->asked.events = (const char *const *)list;
        for (size_t i = 0; i < o->asked.n_events; i++)
                if (!*list[i])
                        return perfctl_fail(p, PERFCTL_USAGE, "--event: an event is empty");
        return 0;
}

/* perf-stat(1) reports once, at the end, of what it is told to count. */
static bool has_target(const Perfctl *p, const perfd_event_spec *t) {
        return !target_is_host(t) || t->cpus || perfctl_get(p, "all-cpus");
}

/* perf-stat(1) -I counts in milliseconds; --interval has a unit. */
static int parse_interval(const Perfctl *p, StatOptions *o) {
        const char *interval = perfctl_get(p, "interval"), *print = perfctl_get(p, "interval-print");
        bool has_count = perfctl_get(p, "count"), has_whole = perfctl_get(p, "for") || has_target(p, &o->asked.target);
        uint64_t ms;

        o->interval = p->command || (has_whole && !has_count) ? 0 : 1000000000;
        o->has_total = o->interval > 0 && !interval && !print && !has_count && !p->json && !perfctl_get(p, "field-separator");
        if (interval && print)
                return perfctl_fail(p, PERFCTL_USAGE, "--interval and --interval-print exclude each other");
        if (interval && (!quantity_parse_time(interval, &o->interval) || o->interval == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--interval: '%s' is not a time such as 100ms, 1s%s",
                                    interval, quantity_lack_of_time(interval));
        if (!print)
                return 0;
        if (!quantity_parse_number(print, &ms) || ms == 0 || ms > UINT64_MAX / 1000000)
                return perfctl_fail(p, PERFCTL_USAGE,
                                    "--interval-print: '%s' is not a number of milliseconds above 0, such as 1000",
                                    print);
        o->interval = ms * 1000000;
        return 0;
}

/* A time of whole intervals ends with the last of these, and not a moment later with another one of that moment. */
static int parse_duration(const Perfctl *p, StatOptions *o) {
        const char *duration = perfctl_get(p, "for");
        uint64_t n;

        if (duration && (!quantity_parse_time(duration, &o->duration) || o->duration == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--for: '%s' is not a time such as 500ms, 10s, 2m%s",
                                    duration, quantity_lack_of_time(duration));
        if (o->interval == 0 || o->duration % o->interval != 0 || o->duration == 0)
                return 0;
        n = o->duration / o->interval;
        if (o->count == 0 || n < o->count)
                o->count = n;
        o->duration = 0;
        return 0;
}

/* What only a command has, or only what is no command. */
static int parse_command(const Perfctl *p, StatOptions *o) {
        const char *repeat = perfctl_get(p, "repeat"), *count = perfctl_get(p, "count");
        bool has_interval = perfctl_get(p, "interval") || perfctl_get(p, "interval-print");
        int r = number_parse(p, "--count: ", count, &o->count);

        o->n_runs = 1;
        if (r == 0)
                r = number_parse(p, "--repeat: ", repeat, &o->n_runs);
        if (r != 0)
                return r;
        if ((r = command_check(p)) != 0)
                return r;
        o->is_beside = command_is_beside(p) || (p->command && perfctl_get(p, "cpu")); /* -C implies -a, as in perf-stat(1) */
        if (p->command && count && !has_interval)
                return perfctl_fail(p, PERFCTL_USAGE, "--count with a command requires an --interval");
        if (repeat && (!p->command || has_interval))
                return perfctl_fail(p, PERFCTL_USAGE, "--repeat is for a command, without an --interval");
        o->style.is_repeated = o->n_runs > 1;
        o->command = p->command;
        return 0;
}

static int parse_options(const Perfctl *p, StatOptions *o) {
        const perfd_event_spec *t = &o->asked.target;
        bool has_cycles = false;
        int r = target_parse(p, &o->asked.target);

        if (r == 0)
                r = parse_interval(p, o);
        if (r == 0)
                r = parse_command(p, o);
        if (r == 0)
                r = parse_duration(p, o);
        if (r == 0)
                r = parse_events(p, o);
        if (r == 0 && perfctl_get(p, "reconnect") && !p->is_of_several)
                r = perfctl_fail(p, PERFCTL_USAGE, "--reconnect is for hosts that --host names");
        if (r != 0)
                return r;
        o->asked.target.fallback = perfctl_get(p, "fallback");
        o->asked.target.filter = perfctl_get(p, "filter");
        o->asked.per_place = o->style.per_place = perfctl_get(p, "per-cgroup");
        o->style.per_cpu = perfctl_get(p, "per-cpu");
        o->style.separator = perfctl_get(p, "field-separator");
        for (size_t i = 0; i < o->asked.n_events; i++)
                has_cycles = has_cycles || stat_event_is_cycles(o->asked.events[i]);
        if (t->fallback && !has_cycles)
                return perfctl_fail(p, PERFCTL_USAGE, "--fallback is for cycles, which is none of the events");
        if (o->asked.per_place && t->n_cgroups + t->n_containers + t->n_units == 0)
                return perfctl_fail(p, PERFCTL_USAGE, "--per-cgroup requires a --cgroup, --container or --unit");
        if (o->style.separator && (!*o->style.separator || p->json))
                return perfctl_fail(p, PERFCTL_USAGE, *o->style.separator ? "--field-separator is not for --json" :
                                                                            "--field-separator: the value is empty");
        return 0;
}

static int choose_output(Perfctl *p) {
        const char *path = perfctl_get(p, "output"), *append = perfctl_get(p, "append");
        time_t now = time(NULL);
        int fd;

        if (append && !path)
                return perfctl_fail(p, PERFCTL_USAGE, "--append requires an --output");
        if (!path) {
                command_choose_output(p);
                return 0;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666);
        if (fd < 0)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, strerror(errno));
        p->out.fd = fd;
        if (!p->json)
                output_print(&p->out, "# started on %s\n", ctime(&now));
        return 0;
}

/* Names of software and hardware events, which no tracepoint has. */
static bool is_known(const char *event) {
        static const char *const known[] = { "cs", "faults", "migrations", "dummy", "cycles", "instructions", "branches" };

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strcmp(event, known[i]) == 0)
                        return true;
        return *event == '{' || (strchr(event, '-') && !strchr(event, ':'));
}

/* One event, with the group of its name if that was left out. */
static int find_event(const Perfctl *p, const char *event, EventWords *ret) {
        EventWords one = EVENT_WORDS_NULL;
        int r;

        if (event_advice_tell_time(p, event))
                return PERFCTL_FAILED;
        event_words_take(&one, event);
        r = is_known(event) ? 0 : event_words_find(&one, p, EVENT_WHERE_OFFERED);
        if (r == 0)
                event_words_take(ret, one.names[0]);
        event_words_deinit(&one);
        return r;
}

/* Events in each form that `add` and `watch` take. */
static int find_events(const Perfctl *p, StatOptions *o) {
        EventWords words = EVENT_WORDS_NULL;
        int r = 0;

        for (size_t i = 0; i < o->asked.n_events && r == 0; i++) {
                EventWords some = EVENT_WORDS_NULL;

                r = event_words_add(&some, p, o->asked.events[i]);
                for (size_t k = 0; k < some.n && r == 0; k++)
                        r = find_event(p, some.names[k], &words);
                event_words_deinit(&some);
        }
        if (r == 0)
                r = function_globs_expand(p, &words);
        if (r == 0) {
                stat_events_free((char **)(uintptr_t)o->asked.events, o->asked.n_events);
                o->asked.events = (const char *const *)words.names;
                o->asked.n_events = words.n;
                words.names = NULL;
                words.n = 0;
        }
        event_words_deinit(&words);
        return r;
}

static int verb_stat_run(Perfctl *p) {
        StatOptions o = { .asked = { .target = PERFD_EVENT_SPEC_INIT } };
        int r;

        if (p->gap.to > 0) { /* of a host that is away to the end */
                stat_put_gap(p, p->gap.to);
                return PERFCTL_OK;
        }
        r = parse_options(p, &o);
        if (r == 0)
                r = choose_output(p);
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = find_events(p, &o);
        if (r == 0)
                r = stat_run(p, &o);
        target_deinit(&o.asked.target);
        stat_events_free((char **)(uintptr_t)o.asked.events, o.asked.n_events);
        return r;
}

const Verb verb_stat = {
        .name = "stat",
        .arguments = "[EVENT...]",
        .help = "count events, and print the counts of each interval or command",
        .options = {
                { .name = "event", .letter = 'e', .argument = "EVENT,...", .help = "count these, as the arguments", .words = WORDS_OFFERED,
                  .repeats = true },
                { .name = "interval", .argument = "TIME", .help = "print every 100ms, 1s, not only at the end" },
                { .name = "interval-print", .letter = 'I', .argument = "MS", .help = "the same in milliseconds, as perf stat" },
                { .name = "count", .argument = "N", .help = "stop after N intervals" },
                { .name = "for", .argument = "TIME", .help = "stop after 500ms, 10s, 2m; without --interval one report of it" },
                { .name = "output", .letter = 'o', .argument = "FILE", .help = "write to FILE instead of stdout or stderr", .words = WORDS_FILES },
                { .name = "append", .help = "append to the --output file" },
                { .name = "field-separator", .letter = 'x', .argument = "SEP", .help = "columns as perf stat -x, for programs" },
                { .name = "repeat", .letter = 'r', .argument = "N", .help = "run the command N times: means and deviations" },
                { .name = "reconnect", .argument = "TIME|never", .choices = "never",
                  .help = "a host that is lost: for how long it is tried again, or never" },
                { .name = "per-cpu", .letter = 'A', .help = "each CPU on a line of its own" },
                { .name = "per-cgroup", .help = "a line for each cgroup, container and unit" },
                { .name = "fallback", .argument = "EVENT", .help = "count this if cycles are not available: cpu-clock",
                  .choices = "cpu-clock" },
                { .name = "filter", .argument = "F", .help = "the kernel's filter, events with fields only",
                  .words = WORDS_FIELDS_ALONE },
                ALL_CPUS_OPTION,
                TARGET_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_OFFERED,
        .has_command = true,
        .hosts = HOSTS_LINES,
        .run = verb_stat_run,
};
