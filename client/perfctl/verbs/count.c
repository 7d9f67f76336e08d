/* The command line of what is counted here; count/count.c runs it. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/count/count.h"
#include "client/perfctl/hosts/gap.h"
#include "client/perfctl/print/list-text.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/events/target.h"

#define TOP_OF_TERMINAL 20

static int parse_time(const Perfctl *p, const char *option, const char *examples, uint64_t *ret) {
        const char *text = perfctl_get(p, option);

        if (text && (!quantity_parse_time(text, ret) || *ret == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not a time such as %s%s",
                                    option, text, examples, quantity_lack_of_time(text));
        return 0;
}

static int parse_size(const Perfctl *p, uint64_t *ret) {
        const char *text = perfctl_get(p, "queue");

        if (text && (!quantity_parse_size(text, ret) || *ret == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--queue: '%s' is not a size such as 64KiB, 4MiB", text);
        return 0;
}

static int fail_name(const Perfctl *p, const char *option, const char *text) {
        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not a field, nor an element of one, as args[2]%s", option, text,
                            strcmp(option, "by") == 0 ? ", nor any of " KEY_PARTS : "");
}

static int parse_columns(const Perfctl *p, const char **list, CountOptions *o) {
        o->columns = must_have(calloc(o->n_columns, sizeof(*o->columns)));
        for (size_t i = 0; i < o->n_columns; i++) {
                for (size_t k = 0; k < i; k++)
                        if (strcmp(list[k], list[i]) == 0)
                                return perfctl_fail(p, PERFCTL_USAGE, "--by: '%s' was already given", list[i]);
                if (!key_name_init(&o->columns[i], list[i]))
                        return fail_name(p, "by", list[i]);
        }
        return 0;
}

static int parse_number(const Perfctl *p, const char *option, const char *text, KeyName *name) {
        return key_name_init(name, text) && (name->field || name->part == KEY_PERIOD) ? 0 : fail_name(p, option, text);
}

static int parse_functions(const Perfctl *p, CountOptions *o) {
        int r = 0;

        for (CountFunction f = COUNT_SUM; f < _COUNT_FUNCTION_MAX && r == 0; f++) {
                const char *text = perfctl_get(p, count_function_name(f));

                if (!text)
                        continue;
                o->functions[o->n_functions].function = f;
                r = parse_number(p, count_function_name(f), text, &o->functions[o->n_functions++].name);
        }
        return r;
}

static int parse_live(const Perfctl *p, CountOptions *o) {
        o->is_live = perfctl_get(p, "live");
        if (!o->is_live)
                return 0;
        if (perfctl_get(p, "output"))
                return perfctl_fail(p, PERFCTL_USAGE, "--live and --output exclude each other");
        if (!p->human)
                return perfctl_fail(p, PERFCTL_USAGE,
                                    "--live: %s is not a terminal; --interval TIME prints one table below the other",
                                    p->command && !p->json ? "stderr" : "stdout");
        if (o->has_number)
                return perfctl_fail(p, PERFCTL_USAGE, "--live: histograms are more than a terminal has room for");
        if (o->interval == 0)
                o->interval = 1000000000;
        if (!perfctl_get(p, "top"))
                o->top = 0; /* as many as there is room for */
        return 0;
}

/*
 * Who did it is certain in the order of time only, and what is not asked for need not be put in it. Words of fields and texts are
 * taken for names of the process too: that costs a little, and is right.
 */
static perfd_order choose_order(const CountOptions *o) {
        static const KeyPart parts[] = { KEY_COMM, KEY_EXE, KEY_UID, KEY_CGROUP, KEY_CONTAINER, KEY_UNIT };

        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
                if (o->subscription.where && strstr(o->subscription.where, key_part_name(parts[i])))
                        return PERFD_ORDER_TIME;
                for (size_t k = 0; k < o->n_columns; k++)
                        if (o->columns[k].part == parts[i])
                                return PERFD_ORDER_TIME;
        }
        return PERFD_ORDER_CPU;
}

