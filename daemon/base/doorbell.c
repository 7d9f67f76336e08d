/*
 * The fences make "pushed, then looked at armed" and "armed, then looked at the queue" one order: at least one of the
 * two sees the other, so that no push is slept over.
 */
#include "daemon/base/doorbell.h"

#include "daemon/base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>

int doorbell_init(Doorbell *d) {
        *d = DOORBELL_NULL;
        d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return d->fd < 0 ? -errno : 0;
}

void doorbell_deinit(Doorbell *d) {
        d->fd = close_fd(d->fd);
}

void doorbell_arm(Doorbell *d) {
        atomic_store_explicit(&d->armed, true, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
}

void doorbell_disarm(Doorbell *d) {
        uint64_t count;
        ssize_t n;

        atomic_store_explicit(&d->armed, false, memory_order_relaxed);
        n = read(d->fd, &count, sizeof(count));
        assert(n == sizeof(count) || errno == EAGAIN);
}

void doorbell_ring(Doorbell *d) {
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&d->armed, memory_order_relaxed) &&
            atomic_exchange_explicit(&d->armed, false, memory_order_relaxed)) {
                ssize_t n = write(d->fd, &(uint64_t){ 1 }, sizeof(uint64_t));

                assert(n == sizeof(uint64_t) || errno == EAGAIN);
        }
}
