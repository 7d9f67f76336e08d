/*
 * A lock for work that has a thread of its own, its owner, and that other threads may do while the owner sleeps. Only the owner ever
 * waits for it. A thread that cannot take the lock sets a flag; whoever holds the lock then does the work once more before it
 * releases it, so that nothing that was pushed before a try in vain is left undone.
 *
 *     owner:   do work; while (!owner_lock_release()); sleep; owner_lock_acquire(); ...
 *     others:  push something; if (owner_lock_try()) do work; while (!owner_lock_release());
 *
 * What was written before owner_lock_release(), or before an owner_lock_try() in vain, is seen by whoever works afterwards.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct OwnerLock {
        _Atomic(uint32_t) word;
} OwnerLock;

/* Initially the owner holds it. */
#define OWNER_LOCK_HELD ((OwnerLock){ .word = 1 })

/* Owner: waits until it is free. */
void owner_lock_acquire(OwnerLock *t);
/* Others. False: it is held, and its holder will do the work once more. */
bool owner_lock_try(OwnerLock *t);
/* The holder. False: another thread has tried meanwhile: the holder keeps the lock, and does the work once more. */
bool owner_lock_release(OwnerLock *t);
/* The holder, if it will not do the work once more; then it wakes the owner. */
void owner_lock_leave(OwnerLock *t);
