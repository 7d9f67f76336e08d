/*
 * Tells main, which logs losses, that some thread has lost samples since main last looked; how many is in the counters. Main is
 * woken by the first loss only: until it arms the bell again, a further loss costs the thread one load. While nothing is lost,
 * nothing is done.
 *
 *     a thread that loses: counts, loss_bell_note()
 *     main: loss_bell_take(), reads the counters by a cut; or loss_bell_arm() and sleeps
 *
 * A loss that is noted after loss_bell_take() is found by the next look; one before it is in the cut, which is taken by the
 * thread that counts. So reading an older value of the flag misses nothing.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef struct LossBell {
        int fd; /* eventfd: readable when main is to look */
        atomic_bool is_noted, is_armed; /* seq_cst: each side writes the one before it reads the other */
} LossBell;

#define LOSS_BELL_NULL { .fd = -1 }

/* Not armed at first. -errno of eventfd(2). */
int loss_bell_init(LossBell *b);
void loss_bell_deinit(LossBell *b);

/* The slow path of loss_bell_note(). Any thread. */
void loss_bell_ring(LossBell *b);
/* Any thread, after it has counted the loss. NULL: losses are not reported. */
static inline void loss_bell_note(LossBell *b) {
        if (b && !atomic_load_explicit(&b->is_noted, memory_order_relaxed))
                loss_bell_ring(b);
}

/* Main: whether something was lost since the last time. */
bool loss_bell_take(LossBell *b);
/* Main: lets the next loss wake it. False, not armed: there was one already. */
bool loss_bell_arm(LossBell *b);
/* Main, after it was woken: resets the fd. */
void loss_bell_quiet(LossBell *b);
