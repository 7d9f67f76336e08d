/* Changes the kernel's filter of a running event; no sample of another is lost. */
#include "client/perfctl/perfctl.h"

static int filter_run(Perfctl *p) {
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_set_filter(p->client, p->arguments[0], p->arguments[1]) != 0)
                return perfctl_fail_client(p, p->arguments[1]);
        return PERFCTL_OK;
}

const Verb verb_filter = {
        .name = "filter",
        .arguments = "NAME FILTER",
        .help = "change the kernel's filter of a running event; '' removes it",
        .min_arguments = 2,
        .max_arguments = 2,
        .words = WORDS_RUNNING,
        .words_behind = WORDS_FIELDS_ALONE,
        .run = filter_run,
};
