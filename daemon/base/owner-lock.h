/*
 * Work that is done by one thread at a time. It has a thread of its own, the owner; while that sleeps others may do it, who
 * are there anyway. Only the owner ever waits: others who find the work in somebody's hands leave a word, and that one
 * does not stop before it has looked once more.
 *
 *     owner:   do work; while (!owner_lock_release()); sleep; owner_lock_acquire(); ...
 *     others:  push something; if (owner_lock_try()) do work; while (!owner_lock_release());
 *
 * What was written before owner_lock_release(), or before a owner_lock_try() in vain, is seen by whoever works afterwards.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct OwnerLock {
        _Atomic(uint32_t) word;
} OwnerLock;

/* It begins in the hands of its owner. */
#define OWNER_LOCK_HELD ((OwnerLock){ .word = 1 })

/* Owner: waits for whoever has it. */
void owner_lock_acquire(OwnerLock *t);
/* Others. False: somebody has it, and will look once more. */
bool owner_lock_try(OwnerLock *t);
/* Who has it. False: there is something new to look at, and it still has it. */
bool owner_lock_release(OwnerLock *t);
/* Others who have it and will not look once more: the owner is to be woken. */
void owner_lock_leave(OwnerLock *t);
