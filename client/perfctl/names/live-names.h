/* For verbs that name the frames of a live host: what they have to ask for, and what they are told of memory. */
#pragma once

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/names/frame-names.h"

/* Side records that say what is mapped where. */
#define LIVE_NAMES_RECORDS                                                                                                        \
        (PERFD_RECORD_BIT(PERFD_COMM) | PERFD_RECORD_BIT(PERFD_FORK) | PERFD_RECORD_BIT(PERFD_EXIT) | PERFD_RECORD_BIT(PERFD_MMAP2) |  \
         PERFD_RECORD_BIT(PERFD_KSYMBOL))

/* To be said where these are not granted. */
#define LIVE_NAMES_LACK_RECORDS "callchains of programs have no names: what is mapped where is said by side records, which are not granted here"

/* Whether any of the events has callchains: without one there is nothing to name. 0, or an exit status after a message. */
int live_names_any_callchain(const Perfctl *p, const EventWords *words, bool *ret);
/*
 * When the stream begins. With LIVE_NAMES_RECORDS, what runs already is read of /proc, if the host is this one; without them only addresses of
 * the kernel have names: where a program has executed another one, nobody would say so. has_lines: as of frame_names_new().
 */
FrameNames *live_names_new(const Perfctl *p, const perfd_start *start, bool has_records, bool has_lines);
/* Each item of the stream that is no sample. */
void live_names_feed(FrameNames *f, const perfd_item *item);
