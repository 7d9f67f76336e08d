/*
 * Points in long operations of main at which other requests are served, like cond_resched() in the kernel. Code that opens, walks
 * or reads many objects calls checkpoint() for each of them; the event loop decides what is served
 * (supervisor/operations/operations.c). On other threads, and while no function is set, a checkpoint does nothing.
 */
#pragma once

#include "daemon/base/clock.h"
#include "daemon/base/error.h"

#define CHECKPOINT_INTERVAL (10 * NSEC_PER_MSEC) /* of work between two turns of the others */

typedef int (*CheckpointServe)(void *userdata, Explanation *e);

/* Sets the function that checkpoint() calls on the calling thread; NULL: none. */
void checkpoint_set(CheckpointServe serve, void *userdata);
/*
 * 0: continue. REFUSED_CANCELLED: the result is no longer needed; undo what was begun, as after every other refusal.
 * Negative: the error of the function that was set.
 */
int checkpoint(Explanation *e);
