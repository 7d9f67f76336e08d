/*
 * One word, and a futex(2) only where the owner wakes while somebody else works: it is the one that sleeps for long, so that
 * this is rare. If it waits already, nobody looks once more in its place: it comes next, and looks.
 *
 * Every change of the word is a read-modify-write, so all of them are one release sequence: an acquire that reads any of them
 * sees what was written before each release ahead of it. turn_end() and owner_lock_try() release; owner_lock_acquire(), owner_lock_try() and
 * turn_end() acquire. Loads alone are relaxed: they only guess what the compare-and-swap will find.
 */
#include "daemon/base/owner-lock.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        TURN_HELD = 1 << 0,
        TURN_AGAIN = 1 << 1,  /* somebody came in vain */
        TURN_WANTED = 1 << 2, /* the owner waits */
};

void owner_lock_acquire(OwnerLock *t) {
        uint32_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

        for (;;) {
                uint32_t next = word == 0 ? TURN_HELD : word | TURN_WANTED;
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

        while (!atomic_compare_exchange_weak_explicit(&t->word, &word, word == 0 ? TURN_HELD : word | TURN_AGAIN,
                                                      memory_order_acq_rel, memory_order_relaxed))
                ;
        return word == 0;
}

static bool turn_end(OwnerLock *t, bool even_if_again) {
        uint32_t word = atomic_load_explicit(&t->word, memory_order_relaxed);
        bool ends;

        do
                ends = even_if_again || !(word & TURN_AGAIN) || (word & TURN_WANTED);
        while (!atomic_compare_exchange_weak_explicit(&t->word, &word, ends ? 0 : TURN_HELD, memory_order_acq_rel,
                                                      memory_order_relaxed));
        if (ends && (word & TURN_WANTED)) {
                long r = syscall(SYS_futex, &t->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);

                assert(r >= 0);
        }
        return ends;
}

bool owner_lock_release(OwnerLock *t) {
        return turn_end(t, false);
}

void owner_lock_leave(OwnerLock *t) {
        (void)turn_end(t, true);
}
