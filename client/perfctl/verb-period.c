/* Changes how often a running event is sampled; no sample of another is lost. */
#include "client/perfctl/number.h"

static int period_run(Perfctl *p) {
        const char *hertz = perfctl_get(p, "frequency"), *count = p->n_arguments > 1 ? p->arguments[1] : NULL;
        uint64_t period = 0, frequency = 0;
        int r;

        if (count && hertz)
                return perfctl_fail(p, PERFCTL_USAGE, "a period and --frequency exclude each other");
        if (!count && !hertz)
                return perfctl_fail(p, PERFCTL_USAGE, "a period or --frequency is missing");
        r = number_parse(p, "", count, &period);
        if (r == 0)
                r = number_parse(p, "--frequency: ", hertz, &frequency);
        if (r == 0)
                r = perfctl_connect(p);
        if (r != 0)
                return r;
        if (perfd_set_period(p->client, p->arguments[0], period, frequency) != 0)
                return perfctl_fail_client(p, NULL);
        return PERFCTL_OK;
}

const Verb verb_period = {
        .name = "period",
        .arguments = "NAME [N]",
        .help = "set the sample period or frequency of a running event",
        .options = {
                { .name = "frequency", .argument = "HZ", .help = "samples per second, instead of a period" },
        },
        .min_arguments = 1,
        .max_arguments = 2,
        .words = WORDS_RUNNING,
        .run = period_run,
};
