/* The command line of counters; stat.c runs them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/number.h"
#include "client/perfctl/quantity.h"
#include "client/perfctl/stat.h"
#include "client/perfctl/target.h"

/* What perf-stat(1) counts, but for what needs a group. */
static const char *const usual_events[] = {
        "task-clock", "context-switches", "cpu-migrations", "page-faults",
        "cycles",     "instructions",     "branches",       "branch-misses",
};

static int parse_options(const Perfctl *p, StatOptions *o) {
        const char *interval = perfctl_get(p, "interval"), *count = perfctl_get(p, "count");
        int r = target_parse(p, &o->target);

        if (r != 0)
                return r;
        o->interval = p->command ? 0 : 1000000000;
        if (interval && (!quantity_parse_time(interval, &o->interval) || o->interval == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--interval: '%s' is no time, as in 100ms, 1s", interval);
        r = number_parse(p, "--count: ", count, &o->count);
        if (r != 0)
                return r;
        if (p->command && !p->command[0])
                return perfctl_fail(p, PERFCTL_USAGE, "the command behind -- is missing");
        if (p->command && !target_is_host(&o->target))
                return perfctl_fail(p, PERFCTL_USAGE, "a command is a target of its own: leave out the others");
        if (p->command && count && !interval)
                return perfctl_fail(p, PERFCTL_USAGE, "--count with a command needs an --interval");
        o->command = p->command;
        o->events = p->n_arguments > 0 ? (const char *const *)p->arguments : usual_events;
        o->n_events = p->n_arguments > 0 ? p->n_arguments : sizeof(usual_events) / sizeof(usual_events[0]);
        return 0;
}

/* Beside what the command itself says, a report would be hard to find: it goes where perf-stat(1) puts it. JSON is for programs. */
static int choose_output(Perfctl *p) {
        const char *path = perfctl_get(p, "output"), *append = perfctl_get(p, "append");
        time_t now = time(NULL);
        int fd;

        if (append && !path)
                return perfctl_fail(p, PERFCTL_USAGE, "--append needs an --output");
        if (!path) {
                if (p->command && !p->json)
                        p->out.fd = STDERR_FILENO;
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

static int verb_stat_run(Perfctl *p) {
        StatOptions o = { .target = PERFD_EVENT_SPEC_INIT };
        int r = parse_options(p, &o);

        if (r == 0)
                r = choose_output(p);
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = stat_run(p, &o);
        target_deinit(&o.target);
        return r;
}

const Verb verb_stat = {
        .name = "stat",
        .arguments = "[EVENT...]",
        .help = "count, and print what was counted in each interval, or by a command",
        .options = {
                { .name = "interval", .argument = "TIME", .help = "print every 100ms, 1s; a command's at its end else" },
                { .name = "count", .argument = "N", .help = "stop after N intervals" },
                { .name = "output", .letter = 'o', .argument = "FILE", .help = "into FILE, instead of stdout or stderr", .words = WORDS_FILES },
                { .name = "append", .help = "behind what --output has" },
                TARGET_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_OFFERED,
        .has_command = true,
        .run = verb_stat_run,
};
