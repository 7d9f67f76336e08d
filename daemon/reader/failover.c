/*
 * Failover: reading the ring of a reader that does not run, because a real-time or deadline task uses its CPU, or a debugger has
 * stopped it. The stall monitor notices it and starts a backup thread, which runs the reader's loop on another CPU. When the
 * reader runs again it takes its lock and dismisses the backup: that it runs proves that its CPU is available.
 *
 * Design: the work is moved, not the thread. A sleeping thread holds nothing, so one lock around what a reader does between two
 * sleeps (base/owner-lock.h) suffices for another thread to do it, even in place of a thread that is stopped; and nothing has to
 * detect when a moved thread can return. Only a thread that lost its CPU while it holds the lock is moved, so that it can finish
 * its cycle; then it returns to its CPU by itself.
 *
 * A thread that reads from another CPU uses a guard (reader/remote.c). A thread can be moved at any moment, but returns only
 * between two cycles of its loop. So what was done in a cycle was done on the ring's CPU if the thread is there afterwards; and a
 * clock value that was read before the thread was seen there is older than whatever was in progress there.
 */
#include "daemon/reader/cycle.h"

#include "daemon/base/log.h"
#include "daemon/kernel/task/tasks.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define WATCH_FROM (16 * NSEC_PER_MSEC) /* ns: a reader that sleeps for less is late before its ring is full */
/* ns: a command waits for a reader that is away for less, which then gives exact cuts */
#define EXECUTE_AFTER (100 * NSEC_PER_MSEC)
#define SAY_EACH (10 * NSEC_PER_SEC)
#define RETRY (1 * NSEC_PER_MSEC)

bool reader_is_overdue(const Reader *r) {
        return !r->has_stopped && r->backup_state != BACKUP_READS &&
               (clock_now(CLOCK_MONOTONIC) >= r->overdue_at || mailbox_has_news(&r->mailbox));
}

nsec_t reader_cpu_time(const Reader *r) {
        nsec_t backup = atomic_load_explicit(&r->is_backup, memory_order_relaxed) ? clock_now(CLOCK_THREAD_CPUTIME_ID) : 0;

        return clock_now(atomic_load_explicit(&r->cpu_clock, memory_order_relaxed)) + r->backup_cpu_time + backup;
}

/*
 * Half a ring is normal for a reader that wakes at ticks. For one that sleeps long it may be the beginning of a flood, so the
 * stall monitor is woken then.
 */
static void reader_watch_ring(Reader *r) {
        struct epoll_event when = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = (uint64_t)r->slot << 1 | 1 };
        int result;

        /* before epoll_ctl(2): the monitor may be woken at once and clear it */
        atomic_store_explicit(&r->is_watched, true, memory_order_relaxed);
        /* a full barrier, like epoll_wait(2) in the monitor */
        result = epoll_ctl(r->stall_fd, EPOLL_CTL_MOD, r->carrier_fd, &when);
        if (result < 0 && errno == ENOENT)
                result = epoll_ctl(r->stall_fd, EPOLL_CTL_ADD, r->carrier_fd, &when);
        if (result < 0) /* ENOMEM: tried again at the next sleep */
                atomic_store_explicit(&r->is_watched, false, memory_order_relaxed);
}

void reader_watch(Reader *r, nsec_t due, bool may_fill) {
        r->overdue_at = due == UINT64_MAX ? due : due + MAILBOX_OVERDUE;
        if (may_fill && r->wait >= WATCH_FROM && r->stall_fd >= 0 && !atomic_load_explicit(&r->is_watched, memory_order_relaxed))
                reader_watch_ring(r);
        if (due != UINT64_MAX)
                mailbox_set_overdue(r->mailbox.overdue_fd, r->overdue_at);
        else if (may_fill)
                mailbox_clear_overdue(&r->mailbox);
        /* otherwise it may still expire, and then the reader is not late */
}

void reader_go_home(Reader *r) {
        /* pairs with look_at_cycle(), which sets it after the move */
        if (!atomic_load_explicit(&r->is_moved, memory_order_acquire))
                return;
        atomic_store_explicit(&r->is_moved, false, memory_order_relaxed);
        (void)thread_move(&r->thread, &r->cpu, 1); /* EINVAL: the CPU went offline, and main will stop this thread */
}

