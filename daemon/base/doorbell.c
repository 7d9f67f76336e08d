/*
 * The fences make "pushed, then looked at armed" and "armed, then looked at the queue" one order: at least one of the
 * two sees the other, so that no push is slept over. That is why what lies between may be relaxed: to disarm orders nothing,
 * because the queue is looked at again behind the next doorbell_arm().
 *
 * The eventfd is watched for edges, so that it need not be read: its count only grows, and not to 2^64 in this world.
 */
#include "daemon/base/doorbell.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

int doorbell_init(Doorbell *d) {
        struct epoll_event edge = { .events = EPOLLIN | EPOLLET, .data.u32 = false };
        int r = 0;

        *d = DOORBELL_NULL;
        d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (d->fd >= 0)
                d->waiter = epoll_create1(EPOLL_CLOEXEC);
        if (d->waiter < 0 || epoll_ctl(d->waiter, EPOLL_CTL_ADD, d->fd, &edge) < 0) {
                r = error_origin(-errno);
                doorbell_deinit(d);
        }
        return r;
}

void doorbell_deinit(Doorbell *d) {
        d->waiter = close_fd(d->waiter);
        d->fd = close_fd(d->fd);
}

int doorbell_watch(Doorbell *d, int fd) {
        struct epoll_event level = { .events = EPOLLIN, .data.u32 = true };

        return epoll_ctl(d->waiter, EPOLL_CTL_ADD, fd, &level) < 0 ? error_origin(-errno) : 0;
}

void doorbell_arm(Doorbell *d) {
        atomic_store_explicit(&d->armed, true, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
}

void doorbell_disarm(Doorbell *d) {
        atomic_store_explicit(&d->armed, false, memory_order_relaxed);
}

bool doorbell_wait(Doorbell *d, nsec_t timeout) {
        struct epoll_event events[2];
        bool is_readable = false;
        int n;

        if (timeout > 0 && timeout != UINT64_MAX) { /* epoll_wait(2) knows only milliseconds */
                struct pollfd p = { .fd = d->waiter, .events = POLLIN };
                struct timespec ts = nsec_timespec(timeout);

                n = ppoll(&p, 1, &ts, NULL);
                assert(n >= 0 || errno == EINTR);
                timeout = 0;
        }
        n = epoll_wait(d->waiter, events, 2, timeout == 0 ? 0 : -1);
        assert(n >= 0 || errno == EINTR);
        doorbell_disarm(d);
        for (int i = 0; i < n; i++)
                is_readable |= events[i].data.u32;
        return is_readable;
}

void doorbell_ring(Doorbell *d) {
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&d->armed, memory_order_relaxed) &&
            atomic_exchange_explicit(&d->armed, false, memory_order_relaxed)) {
                ssize_t n = write(d->fd, &(uint64_t){ 1 }, sizeof(uint64_t));

                assert(n == sizeof(uint64_t) || errno == EAGAIN);
        }
}
