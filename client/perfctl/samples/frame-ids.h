/*
 * For report: frames as numbers. Frames that differ in nothing that a report shows are the same one: a function is one line, at whichever of
 * its addresses it was. What has no symbol is told by its address in the file, as perf-report(1) does. One thread.
 */
#pragma once

#include "client/perfctl/names/frame-names.h"
#include "client/perfctl/samples/text-ids.h"

typedef struct FrameId {
        uint32_t dso, symbol; /* texts; dso: ID_NONE is not known; symbol: "0x12f0" of what has none */
} FrameId;

#define FRAMES_REMEMBERED ((size_t)8192) /* a power of two */

typedef struct RememberedFrame {
        const FrameName *name; /* NULL: free */
        uint64_t address;      /* of what has no symbol */
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
uint32_t frame_ids_add(FrameIds *f, const NamedFrame *frame);
/* The FrameNames that frames came from does not live any more. */
void frame_ids_forget_names(FrameIds *f);
