/* What the played kernel writes into rings: a sample of an occurrence, in the layout of perf_event_open(2). */
#pragma once

#include "tests/unit/played-kernel.h"

#define PLAYED_SAMPLE_MOST 64 /* words */
#define PLAYED_PID 1234       /* whose all of them are */
#define PLAYED_VEC 3          /* the field of RIG_TRACEPOINT */

/* counts: what a read(2) of it gives, of which the attr may want a copy. How many words it has. */
size_t played_sample(const PlayedFd *p, uint64_t time, const uint64_t *counts, size_t n_counts, uint64_t *to);
