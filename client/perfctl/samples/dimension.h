/*
 * What a sample can be sorted by, for report, and what is looked at to choose samples. Its value is a number: of pid, tid, cpu and uid that
 * number, else the id of a text, and of a symbol also whether it is the kernel's. One thread.
 */
#pragma once

#include "client/perfctl/count/name.h"
#include "client/perfctl/samples/frame-ids.h"
#include "client/perfd.h"

typedef enum DimensionKind {
        DIMENSION_COMM,
        DIMENSION_PID,
        DIMENSION_TID,
        DIMENSION_CPU,
        DIMENSION_DSO,
        DIMENSION_SYMBOL,
        DIMENSION_LINE, /* of the source */
        DIMENSION_FILE, /* the same without its line */
        DIMENSION_TIME,
        DIMENSION_EVENT,
        DIMENSION_CONTAINER,
        DIMENSION_UNIT,
        DIMENSION_CGROUP,
        DIMENSION_EXE,
        DIMENSION_UID,
        N_DIMENSION_NAMES,
        DIMENSION_FIELD = N_DIMENSION_NAMES, /* of the event */
} DimensionKind;

#define DIMENSION_NAMES "comm, pid, tid, cpu, dso, symbol, line, srcfile, event, time, container, unit, cgroup, exe, uid"
#define DIMENSION_QUANTUM UINT64_C(100000000) /* ns: times are the beginnings of these, as perf-report(1) has it */
#define DIMENSION_ABSENT UINT64_MAX /* not known, or the sample has none */
#define DIMENSION_OF_KERNEL (UINT64_C(1) << 32) /* of the value of a symbol, above the id of its text */

typedef struct Dimension {
        DimensionKind kind;
        const char *text; /* as it is called */
        KeyName name;     /* of a field */
        uint64_t quantum; /* ns, of a time */
        bool was_found;   /* a sample has had the field */
} Dimension;

/*
 * A word: one of the names; else, or behind "field.", a field, or an element of one. False: it can be no name. The text has to live as long
 * as the dimension.
 */
bool dimension_init(Dimension *d, const char *text);
void dimension_deinit(Dimension *d);

/* Its values differ among the frames of one sample. */
static inline bool dimension_is_of_frame(const Dimension *d) {
        return d->kind == DIMENSION_DSO || d->kind == DIMENSION_SYMBOL || d->kind == DIMENSION_LINE || d->kind == DIMENSION_FILE;
}

/* Of the source, which takes debug information. */
static inline bool dimension_is_of_line(const Dimension *d) {
        return d->kind == DIMENSION_LINE || d->kind == DIMENSION_FILE;
}

static inline bool dimension_is_number(const Dimension *d) {
        return d->kind == DIMENSION_PID || d->kind == DIMENSION_TID || d->kind == DIMENSION_CPU || d->kind == DIMENSION_UID;
}

/* Of one that is not of a frame. */
uint64_t dimension_of_sample(Dimension *d, TextIds *texts, const perfd_item *item, const char *event);
/* Of one that is. frame: NULL is one that is not known. */
uint64_t dimension_of_frame(const Dimension *d, const FrameId *frame);
