/* All that are named, or none: the daemon changes the whole list at once. */
#include "client/perfctl/refs.h"

static int remove_run(Perfctl *p) {
        return refs_change(p, perfd_remove);
}

const Verb verb_remove = {
        .name = "remove",
        .arguments = "NAME...",
        .help = "remove running events",
        .min_arguments = 1,
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SELECTED,
        .run = remove_run,
};
