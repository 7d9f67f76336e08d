/* Kinds of threads: identity, start, join. The only place that creates threads. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <assert.h>

#include "daemon/base/clock.h"

typedef enum ThreadKind {
        THREAD_ANY, /* a test, or before thread_become() */
        THREAD_MAIN,
        THREAD_READER,
        THREAD_DISPATCHER,
        THREAD_CLOSER,
        THREAD_SOCKET_CLOSER,
        THREAD_WATCHDOG,
        THREAD_STALL_MONITOR,
        THREAD_METRICS, /* of perfd-relay */
        _THREAD_KIND_MAX,
} ThreadKind;

extern _Thread_local ThreadKind thread_kind;

/* The first statement of each function that belongs to one thread and that others could call. */
#define thread_assert(kind) assert(thread_kind == (kind) || thread_kind == THREAD_ANY)

typedef struct Thread {
        pthread_t handle;
        ThreadKind kind;
        char name[16];
        int (*run)(void *userdata);
        void *userdata;
        pid_t tid;    /* in our own pid namespace; set before thread_start() returns */
        int result;   /* what run() returned; valid after thread_join() */
        int started;
        sem_t ended;  /* posted behind run() */
        void *starting;
} Thread;

#define THREAD_NULL ((Thread){ .started = 0 })

typedef enum ThreadPolicy {
        THREAD_NORMAL, /* as main */
        THREAD_NICE,
        THREAD_FIFO,
} ThreadPolicy;

/* How a thread is scheduled, sched(7). */
typedef struct ThreadPriority {
        ThreadPolicy policy;
        int value; /* the nice value, or the real-time priority */
} ThreadPriority;

enum {
        THREAD_E_LOWERED = 1, /* a nice value instead of a real-time priority */
};

/* main() of the daemon says what it is, and a reader while it has the dispatcher's turn. */
void thread_become(ThreadKind kind);

/*
 * Starts run(userdata) with all signals blocked, pinned to `cpu` unless that is -1, and returns when it is pinned and its tid is
 * known. Negative: the error of pthread_create(3) or sched_setaffinity(2); then no thread was started.
 */
int thread_start(Thread *t, ThreadKind kind, const char *name, int cpu, int (*run)(void *userdata), void *userdata);
/* The same, restricted to some CPUs; without any it inherits those of the caller. `cpus` is borrowed until it returns. */
int thread_start_on(Thread *t, ThreadKind kind, const char *name, const uint32_t *cpus, size_t n_cpus,
                    int (*run)(void *userdata), void *userdata);
/*
 * Of the calling thread. THREAD_E_LOWERED: a real-time priority is not permitted (CAP_SYS_NICE, RLIMIT_RTPRIO), and the thread has
 * the nice value `nice` instead. Negative, the error of setpriority(2): it remains normal. The caller logs both.
 */
int thread_set_priority(ThreadPriority wanted, int nice);
/* The same, and threads that it starts inherit the priority. */
int thread_set_heritable_priority(ThreadPriority wanted, int nice);
/* The lowest real-time priority, or else `nice`. */
int thread_set_urgent(int nice);
/* Restricts any thread to some CPUs, at least one. Negative, the error of sched_setaffinity(2): unchanged. */
int thread_move(const Thread *t, const uint32_t *cpus, size_t n_cpus);
/* The CPUs that the calling thread may run on, sorted. */
int thread_get_cpus(uint32_t **ret_cpus, size_t *ret_n);
/* The clock of a thread's CPU time; it cannot be read after the thread has ended. */
clockid_t thread_clock(const Thread *t);
/* True: the thread has ended, or was never started. False: it has not ended within `most` ns. */
bool thread_join_within(Thread *t, nsec_t most);
/* Waits for the thread and returns the result of run(); 0 if it was never started. */
int thread_join(Thread *t);
