/*
 * For this folder alone: from the registers and the stack of a thread to the addresses of its callers, by the call frame information of the
 * files that were mapped. A file's is read when an address in it comes first, and gives way to others when memory is short.
 */
#pragma once

#include "client/perfd/symbolizer.h"
#include "client/symbols/call-frames.h"

#define UNWOUND_MAX 127 /* frames, as of perf */

struct Dso;

typedef struct CallFrames {
        struct CallFrames *newer, *older; /* by use */
        struct Dso *dso;
        uint64_t serial;    /* no other has had it */
        ElfSymbols place;   /* its segments alone */
        FrameSection sections[2]; /* .eh_frame, .debug_frame */
        size_t bytes;
} CallFrames;

typedef struct CachedRules {
        uint64_t serial, address; /* serial 0: free */
        bool is_found;
        FrameRules rules;
} CachedRules;

typedef struct Unwinder {
        CallFrames *newest, *oldest;
        size_t bytes;       /* of all CallFrames */
        uint64_t serial;    /* the last that was given */
        CachedRules *cache; /* NULL: not needed yet */
        perfd_caller callers[UNWOUND_MAX];
} Unwinder;

/* unwind-files.c: those of a file. NULL in *ret: it has none. 0; -ENOMEM */
int call_frames_of(struct perfd_symbolizer *s, struct Dso *dso, CallFrames **ret);
/* Takes NULL. */
void call_frames_free(struct perfd_symbolizer *s, CallFrames *f);
