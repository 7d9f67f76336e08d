/* A new event, from the command line as from the configuration. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/perfctl/event-words.h"
#include "client/perfctl/fetch-args.h"
#include "client/perfctl/number.h"
#include "client/perfctl/quantity.h"
#include "client/perfctl/refs.h"
#include "client/perfctl/target.h"

static int parse_callchain(const Perfctl *p, perfd_callchain *ret) {
        const char *text = perfctl_get(p, "callchain");
        unsigned callchain = PERFD_CALLCHAIN_NONE;
        char *copy, *rest, *word;
        int r = 0;

        if (!text)
                return 0;
        copy = rest = must_have(strdup(text));
        while (r == 0 && (word = strsep(&rest, ","))) {
                if (strcmp(word, "kernel") == 0)
                        callchain |= PERFD_CALLCHAIN_KERNEL;
                else if (strcmp(word, "user") == 0)
                        callchain |= PERFD_CALLCHAIN_USER;
                else
                        r = perfctl_fail(p, PERFCTL_USAGE, "--callchain: '%s' is neither kernel, user nor kernel,user",
                                         text);
        }
        free(copy);
        *ret = (perfd_callchain)callchain;
        return r;
}

/* "NAME=VALUE", "NAME:TYPE": here it is known which option was meant. */
static int check_pairs(const Perfctl *p, const char *option, char separator) {
        size_t n;
        const char *const *pairs = perfctl_get_all(p, option, &n);

        for (size_t i = 0; i < n; i++)
                if (*pairs[i] == separator || !strchr(pairs[i], separator))
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' has no '%c', as in %s", option, pairs[i],
                                            separator, separator == '=' ? "exclude-user=true" : "code:u32");
        return 0;
}

