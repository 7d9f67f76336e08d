/* A new event, from the command line as from the configuration. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/quantity.h"
#include "client/perfctl/refs.h"

static int parse_number(const Perfctl *p, const char *option, uint64_t *ret) {
        const char *text = perfctl_get(p, option);

        if (!text || (quantity_parse_number(text, ret) && *ret > 0))
                return 0;
        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is no number above 0", option, text);
}

/* "12,13" into malloc'ed memory. */
static int parse_ids(const Perfctl *p, const char *option, const uint32_t **ret_ids, size_t *ret_n) {
        const char *text = perfctl_get(p, option);
        uint32_t *ids;
        size_t n = 0;
        char *copy, *rest, *word;
        int r = 0;

        if (!text)
                return 0;
        copy = rest = must_have(strdup(text));
        ids = must_have(calloc(strlen(text) + 1, sizeof(*ids)));
        while (r == 0 && (word = strsep(&rest, ","))) {
                uint64_t id;

                if (quantity_parse_number(word, &id) && id <= INT32_MAX)
                        ids[n++] = (uint32_t)id;
                else
                        r = perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is no list of numbers, as in 12,13", option, text);
        }
        free(copy);
        *ret_ids = ids; /* the caller frees it in any case */
        *ret_n = n;
        return r;
}

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

static int parse_spec(const Perfctl *p, perfd_event_spec *s) {
        int r;

        s->event = p->arguments[0];
        s->name = perfctl_get(p, "name");
        s->filter = perfctl_get(p, "filter");
        s->target = perfctl_get(p, "target");
        s->cpus = perfctl_get(p, "cpu");
        s->no_inherit = perfctl_get(p, "no-inherit");
        s->disabled = perfctl_get(p, "disabled");
        s->include_self = perfctl_get(p, "include-self");
        if (perfctl_get(p, "period") && perfctl_get(p, "frequency"))
                return perfctl_fail(p, PERFCTL_USAGE, "--period and --frequency exclude each other");
        r = parse_number(p, "period", &s->period);
        if (r == 0)
                r = parse_number(p, "frequency", &s->frequency);
        if (r == 0)
                r = parse_callchain(p, &s->callchain);
        if (r == 0)
                r = parse_ids(p, "pid", &s->pids, &s->n_pids);
        if (r == 0)
                r = parse_ids(p, "tid", &s->tids, &s->n_tids);
        return r;
}

static int add_spec(Perfctl *p, const perfd_event_spec *s) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_add(p->client, s, 1, &result) != 0) {
                /* the position is in the text that the reason speaks of */
                bool target = strcmp(perfd_client_error(p->client)->reason, "bad-target") == 0;

                return perfctl_fail_client(p, target ? s->cpus : s->filter);
        }
        refs_print(p, result);
        return PERFCTL_OK;
}

static int add_run(Perfctl *p) {
        perfd_event_spec s = PERFD_EVENT_SPEC_INIT;
        int r = parse_spec(p, &s);

        if (r == 0)
                r = add_spec(p, &s);
        free((void *)s.pids);
        free((void *)s.tids);
        return r;
}

const Verb verb_add = {
        .name = "add",
        .arguments = "EVENT",
        .help = "add an event; prints its name and id",
        .options = {
                { .name = "name", .argument = "NAME", .help = "what it is called, instead of EVENT" },
                { .name = "pid", .argument = "P,...", .help = "only these processes, with all their threads" },
                { .name = "tid", .argument = "T,...", .help = "only these threads" },
                { .name = "cpu", .argument = "LIST", .help = "only these CPUs, as in 0-3,8" },
                { .name = "no-inherit", .help = "without their children and new threads" },
                { .name = "target", .argument = "NAME", .help = "a target of the configuration" },
                { .name = "filter", .argument = "F", .help = "the kernel's filter, tracepoints only" },
                { .name = "period", .argument = "N", .help = "a sample each N events" },
                { .name = "frequency", .argument = "HZ", .help = "so many samples a second" },
                { .name = "callchain", .argument = "kernel,user", .help = "with callchains of one or both",
                  .choices = "kernel user kernel,user" },
                { .name = "disabled", .help = "does not count before `perfctl enable`" },
                { .name = "include-self", .help = "perfd's own activity too" },
        },
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_OFFERED,
        .run = add_run,
};
