/* For the kinds of thread: who am I, start, join. The only place that creates one. */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <assert.h>

typedef enum ThreadKind {
        THREAD_ANY, /* a test, or before thread_become() */
        THREAD_MAIN,
        THREAD_READER,
        THREAD_DISPATCHER,
        THREAD_CLOSER,
        _THREAD_KIND_MAX,
} ThreadKind;

extern _Thread_local ThreadKind thread_kind;

/* Opens every function that belongs to one thread and that others could reach. */
#define thread_assert(kind) assert(thread_kind == (kind) || thread_kind == THREAD_ANY)

typedef struct Thread {
        pthread_t handle;
        ThreadKind kind;
        char name[16];
        int cpu; /* pinned to it, -1 for none */
        int (*run)(void *userdata);
        void *userdata;
        pid_t tid;    /* in our own pid namespace; set before thread_start() returns */
        int result;   /* what run() returned; valid after thread_join() */
        int started;
        void *starting;
} Thread;

#define THREAD_NULL ((Thread){ .cpu = -1 })

/* main() of the daemon says what it is. */
void thread_become(ThreadKind kind);

/*
 * Starts run(userdata) with all signals blocked, pinned to `cpu` unless that is -1, and returns when it is pinned and
 * its tid is known. Negative: from pthread_create(3) or sched_setaffinity(2); then no thread is left.
 */
int thread_start(Thread *t, ThreadKind kind, const char *name, int cpu, int (*run)(void *userdata), void *userdata);
/*
 * How the calling thread is scheduled: SCHED_FIFO at the lowest real-time priority where that is permitted
 * (CAP_SYS_NICE, RLIMIT_RTPRIO), else `nice`. Negative, from setpriority(2): neither, and the caller says so.
 */
int thread_set_urgent(int nice);
/* Waits for it and returns what run() returned; 0 if it was never started. */
int thread_join(Thread *t);
