/* For verbs that name frames of a stream: what its side records say of memory. What ran before is looked up in /proc. */
#pragma once

#include "client/perfctl/frame-names.h"

/* Those that a subscription has to ask for. */
#define FRAME_STREAM_RECORDS                                                                                           \
        (PERFD_RECORD_BIT(PERFD_MMAP2) | PERFD_RECORD_BIT(PERFD_COMM) | PERFD_RECORD_BIT(PERFD_FORK) |               \
         PERFD_RECORD_BIT(PERFD_EXIT) | PERFD_RECORD_BIT(PERFD_KSYMBOL))

/* For a stream that begins; p: that it is of another host is known. */
FrameNames *frame_stream_new(const Perfctl *p, const perfd_start *start);
/* Any item, in its turn; samples are no matter. */
void frame_stream_take(FrameNames *f, const perfd_item *item);
