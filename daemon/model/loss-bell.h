/*
 * From threads that lose samples to main, which says so in the log: that something was lost since main has looked last, not what,
 * which is in the counters. Main is woken for the first loss only: until it arms the bell again, a loss costs a load. While
 * nothing is lost nobody does anything.
 *
 *     who loses: counts, loss_bell_note()          main: loss_bell_take(), reads the counters by a cut; or loss_bell_arm() and sleeps
 *
 * A loss that is noted behind loss_bell_take() is seen by the next look; one before it is in the cut, which is taken by the thread
 * that counts. So a load that is old by then misses nothing.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef struct LossBell {
        int fd; /* eventfd: readable when main is to look */
        atomic_bool is_noted, is_armed; /* seq_cst: each side writes the one before it reads the other */
} LossBell;

#define LOSS_BELL_NULL { .fd = -1 }

/* What eventfd(2) says. Not armed. */
int loss_bell_init(LossBell *b);
void loss_bell_deinit(LossBell *b);

void loss_bell_ring(LossBell *b);
/* Any thread, behind its count. NULL: nobody wants to know. */
static inline void loss_bell_note(LossBell *b) {
        if (b && !atomic_load_explicit(&b->is_noted, memory_order_relaxed))
                loss_bell_ring(b);
}

/* Main: whether something was lost since the last time. */
bool loss_bell_take(LossBell *b);
/* Main: it is woken by the next loss. False: there was one already. */
bool loss_bell_arm(LossBell *b);
/* Main, woken: the fd is quiet again. */
void loss_bell_quiet(LossBell *b);
