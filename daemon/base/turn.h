/*
 * Work that is done by one thread at a time. It has a thread of its own, the owner; while that sleeps others may do it, who
 * are there anyway. Only the owner ever waits: others who find the work in somebody's hands leave a word, and that one
 * does not stop before it has looked once more.
 *
 *     owner:   do work; while (!turn_give()); sleep; turn_take(); ...
 *     others:  push something; if (turn_try()) do work; while (!turn_give());
 *
 * What was written before turn_give(), or before a turn_try() in vain, is seen by whoever works afterwards.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Turn {
        _Atomic(uint32_t) word;
} Turn;

/* It begins in the hands of its owner. */
#define TURN_TAKEN ((Turn){ .word = 1 })

/* Owner: waits for whoever has it. */
void turn_take(Turn *t);
/* Others. False: somebody has it, and will look once more. */
bool turn_try(Turn *t);
/* Who has it. False: there is something new to look at, and it still has it. */
bool turn_give(Turn *t);
/* Others who have it and will not look once more: the owner is to be woken. */
void turn_leave(Turn *t);
