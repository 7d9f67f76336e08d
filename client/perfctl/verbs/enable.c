/* All that are named, or none: the daemon changes the whole list at once. */
#include "client/perfctl/events/refs.h"

static int enable_run(Perfctl *p) {
        return refs_change(p, perfd_enable);
}

const Verb verb_enable = {
        .name = "enable",
        .arguments = "NAME...",
        .help = "enable running events",
        .min_arguments = 1,
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SELECTED,
        .hosts = HOSTS_EACH,
        .run = enable_run,
};
