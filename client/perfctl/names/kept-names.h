/* For frame-names.c: names of frames, each once. One thread. */
#pragma once

#include "client/perfctl/names/frame-names.h"

#define NAMES_RECENT ((size_t)1 << 12) /* a power of two */

typedef struct NameSlot {
        uint64_t hash;
        FrameName *name; /* NULL: free */
} NameSlot;

typedef struct KeptNames {
        NameSlot *list;
        size_t n, room; /* room: a power of two, at least half of it free */
        const FrameName *recent[NAMES_RECENT]; /* by where the symbolizer had their texts */
} KeptNames;

void kept_names_init(KeptNames *k);
void kept_names_deinit(KeptNames *k);
/* The same for the same. */
const FrameName *kept_names_add(KeptNames *k, const perfd_frame *frame);
