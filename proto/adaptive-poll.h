/*
 * For whoever reads a stream in shared memory: when to look by oneself instead of being rung for. A bell is a system call and
 * an interrupt for another CPU, which the daemon pays for each subscriber at each tick, on the CPU of the traced program.
 * While something comes at every tick, a reader that sleeps until shortly behind the next one needs none; the daemon rings
 * all the same when the ring gets full.
 *
 * How long behind a tick is learned: a little less each time that there was something, much more when it came later. A
 * reader that looks in vain, because nothing comes at that tick, tries the next one if it hardly ever did, and else waits for
 * bells again, the longer the more often it did.
 *
 * One owner, no thread. Times are ns of CLOCK_MONOTONIC.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/stream-ring.h"

typedef struct AdaptivePoll {
        uint64_t due;    /* when it will look; 0: when it is rung for */
        RingTick tick;   /* that was expected when something came last; 0: nothing did */
        uint64_t slack;  /* behind a tick, ns */
        unsigned streak; /* ticks at which something came, one behind the other */
        unsigned needed; /* so many before it looks by itself */
        unsigned n_missed; /* it looked in vain, so often: what comes next tells why */
} AdaptivePoll;

#define ADAPTIVE_POLL_SLACK 100000 /* ns: at first, and at least */
#define ADAPTIVE_POLL_INIT { .slack = ADAPTIVE_POLL_SLACK, .needed = 2 }

/* It looked and took n bytes; is_rung: there was a bell. */
void adaptive_poll_looked(AdaptivePoll *p, const RingReader *r, uint64_t now, size_t n, bool is_rung);
/*
 * It is armed, has looked once more, and sleeps: until when at most. UINT64_MAX: until there is a bell. Else it has to look by
 * then; asked again before it does, it gets the same answer.
 */
uint64_t adaptive_poll_sleep(AdaptivePoll *p, RingReader *r, uint64_t now);
