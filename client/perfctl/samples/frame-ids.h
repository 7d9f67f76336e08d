/*
 * For report: frames as numbers. Frames that differ in nothing that a report shows are the same one: a function is one line, at whichever of
 * its addresses it was, unless lines are asked for. What has no symbol is told by its address in the file, as perf-report(1) does. One thread.
 */
#pragma once

#include "client/perfctl/names/frame-names.h"
#include "client/perfctl/samples/text-ids.h"

typedef struct FrameId {
        uint32_t dso, symbol; /* texts; dso: ID_NONE is not known; symbol: "0x12f0" of what has none */
        uint32_t is_inlined, is_kernel;
        uint32_t line, file;  /* texts, "FILE:LINE" and FILE, of the source; ID_NONE: not known, or not asked for */
        uint32_t function;    /* the frame without its line; ID_NONE: this one */
} FrameId;

#define FRAMES_REMEMBERED ((size_t)8192) /* a power of two */

typedef struct RememberedFrame {
        const FrameName *name; /* NULL: free */
        const FrameName *at;
        uint64_t address;      /* of what has no symbol */
        bool is_inlined, is_kernel;
        uint32_t id;
} RememberedFrame;

typedef struct FrameIds {
        TextIds *texts; /* not owned */
        FrameId *list;
        uint32_t n, room;
        IdTable ids;
        uint64_t seed;
        RememberedFrame *remembered;
} FrameIds;

void frame_ids_init(FrameIds *f, TextIds *texts);
void frame_ids_deinit(FrameIds *f);
/* at: what has its line; NULL: frames of one function are the same, at whichever line. */
uint32_t frame_ids_add(FrameIds *f, const NamedFrame *frame, const FrameName *at);
/* The same frame, at whichever line. */
static inline uint32_t frame_ids_function(const FrameIds *f, uint32_t frame) {
        return f->list[frame].function == ID_NONE ? frame : f->list[frame].function;
}
/* The FrameNames that frames came from does not live any more. */
void frame_ids_forget_names(FrameIds *f);
