/* All that are named, or none: the daemon changes the whole list at once. */
#include "client/perfctl/events/refs.h"

/* A pattern may have meant them, and a reload is not expected to bring back what was removed. */
static void tell_configured(const Perfctl *p, const perfd_result *before, const perfd_result *removed) {
        const perfd_event_row *row;
        const perfd_ref_row *ref;
        size_t n = 0;

        for (size_t i = 0; (row = perfd_result_event(before, i)); i++)
                for (size_t k = 0; row->configured && (ref = perfd_result_ref(removed, k)); k++)
                        n += ref->id == row->id;
        if (n > 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%zu of them %s of the configuration: `perfctl reload` adds %s again", n,
                                   n > 1 ? "are" : "is", n > 1 ? "them" : "it");
}

static int remove_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *before = NULL, *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_list(p->client, NULL, &before) != 0)
                return perfctl_fail_client(p, NULL);
        r = refs_ask(p, perfd_remove, &result);
        if (r != 0)
                return r;
        refs_print(p, result);
        tell_configured(p, before, result);
        return PERFCTL_OK;
}

const Verb verb_remove = {
        .name = "remove",
        .arguments = "NAME...",
        .help = "remove running events",
        .min_arguments = 1,
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SELECTED,
        .hosts = HOSTS_EACH,
        .run = remove_run,
};