static int parse_options(const Perfctl *p, const char **list, CountOptions *o) {
        const char *hist = perfctl_get(p, "hist"), *top = perfctl_get(p, "top");
        size_t n_events;
        int r;

        (void)perfctl_get_all(p, "event", &n_events);
        if (p->n_arguments + n_events == 0)
                return perfctl_fail(p, PERFCTL_USAGE, "which events? as in `perfctl count syscalls:sys_enter_openat --by comm`");
        if (p->json && top)
                return perfctl_fail(p, PERFCTL_USAGE, "--top applies to tables only: JSON has all rows, the largest first");
        o->top = p->human ? TOP_OF_TERMINAL : 0;
        r = number_parse(p, "--top: ", top, &o->top);
        if (r == 0)
                r = parse_columns(p, list, o);
        if (r == 0 && hist) {
                o->has_number = true;
                r = parse_number(p, "hist", hist, &o->number);
        }
        if (r == 0)
                r = parse_functions(p, o);
        if (r == 0)
                r = parse_time(p, "interval", "500ms, 1s, 1m", &o->interval);
        if (r == 0)
                r = parse_live(p, o);
        if (r == 0)
                r = parse_time(p, "for", "500ms, 10s, 2m", &o->duration);
        if (r == 0)
                r = parse_size(p, &o->subscription.queue_bytes);
        if (r == 0 && perfctl_get(p, "reconnect") && !p->is_of_several)
                r = perfctl_fail(p, PERFCTL_USAGE, "--reconnect is for hosts that --host names");
        o->has_tables = perfctl_get(p, "ledger");
        o->may_lose = perfctl_get(p, "allow-loss");
        o->subscription.where = perfctl_get(p, "where");
        if (r == 0)
                o->subscription.order = choose_order(o);
        return r;
}

static int verb_count_run(Perfctl *p) {
        CountOptions o = { .subscription = PERFD_SUBSCRIPTION_INIT };
        const char *by = perfctl_get(p, "by");
        const char **list = list_split(by ? by : "event", &o.n_columns);
        int fd = -1, r = command_check(p);

        if (p->gap.to > 0) { /* of a host that is away to the end */
                host_gap_put_line(p, p->gap.to);
                free(list);
                return PERFCTL_OK;
        }
        if (perfctl_get(p, "output"))
                p->human = false; /* until it is open, which is not for a command line that is wrong */
        else
                command_choose_output(p);
        if (r == 0)
                r = parse_options(p, list, &o);
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = command_open_output(p, &fd);
        if (r == 0)
                r = count_run(p, &o);
        command_close_output(p, fd);
        for (size_t i = 0; o.columns && i < o.n_columns; i++)
                key_name_deinit(&o.columns[i]);
        for (size_t i = 0; i < o.n_functions; i++)
                key_name_deinit(&o.functions[i].name);
        key_name_deinit(&o.number);
        free(o.columns);
        free(list);
        return r;
}

const Verb verb_count = {
        .name = "count",
        .arguments = "EVENT...",
        .help = "count samples by fields, process or container",
        .options = {
                EVENT_OPTION(WORDS_SHOWN),
                { .name = "by", .argument = "FIELD,...", .help = "group by a field, comm, pid, cpu, unit, ...",
                  .choices = "comm pid tid cpu event exe uid cgroup container unit ip addr period" },
                { .name = "hist", .argument = "FIELD", .help = "with a histogram of this field by powers of two" },
                { .name = "sum", .argument = "FIELD", .help = "with the sum of this field" },
                { .name = "avg", .argument = "FIELD", .help = "with its average" },
                { .name = "min", .argument = "FIELD", .help = "with its smallest value" },
                { .name = "max", .argument = "FIELD", .help = "with its largest value" },
                { .name = "interval", .argument = "TIME", .help = "a table every 500ms, 1s, 1m, of that time alone" },
                { .name = "live", .help = "redraw the table in place, each second by default" },
                { .name = "top", .argument = "N", .help = "only the N largest rows; 20 on a terminal" },
                { .name = "where", .argument = "EXPR", .help = "only samples that match this expression", .words = WORDS_FIELDS },
                { .name = "for", .argument = "TIME", .help = "stop after 500ms, 10s, 2m" },
                { .name = "output", .letter = 'o', .argument = "FILE", .help = "write to FILE instead of stdout or stderr",
                  .words = WORDS_FILES },
                { .name = "reconnect", .argument = "TIME|never", .choices = "never",
                  .help = "a host that is lost: for how long it is tried again, or never" },
                { .name = "ledger", .help = "always print the closing ledger" },
                { .name = "allow-loss", .help = "exit with 0, not 4, if samples were lost" },
                { .name = "queue", .argument = "SIZE", .help = "size of the queue in the daemon, e.g. 4MiB" },
                ALL_CPUS_OPTION,
                TARGET_OPTIONS,
                SPEC_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .has_command = true,
        .hosts = HOSTS_LINES,
        .run = verb_count_run,
};
