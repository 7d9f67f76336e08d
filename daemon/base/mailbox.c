/*
 * An eventfd write is the release, its read the acquire; the queue and the bits carry their own order as well. Bits are only
 * changed by read-modify-writes that acquire and release: who takes them sees what was written before each ask, that of those
 * too who found their bit set and did not ring. Whether there are any may be looked at relaxed: by who was woken after an ask,
 * or will be.
 */
#include "daemon/base/mailbox.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

int mailbox_init(Mailbox *m, size_t capacity) {
        int r;

        *m = MAILBOX_NULL;
        r = queue_init(&m->messages, capacity);
        if (r < 0)
                return r;
        m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (m->fd < 0) {
                r = error_origin(-errno);
                queue_deinit(&m->messages);
                return r;
        }
        return 0;
}

void mailbox_deinit(Mailbox *m) {
        m->fd = close_fd(m->fd);
        queue_deinit(&m->messages);
}

static void mailbox_ring(Mailbox *m) {
        /* eventfd(2): EAGAIN only at 2^64 - 2, and then the receiver is awake already */
        ssize_t n = write(m->fd, &(uint64_t){ 1 }, sizeof(uint64_t));

        assert(n == sizeof(uint64_t) || errno == EAGAIN);
        if (m->overdue_fd >= 0)
                mailbox_set_overdue(m->overdue_fd, clock_now(CLOCK_MONOTONIC) + MAILBOX_OVERDUE);
}

bool mailbox_post(Mailbox *m, void *message) {
        if (!queue_push(&m->messages, message))
                return false;
        mailbox_ring(m);
        return true;
}

void mailbox_ask(Mailbox *m, uint32_t bits) {
        uint32_t before = atomic_fetch_or_explicit(&m->asks, bits, memory_order_acq_rel);

        if ((before & bits) != bits)
                mailbox_ring(m);
}

void mailbox_quiet(Mailbox *m) {
        uint64_t count;
        ssize_t n = read(m->fd, &count, sizeof(count));

        assert(n == sizeof(count) || errno == EAGAIN);
}

uint32_t mailbox_take_asks(Mailbox *m) {
        return atomic_exchange_explicit(&m->asks, 0, memory_order_acq_rel);
}

void *mailbox_pop(Mailbox *m) {
        return queue_pop(&m->messages);
}

bool mailbox_has_news(const Mailbox *m) {
        return atomic_load_explicit(&m->asks, memory_order_relaxed) != 0 || !queue_is_empty(&m->messages);
}

/* Who rings sets the timer after its message: either it is seen here, or the timer is set after it was cleared. */
void mailbox_clear_overdue(Mailbox *m) {
        mailbox_set_overdue(m->overdue_fd, 0);
        atomic_thread_fence(memory_order_seq_cst);
        if (mailbox_has_news(m))
                mailbox_set_overdue(m->overdue_fd, clock_now(CLOCK_MONOTONIC) + MAILBOX_OVERDUE);
}

void mailbox_set_overdue(int overdue_fd, nsec_t at) {
        const struct itimerspec when = { .it_value = nsec_timespec(at) };
        int r = overdue_fd < 0 ? 0 : timerfd_settime(overdue_fd, TFD_TIMER_ABSTIME, &when, NULL);

        assert(r == 0); /* timerfd_settime(2): only for arguments that cannot be right */
}
