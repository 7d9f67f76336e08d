/*
 * What readers need of those above: what is registered and subscribed, as a snapshot, and who has to know of a cut. Set before
 * the first snapshot.
 */
#pragma once

#include <stdbool.h>

#include "daemon/model/snapshot.h"

typedef struct ReaderHooks {
        void *userdata;
        /* All that is registered and subscribed now. -ENOMEM */
        int (*build_snapshot)(void *userdata, Snapshot **ret);
        /* There are fds beside those that are active: readers look for the place where the one become the other. */
        bool (*changes_over)(const void *userdata);
        /* It is known who has had children: which probes they have made inexact (supervisor/readers/births.h). */
        void (*judge_probes)(void *userdata);
        /* Every reader that answers has taken the cut. */
        void (*on_cut)(void *userdata);
        /* All work with the last snapshot. */
        void (*on_published)(void *userdata);
} ReaderHooks;