static const char *reader_why(const Reader *r) {
        switch (task_state((uint32_t)r->thread.tid)) {
        case 't':
        case 'T':
                return "a debugger has stopped it";
        case 'R':
                return "threads of a higher priority use its CPU";
        default:
                return "the kernel does not schedule it";
        }
}

static void reader_say_away(Reader *r) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        if (r->has_said || now - r->failed_over_at < EXECUTE_AFTER || (r->said_at > 0 && now - r->said_at < SAY_EACH))
                return;
        r->has_said = true;
        r->said_at = now;
        log_print_with(LOG_NOTICE, MESSAGE_READER_AWAY, LOG_FIELDS({ "CPU", LOG_NUMBER(r->cpu) }),
                       "the reader of CPU %u does not run, because %s: its ring buffer is read from another CPU", r->cpu,
                       reader_why(r));
}

static void reader_come_back(Reader *r) {
        r->backup_state = BACKUP_DISMISSED;
        if (r->has_said)
                log_print_with(LOG_NOTICE, MESSAGE_READER_BACK, LOG_FIELDS({ "CPU", LOG_NUMBER(r->cpu) }),
                               "the reader of CPU %u runs again, after %.1f s", r->cpu,
                               (double)(clock_now(CLOCK_MONOTONIC) - r->failed_over_at) / (double)NSEC_PER_SEC);
        r->has_said = false;
}

/* The lock may also be held for a moment by the stall monitor, or by the reader, which thereby dismisses the backup. */
static bool backup_acquire_lock(Reader *r) {
        while (!owner_lock_try(&r->lock))
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = (long)RETRY }, NULL);
        if (r->has_stopped || r->backup_state == BACKUP_DISMISSED) {
                r->backup_state = BACKUP_NONE;
                r->backup_cpu_time += clock_now(CLOCK_THREAD_CPUTIME_ID);
                owner_lock_leave(&r->lock);
                return false;
        }
        atomic_store_explicit(&r->is_backup, true, memory_order_relaxed);
        reader_say_away(r);
        return true;
}

bool reader_acquire_lock(Reader *r, bool as_backup, bool *ret_is_back) {
        if (as_backup)
                return backup_acquire_lock(r);
        owner_lock_acquire(&r->lock);
        atomic_store_explicit(&r->is_backup, false, memory_order_relaxed);
        if (r->backup_state == BACKUP_READS) {
                reader_come_back(r);
                *ret_is_back = true;
        }
        return true;
}

bool reader_may_execute(Reader *r) {
        return !atomic_load_explicit(&r->is_backup, memory_order_relaxed) ||
               clock_now(CLOCK_MONOTONIC) - r->failed_over_at >= EXECUTE_AFTER;
}

void reader_let_end(const Reader *r) {
        _cleanup_free_ uint32_t *cpus = NULL;
        size_t n = 0;

        if (thread_get_cpus(&cpus, &n) == 0)
                (void)thread_move(&r->thread, cpus, n); /* if it fails, the thread ends when its CPU is available */
}

static int backup_run(void *userdata) {
        Reader *r = userdata;
        int error;

        reader_set_priority(r);
        if (!backup_acquire_lock(r))
                return 0;
        error = reader_loop(r, true);
        if (error < 0)
                reader_abort(r, error);
        return 0;
}

int reader_fail_over(Reader *r, const uint32_t *cpus, size_t n_cpus) {
        char name[32];
        int error;

        if (r->backup_state == BACKUP_NONE) { /* an earlier backup is ending */
                (void)thread_join(&r->backup);
                (void)snprintf(name, sizeof(name), "backup-%u", r->cpu);
                error = thread_start_on(&r->backup, THREAD_READER, name, cpus, n_cpus, backup_run, r);
                if (error < 0)
                        return error_trace(error);
        }
        r->backup_state = BACKUP_READS;
        r->failed_over_at = clock_now(CLOCK_MONOTONIC);
        counter_add(&r->counters.failovers, 1);
        return 0;
}