static int parse_rate(const Perfctl *p, perfd_event_spec *s) {
        const char *interval = perfctl_get(p, "interval");
        uint64_t maxactive = 0;
        int r;

        if (perfctl_get(p, "period") && perfctl_get(p, "frequency"))
                return perfctl_fail(p, PERFCTL_USAGE, "--period and --frequency exclude each other");
        if (interval && (!quantity_parse_time(interval, &s->interval) || s->interval == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--interval: '%s' is no time, as in 100ms, 1s", interval);
        r = number_parse(p, "--period: ", perfctl_get(p, "period"), &s->period);
        if (r == 0)
                r = number_parse(p, "--frequency: ", perfctl_get(p, "frequency"), &s->frequency);
        if (r == 0)
                r = number_parse(p, "--maxactive: ", perfctl_get(p, "maxactive"), &maxactive);
        if (r == 0 && maxactive > UINT32_MAX)
                r = perfctl_fail(p, PERFCTL_USAGE, "--maxactive: '%s' is too large", perfctl_get(p, "maxactive"));
        s->maxactive = (uint32_t)maxactive;
        return r;
}

static int parse_spec(const Perfctl *p, perfd_event_spec *s) {
        int r;

        s->name = perfctl_get(p, "name");
        s->group = perfctl_get(p, "group");
        s->filter = perfctl_get(p, "filter");
        s->fallback = perfctl_get(p, "fallback");
        s->disabled = perfctl_get(p, "disabled");
        s->include_self = perfctl_get(p, "include-self");
        s->attr = perfctl_get_all(p, "attr", &s->n_attr);
        s->fields = perfctl_get_all(p, "field", &s->n_fields);
        r = parse_rate(p, s);
        if (r == 0)
                r = parse_callchain(p, &s->callchain);
        if (r == 0)
                r = check_pairs(p, "attr", '=');
        if (r == 0)
                r = check_pairs(p, "field", ':');
        return r == 0 ? target_parse(p, s) : r;
}

static int fail_args(const Perfctl *p, FetchArgsRefusal why, const char *event, const char *machine) {
        static const char *const words[] = {
                [FETCH_ARGS_ZERO] = "arguments are counted from 1, as $arg1",
                [FETCH_ARGS_RETURN] = "a function that returns has its arguments no more: fetch them by a second event at its "
                                      "beginning, of the kind uprobe; what it returns is $retval",
                [FETCH_ARGS_INSIDE] = "$arg1 and its like are where they were only at the beginning of the function: leave out the "
                                      "offset, or name a register, such as %di",
        };

        if (why == FETCH_ARGS_MACHINE)
                return perfctl_fail(p, PERFCTL_USAGE, "--args of %s: how functions are called is not known for %s, only for x86_64 and "
                                    "aarch64: name registers", event, machine);
        return perfctl_fail(p, PERFCTL_USAGE, "--args of %s: %s", event, words[why]);
}

/* What each event fetches: its own text, because user and kernel, entry and return differ. */
static int set_args(const Perfctl *p, const char *args, perfd_event_spec *s) {
        struct utsname u = { .machine = "" };
        FetchArgsRefusal why;
        size_t position = 0;
        char *text = NULL;
        int r;

        if (!args)
                return 0;
        (void)uname(&u); /* what is not known is refused where it is needed */
        why = fetch_args_translate(args, s->event, u.machine, &text, &position);
        s->args = text;
        if (why == FETCH_ARGS_OK)
                return 0;
        r = fail_args(p, why, s->event, u.machine);
        report_position(args, position);
        return r;
}

/* What the position of a mistake counts in; of several events that is known only if they share it. */
static const char *mistaken_text(const perfd_event_spec *s, size_t n, const char *reason) {
        if (strcmp(reason, "bad-filter") == 0)
                return s->filter;
        if (strcmp(reason, "bad-target") == 0)
                return s->cpus;
        if (n > 1 || strcmp(reason, "bad-attr") == 0)
                return NULL;
        if (strcmp(reason, "bad-args") == 0)
                return s->args;
        return strcmp(reason, "bad-name") == 0 ? s->name : s->event;
}

/* One list for all of `words`, so that all are added or none. */
static int send_specs(Perfctl *p, const EventWords *words, perfd_event_spec *specs, perfd_result **ret) {
        for (size_t i = 0; i < words->n; i++)
                specs[i].event = words->names[i];
        return (perfctl_get(p, "keep") ? perfd_add_kept : perfd_add)(p->client, specs, words->n, ret);
}

static int add_specs(Perfctl *p, EventWords *words, perfd_event_spec *specs) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        r = send_specs(p, words, specs, &result);
        if (r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0) {
                r = event_words_find(words, p, EVENT_WHERE_OFFERED);
                if (r != 0)
                        return r;
                r = send_specs(p, words, specs, &result); /* also if nothing was found: it says why */
        }
        if (r != 0)
                return perfctl_fail_client(p, mistaken_text(specs, words->n, perfd_client_error(p->client)->reason));
        refs_print(p, result);
        for (size_t i = 0; perfd_result_note(result, i); i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", perfd_result_note(result, i));
        return PERFCTL_OK;
}

/* The events, each like `s`. */
static int add_words(Perfctl *p, EventWords *words, const perfd_event_spec *s) {
        perfd_event_spec *specs = must_have(calloc(words->n, sizeof(*specs)));
        int r = 0;

        for (size_t i = 0; i < words->n; i++) {
                specs[i] = *s;
                specs[i].event = words->names[i];
        }
        for (size_t i = 0; i < words->n && r == 0; i++)
                r = set_args(p, perfctl_get(p, "args"), &specs[i]);
        if (r == 0)
                r = add_specs(p, words, specs);
        for (size_t i = 0; i < words->n; i++)
                free((void *)specs[i].args);
        free(specs);
        return r;
}

static int add_run(Perfctl *p) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        perfd_event_spec s = PERFD_EVENT_SPEC_INIT;
        int r = parse_spec(p, &s);

        if (r == 0)
                r = event_words_add_all(&words, p);
        if (r == 0 && words.n == 0)
                r = perfctl_fail(p, PERFCTL_USAGE, "which event? as in `perfctl add sched:sched_switch` or `perfctl add -e "
                                 "cycles,page-faults`; `perfctl available` lists them");
        if (r == 0 && words.n > 1 && s.name)
                r = perfctl_fail(p, PERFCTL_USAGE, "--name %s: %zu events can not all be called so: add each for itself, or give them a "
                                 "--group", s.name, words.n);
        if (r == 0)
                r = add_words(p, &words, &s);
        target_deinit(&s);
        return r;
}

const Verb verb_add = {
        .name = "add",
        .arguments = "[EVENT...]",
        .help = "add events; prints their names and ids",
        .options = {
                EVENT_OPTION(WORDS_OFFERED),
                { .name = "name", .argument = "NAME", .help = "what it is called, instead of EVENT" },
                { .name = "group", .argument = "NAME", .help = "the group to be changed with, by @NAME" },
                TARGET_OPTIONS,
                { .name = "filter", .argument = "F", .help = "the kernel's filter, events with fields only" },
                { .name = "args", .argument = "ARGS", .help = "probes: what they fetch, as in 'file=$arg1:x64'" },
                { .name = "maxactive", .argument = "N", .help = "kretprobe: calls at the same time that are followed" },
                { .name = "period", .argument = "N", .help = "a sample each N events" },
                { .name = "frequency", .argument = "HZ", .help = "so many samples a second" },
                { .name = "interval", .argument = "TIME", .help = "only count, and send the counts every 100ms, 1s" },
                { .name = "fallback", .argument = "EVENT", .help = "taken if this machine can not count it: cpu-clock",
                  .choices = "cpu-clock" },
                { .name = "callchain", .argument = "kernel,user", .help = "with callchains of one or both",
                  .choices = "kernel user kernel,user" },
                { .name = "attr", .argument = "NAME=VALUE", .help = "a field of perf_event_attr", .repeats = true },
                { .name = "field", .argument = "NAME:TYPE", .help = "external events: a field of the samples",
                  .repeats = true },
                { .name = "disabled", .help = "does not count before `perfctl enable`" },
                { .name = "keep", .help = "it is there again after a restart of perfd" },
                { .name = "include-self", .help = "perfd's own activity too" },
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_OFFERED,
        .run = add_run,
};
