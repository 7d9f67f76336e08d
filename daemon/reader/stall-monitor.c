/*
 * The stall monitor. A reader that is late either sleeps, and then a backup reads in its place (reader/failover.c), or holds its
 * lock in the middle of a cycle, which may be a long one. In the second case its CPU time shows whether it runs: if it does not
 * advance, the thread is moved to another CPU, to finish its cycle there.
 */
#include "daemon/reader/stall-monitor.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

#define MONITOR_NICE -19
#define EVENTS 16
#define STOP UINT64_MAX
#define RING_OVERDUE (2 * NSEC_PER_MSEC) /* ns: after half of a ring was written while its reader slept */
#define RUNS_SHARE 8 /* of the time: a thread that used less of its CPU than this share does not get it */
#define END_MOST NSEC_PER_SEC
#define RETRY (100 * NSEC_PER_MSEC)

typedef struct Stall {
        uint64_t turns; /* of the reader's heartbeat, when it was seen in the middle of a cycle */
        nsec_t seen_at, cpu_time;
} Stall;

static void say_once(StallMonitor *m, const Reader *r, const char *what, int error) {
        if (!m->has_said)
                log_print_with(LOG_WARNING, MESSAGE_READER_AWAY, LOG_FIELDS({ "CPU", LOG_NUMBER(r->cpu) }),
                               "the reader of CPU %u does not run, and %s: %s; samples that do not fit in its ring buffer are "
                               "lost, and counted", r->cpu, what, error_text(error));
        m->has_said = true;
}

/*
 * The CPUs of this thread. Those from which the ring may be read while its reader does not run come first, then the reader's own.
 */
static int find_cpus(const Reader *r, uint32_t **ret_cpus, size_t *ret_n, size_t *ret_n_others) {
        int error = thread_get_cpus(ret_cpus, ret_n);
        uint32_t *cpus = *ret_cpus;

        *ret_n_others = *ret_n;
        for (size_t i = 0; error == 0 && i < *ret_n_others; i++)
                if (cpus[i] == r->cpu) {
                        cpus[i] = cpus[--*ret_n_others];
                        cpus[*ret_n_others] = r->cpu;
                }
        return error;
}

/*
 * With the reader's lock. A new thread starts on the CPUs of the one that creates it, and may not be able to set its own affinity
 * if that is a CPU that a real-time task uses. So this thread first restricts itself to the other CPUs.
 */
static void fail_over(StallMonitor *m, Reader *r) {
        _cleanup_free_ uint32_t *cpus = NULL;
        size_t n = 0, n_others = 0;
        int error = find_cpus(r, &cpus, &n, &n_others);

        if (error == 0 && n_others == 0)
                return;
        if (error == 0 && (n_others == n || (error = thread_move(&m->thread, cpus, n_others)) == 0))
                error = reader_fail_over(r, cpus, n_others);
        if (n_others < n)
                (void)thread_move(&m->thread, cpus, n); /* they were its own before */
        if (error == 0)
                return;
        say_once(m, r, "no other thread can be started to read its ring buffer", error);
        mailbox_set_overdue(r->overdue_fd, clock_now(CLOCK_MONOTONIC) + RETRY);
}

/* True if it used less of its CPU than a running thread would, since it was last seen in the middle of the same cycle. */
static bool is_held(Stall *s, Reader *r, nsec_t now) {
        uint64_t turns = atomic_load_explicit(&r->heartbeat.turns, memory_order_relaxed); /* a single value: is it the same cycle */
        nsec_t cpu_time = clock_now(atomic_load_explicit(&r->cpu_clock, memory_order_relaxed)); /* a single value */
        bool held = turns == s->turns && s->seen_at > 0 && now - s->seen_at >= MAILBOX_OVERDUE / 2 &&
                    (cpu_time - s->cpu_time) * RUNS_SHARE < now - s->seen_at;

        *s = (Stall){ .turns = turns, .seen_at = now, .cpu_time = cpu_time };
        return held;
}

/* The lock is held: its holder is in the middle of a cycle. */
static void look_at_cycle(StallMonitor *m, Reader *r) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        _cleanup_free_ uint32_t *cpus = NULL;
        size_t n = 0, n_others = 0;

        if (!atomic_load_explicit(&r->is_backup, memory_order_relaxed) && r->away_guard > 0 &&
            is_held(&m->stalls[r->slot], r, now) && find_cpus(r, &cpus, &n, &n_others) == 0 && n_others > 0) {
                (void)thread_move(&r->thread, cpus, n_others); /* fails only if none of them is online any more */
                /* behind the move, or a thread that goes home in between is moved away for ever; pairs with reader_go_home() */
                atomic_store_explicit(&r->is_moved, true, memory_order_release);
        }
        mailbox_set_overdue(r->overdue_fd, now + MAILBOX_OVERDUE);
}

