/* All that are named, or none: the daemon changes the whole list at once. */
#include "client/perfctl/events/refs.h"

static int disable_run(Perfctl *p) {
        return refs_change(p, perfd_disable);
}

const Verb verb_disable = {
        .name = "disable",
        .arguments = "NAME...",
        .help = "disable running events; they remain registered",
        .min_arguments = 1,
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SELECTED,
        .hosts = HOSTS_EACH,
        .run = disable_run,
};
