/* A new event, from the command line as from the configuration. */
#include <stdlib.h>
#include <string.h>

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

        s->event = p->arguments[0];
        s->name = perfctl_get(p, "name");
        s->group = perfctl_get(p, "group");
        s->filter = perfctl_get(p, "filter");
        s->args = perfctl_get(p, "args");
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

/* What the position of a mistake counts in. */
static const char *mistaken_text(const perfd_event_spec *s, const char *reason) {
        if (strcmp(reason, "bad-filter") == 0)
                return s->filter;
        if (strcmp(reason, "bad-args") == 0)
                return s->args;
        if (strcmp(reason, "bad-target") == 0)
                return s->cpus;
        if (strcmp(reason, "bad-name") == 0)
                return s->name;
        return strcmp(reason, "bad-attr") == 0 ? NULL : s->event;
}

static int add_spec(Perfctl *p, const perfd_event_spec *s) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if ((perfctl_get(p, "keep") ? perfd_add_kept : perfd_add)(p->client, s, 1, &result) != 0)
                return perfctl_fail_client(p, mistaken_text(s, perfd_client_error(p->client)->reason));
        refs_print(p, result);
        for (size_t i = 0; perfd_result_note(result, i); i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", perfd_result_note(result, i));
        return PERFCTL_OK;
}

static int add_run(Perfctl *p) {
        perfd_event_spec s = PERFD_EVENT_SPEC_INIT;
        int r = parse_spec(p, &s);

        if (r == 0)
                r = add_spec(p, &s);
        target_deinit(&s);
        return r;
}

const Verb verb_add = {
        .name = "add",
        .arguments = "EVENT",
        .help = "add an event; prints its name and id",
        .options = {
                { .name = "name", .argument = "NAME", .help = "what it is called, instead of EVENT" },
                { .name = "group", .argument = "NAME", .help = "the group to be changed with, by @NAME" },
                TARGET_OPTIONS,
                { .name = "filter", .argument = "F", .help = "the kernel's filter, events with fields only" },
                { .name = "args", .argument = "ARGS", .help = "probes: what they fetch, as in 'file=%di:x64'" },
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
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_OFFERED,
        .run = add_run,
};
