/*
 * For long work on main: the places at which it lets others have their turn, as cond_resched() is for the kernel's. Code
 * that opens, walks or reads many things calls checkpoint() for each of them; what is served then is the loop's to say
 * (supervisor/operations/operations.c). On other threads, and while nobody has set anything, a checkpoint does nothing.
 */
#pragma once

#include "daemon/base/clock.h"
#include "daemon/base/error.h"

#define CHECKPOINT_INTERVAL (10 * NSEC_PER_MSEC) /* of work between two turns of the others */

typedef int (*CheckpointServe)(void *userdata, Explanation *e);

/* Of the calling thread; NULL: nothing. */
void checkpoint_set(CheckpointServe serve, void *userdata);
/*
 * 0: go on. REFUSED_CANCELLED: nobody wants the result any more; undo what was begun, as after every other refusal.
 * Negative: what serving the others has said.
 */
int checkpoint(Explanation *e);