static void on_timer(StallMonitor *m, Reader *r) {
        uint64_t n_expired;
        ssize_t n = read(r->overdue_fd, &n_expired, sizeof(n_expired));

        assert(n == sizeof(n_expired) || errno == EAGAIN);
        if (!owner_lock_try(&r->lock)) {
                look_at_cycle(m, r);
                return;
        }
        if (reader_is_overdue(r))
                fail_over(m, r);
        else if (r->backup_state != BACKUP_READS && r->overdue_at != UINT64_MAX)
                mailbox_set_overdue(r->overdue_fd, r->overdue_at);
        owner_lock_leave(&r->lock);
}

/* The kernel reports once that half of the ring has been written, and has done so to this thread: the reader has to be told. */
static void on_ring(Reader *r) {
        atomic_store_explicit(&r->is_watched, false, memory_order_relaxed); /* visible to the thread that takes the ask */
        mailbox_ask(&r->mailbox, READER_ASK_LOOK);
        mailbox_set_overdue(r->overdue_fd, clock_now(CLOCK_MONOTONIC) + RING_OVERDUE);
}

static int stall_monitor_run(void *userdata) {
        StallMonitor *m = userdata;

        /* readers have the same priority, and log if they may not */
        (void)thread_set_heritable_priority(m->priority, MONITOR_NICE);
        for (;;) {
                struct epoll_event events[EVENTS];
                int n = epoll_wait(m->epoll_fd, events, EVENTS, -1);

                assert(n >= 0 || errno == EINTR);
                for (int i = 0; i < n; i++) {
                        if (events[i].data.u64 == STOP)
                                return 0;
                        if (events[i].data.u64 & 1)
                                on_ring(&m->readers[events[i].data.u64 >> 1]);
                        else
                                on_timer(m, &m->readers[events[i].data.u64 >> 1]);
                }
        }
}

static int add_fd(StallMonitor *m, int fd, uint64_t what) {
        struct epoll_event when = { .events = EPOLLIN, .data.u64 = what };

        return epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &when) < 0 ? error_origin(-errno) : 0;
}

static int add_timers(StallMonitor *m) {
        int r = 0;

        m->timers = malloc(m->n * sizeof(*m->timers));
        m->stalls = calloc(m->n, sizeof(*m->stalls));
        if (!m->timers || !m->stalls)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < m->n; i++)
                m->timers[i] = -1;
        for (size_t i = 0; i < m->n && r == 0; i++) {
                m->timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
                r = m->timers[i] < 0 ? error_origin(-errno) : add_fd(m, m->timers[i], (uint64_t)i << 1);
                m->readers[i].overdue_fd = m->timers[i];
                m->readers[i].stall_fd = m->epoll_fd;
        }
        return r;
}

int stall_monitor_start(StallMonitor *m) {
        int r;

        m->thread = THREAD_NULL;
        m->timers = NULL;
        m->stalls = NULL;
        m->has_said = false;
        m->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        m->epoll_fd = m->stop_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
        if (m->epoll_fd < 0)
                return error_origin(-errno);
        r = add_fd(m, m->stop_fd, STOP);
        if (r == 0)
                r = add_timers(m);
        if (r == 0)
                r = thread_start_on(&m->thread, THREAD_STALL_MONITOR, "stall-monitor", m->cpus, m->n_cpus, stall_monitor_run, m);
        return r;
}

bool stall_monitor_end(StallMonitor *m) {
        ssize_t n;

        if (!m->thread.started)
                return true;
        n = write(m->stop_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
        assert(n == sizeof(uint64_t));
        return thread_join_within(&m->thread, END_MOST);
}

void stall_monitor_stop(StallMonitor *m) {
        if (m->thread.started && !stall_monitor_end(m))
                (void)thread_join(&m->thread);
        for (size_t i = 0; m->timers && i < m->n; i++)
                close_fd(m->timers[i]);
        free(m->timers);
        free(m->stalls);
        m->timers = NULL;
        m->stalls = NULL;
        m->epoll_fd = close_fd(m->epoll_fd);
        m->stop_fd = close_fd(m->stop_fd);
}
