/* Changes the kernel's filter of a running event; no sample of another is lost. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/refs.h"

/* Of two words that were swapped the first looks like a filter, and the second runs. */
static int refuse_swapped(const Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        const char *filter = p->arguments[0], *name = p->arguments[1];

        if (!strpbrk(filter, "=<>~ ") || strpbrk(name, "=<>~ ") || !*name)
                return 0;
        if (perfd_list(p->client, filter, &list) == 0 && perfd_result_event(list, 0)) /* it is called so */
                return 0;
        return perfctl_fail(p, PERFCTL_USAGE, "the event is named first: `perfctl filter '%s' '%s'`", name, filter);
}

static int filter_run(Perfctl *p) {
        char *name = NULL;
        int r = perfctl_connect(p);

        if (r == 0)
                r = refuse_swapped(p);

        if (r == 0)
                r = refs_name(p, p->arguments[0], &name);
        if (r == 0)
                r = perfd_set_filter(p->client, name, p->arguments[1]) == 0 ? refs_print_named(p, name)
                                                                            : perfctl_fail_client(p, p->arguments[1]);
        free(name);
        return r;
}

const Verb verb_filter = {
        .name = "filter",
        .arguments = "NAME FILTER",
        .help = "change the kernel's filter of a running event; '' removes it",
        .min_arguments = 2,
        .max_arguments = 2,
        .words = WORDS_RUNNING,
        .words_behind = WORDS_FIELDS_ALONE,
        .hosts = HOSTS_EACH,
        .run = filter_run,
};
