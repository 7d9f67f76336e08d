/* A thread is pinned by itself before its starter goes on, so that a failure to pin is a failure to start. */
#include "daemon/base/thread.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/error-trail.h"

#define THREAD_CPUS_MAX ((size_t)1 << 20) /* no kernel has as many */

_Thread_local ThreadKind thread_kind;

typedef struct Starting {
        sem_t done;
        int error;
        ErrorTrail trail; /* of the error */
        const uint32_t *cpus;
        size_t n_cpus;
} Starting;

void thread_become(ThreadKind kind) {
        thread_kind = kind;
}

static int thread_place(pid_t tid, const uint32_t *cpus, size_t n_cpus) {
        uint32_t last = 0;
        cpu_set_t *set;
        size_t size;
        int r;

        for (size_t i = 0; i < n_cpus; i++)
                if (cpus[i] > last)
                        last = cpus[i];
        size = CPU_ALLOC_SIZE(last + 1);
        set = CPU_ALLOC(last + 1);
        if (!set)
                return error_origin(-ENOMEM);
        CPU_ZERO_S(size, set);
        for (size_t i = 0; i < n_cpus; i++)
                CPU_SET_S(cpus[i], size, set);
        r = sched_setaffinity(tid, size, set) < 0 ? error_origin(-errno) : 0;
        CPU_FREE(set);
        return r;
}

static void *thread_main(void *userdata) {
        Thread *t = userdata;
        Starting *starting = t->starting;
        int r = 0;

        thread_kind = t->kind;
        t->tid = (pid_t)syscall(SYS_gettid);
        pthread_setname_np(pthread_self(), t->name);
        if (starting->n_cpus > 0)
                r = error_trace_of(thread_place(0, starting->cpus, starting->n_cpus), "thread %s", t->name);
        starting->error = r;
        starting->trail = error_trail_take(r);
        sem_post(&starting->done); /* from here on `starting` is gone */
        if (r == 0) {
                t->result = t->run(t->userdata);
                sem_post(&t->ended);
        }
        return NULL;
}

int thread_start_on(Thread *t, ThreadKind kind, const char *name, const uint32_t *cpus, size_t n_cpus,
                    int (*run)(void *userdata), void *userdata) {
        Starting starting = { .cpus = cpus, .n_cpus = n_cpus };
        sigset_t all, before;
        int r;

        *t = (Thread){ .kind = kind, .run = run, .userdata = userdata, .starting = &starting };
        (void)snprintf(t->name, sizeof(t->name), "%s", name); /* the kernel keeps 15 bytes too */
        sem_init(&starting.done, 0, 0);
        sem_init(&t->ended, 0, 0);

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = error_origin_of(-pthread_create(&t->handle, NULL, thread_main, t), "thread %s", t->name);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r == 0) {
                while (sem_wait(&starting.done) < 0)
                        assert(errno == EINTR);
                if (starting.error < 0) {
                        pthread_join(t->handle, NULL);
                        error_trail_give(&starting.trail);
                        r = starting.error;
                } else
                        t->started = 1;
        }
        sem_destroy(&starting.done);
        t->starting = NULL;
        return r;
}

int thread_start(Thread *t, ThreadKind kind, const char *name, int cpu, int (*run)(void *userdata), void *userdata) {
        return thread_start_on(t, kind, name, &(uint32_t){ (uint32_t)cpu }, cpu >= 0, run, userdata);
}

static int thread_set(ThreadPriority wanted, int nice, int flags) {
        struct sched_param param = { .sched_priority = wanted.value };
        int r = 0;

        switch (wanted.policy) {
        case THREAD_NORMAL:
                return 0;
        case THREAD_NICE:
                nice = wanted.value;
                break;
        case THREAD_FIFO:
                if (sched_setscheduler(0, SCHED_FIFO | flags, &param) == 0)
                        return 0;
                r = THREAD_E_LOWERED;
                break;
        }
        /* Linux: nice values belong to threads (sched(7)) */
        return setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice) < 0 ? error_origin(-errno) : r;
}

int thread_set_priority(ThreadPriority wanted, int nice) {
        return thread_set(wanted, nice, SCHED_RESET_ON_FORK);
}

int thread_set_heritable_priority(ThreadPriority wanted, int nice) {
        return thread_set(wanted, nice, 0);
}

int thread_set_urgent(int nice) {
        int r = thread_set_priority((ThreadPriority){ THREAD_FIFO, 1 }, nice);

        return r < 0 ? r : 0;
}

int thread_move(const Thread *t, const uint32_t *cpus, size_t n_cpus) {
        return thread_place(t->tid, cpus, n_cpus);
}

int thread_get_cpus(uint32_t **ret_cpus, size_t *ret_n) {
        for (size_t n = 1024;; n *= 2) { /* the kernel's own set may be larger: EINVAL */
                size_t size = CPU_ALLOC_SIZE(n), n_cpus = 0;
                cpu_set_t *set = CPU_ALLOC(n);
                uint32_t *cpus = calloc(n, sizeof(*cpus));
                int r = set && cpus ? 0 : error_origin(-ENOMEM);

                if (r == 0 && sched_getaffinity(0, size, set) < 0)
                        r = error_origin(-errno);
                for (uint32_t cpu = 0; r == 0 && cpu < n; cpu++)
                        if (CPU_ISSET_S(cpu, size, set))
                                cpus[n_cpus++] = cpu;
                CPU_FREE(set);
                if (r == 0) {
                        *ret_cpus = cpus;
                        *ret_n = n_cpus;
                        return 0;
                }
                free(cpus);
                if (r != -EINVAL || n >= THREAD_CPUS_MAX)
                        return r;
        }
}

clockid_t thread_clock(const Thread *t) {
        clockid_t clock;
        int r = pthread_getcpuclockid(t->handle, &clock);

        assert(r == 0);
        return clock;
}

/* Not by pthread_clockjoin_np(3), which ThreadSanitizer does not know. */
bool thread_join_within(Thread *t, nsec_t most) {
        const struct timespec end = nsec_timespec(clock_now(CLOCK_MONOTONIC) + most);

        while (t->started && sem_clockwait(&t->ended, CLOCK_MONOTONIC, &end) < 0)
                if (errno != EINTR)
                        return false;
        (void)thread_join(t);
        return true;
}

int thread_join(Thread *t) {
        if (!t->started)
                return 0;
        pthread_join(t->handle, NULL);
        sem_destroy(&t->ended);
        t->started = 0;
        return t->result;
}
