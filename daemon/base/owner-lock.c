/*
 * One word, and a futex(2) only where the owner wakes while another thread holds the lock. The owner sleeps for long, so that this
 * is rare. If the owner waits, the holder releases the lock although others have tried: the owner comes next, and does the work.
 *
 * Every change of the word is a read-modify-write, so that all of them are one release sequence: an acquire that reads any of them
 * sees what was written before each release ahead of it. owner_lock_end() and owner_lock_try() release; owner_lock_acquire(),
 * owner_lock_try() and owner_lock_end() acquire. Loads alone are relaxed: they only guess what the compare-and-swap will find.
 */
#include "daemon/base/owner-lock.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        LOCK_HELD = 1 << 0,
        LOCK_AGAIN = 1 << 1,  /* a thread has tried in vain */
        LOCK_WANTED = 1 << 2, /* the owner waits */
};

void owner_lock_acquire(OwnerLock *t) {
        uint32_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

        for (;;) {
                uint32_t next = word == 0 ? LOCK_HELD : word | LOCK_WANTED;
                long r;

                if (!atomic_compare_exchange_weak_explicit(&t->word, &word, next, memory_order_acquire, memory_order_relaxed))
                        continue;
                if (word == 0)
                        return;
                r = syscall(SYS_futex, &t->word, FUTEX_WAIT_PRIVATE, next, NULL, NULL, 0);
                assert(r == 0 || errno == EAGAIN || errno == EINTR);
                word = atomic_load_explicit(&t->word, memory_order_relaxed);
        }
}

bool owner_lock_try(OwnerLock *t) {
        uint32_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

        while (!atomic_compare_exchange_weak_explicit(&t->word, &word, word == 0 ? LOCK_HELD : word | LOCK_AGAIN,
                                                      memory_order_acq_rel, memory_order_relaxed))
                ;
        return word == 0;
}

static bool owner_lock_end(OwnerLock *t, bool even_if_again) {
        uint32_t word = atomic_load_explicit(&t->word, memory_order_relaxed);
        bool ends;

        do
                ends = even_if_again || !(word & LOCK_AGAIN) || (word & LOCK_WANTED);
        while (!atomic_compare_exchange_weak_explicit(&t->word, &word, ends ? 0 : LOCK_HELD, memory_order_acq_rel,
                                                      memory_order_relaxed));
        if (ends && (word & LOCK_WANTED)) {
                long r = syscall(SYS_futex, &t->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);

                assert(r >= 0);
        }
        return ends;
}

bool owner_lock_release(OwnerLock *t) {
        return owner_lock_end(t, false);
}

void owner_lock_leave(OwnerLock *t) {
        (void)owner_lock_end(t, true);
}
