/* Changes the period or the frequency of a running event; no sample of another is lost. */
#include <stdlib.h>

#include "client/perfctl/base/number.h"
#include "client/perfctl/command-line/rate.h"
#include "client/perfctl/events/refs.h"

static int parse_words(const Perfctl *p, const char **ret_period, uint64_t *ret_frequency) {
        const char *hertz = perfctl_get(p, "frequency"), *option = perfctl_get(p, "period");
        const char *count = p->n_arguments > 1 ? p->arguments[1] : option;

        if (option && p->n_arguments > 1)
                return perfctl_fail(p, PERFCTL_USAGE, "the period is given twice: '%s' and --period %s", p->arguments[1], option);
        if (count && hertz)
                return perfctl_fail(p, PERFCTL_USAGE, "a period and --frequency exclude each other");
        if (!count && !hertz)
                return perfctl_fail(p, PERFCTL_USAGE, "a period or --frequency is missing");
        *ret_period = count;
        return number_parse(p, "--frequency: ", hertz, ret_frequency);
}

/* What is counted by this name, which the daemon refuses if nothing is. */
static int parse_period(const Perfctl *p, const char *name, const char *text, uint64_t *ret_period, uint64_t *ret_frequency) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *row = NULL;

        if (perfd_list(p->client, name, &result) == 0)
                row = perfd_result_event(result, 0);
        return rate_parse(p, "", text, !row ? NULL : row->fallen_back ? row->spec->fallback : row->spec->event, ret_period,
                          ret_frequency);
}

static int period_run(Perfctl *p) {
        uint64_t period = 0, frequency = 0;
        const char *text = NULL;
        char *name = NULL;
        int r = parse_words(p, &text, &frequency);

        if (r == 0) /* what is no rate of any event */
                r = rate_parse(p, "", text, NULL, &period, &frequency);
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = refs_name(p, p->arguments[0], &name);
        if (r == 0)
                r = parse_period(p, name, text, &period, &frequency);
        if (r == 0)
                r = perfd_set_period(p->client, name, period, frequency) == 0 ? refs_print_named(p, name) : perfctl_fail_client(p, NULL);
        free(name);
        return r;
}

const Verb verb_period = {
        .name = "period",
        .arguments = "NAME [N]",
        .help = "set the sample period or frequency of a running event",
        .options = {
                { .name = "period", .letter = 'c', .argument = "N", .help = "a sample each N events, as the argument" },
                { .name = "frequency", .letter = 'F', .argument = "HZ", .help = "samples per second, instead of a period" },
        },
        .min_arguments = 1,
        .max_arguments = 2,
        .words = WORDS_RUNNING,
        .hosts = HOSTS_EACH,
        .run = period_run,
};
