/*
 * The stall monitor: a thread that sleeps until a reader does not run in time, and then has its ring read from another CPU.
 *
 * It has a timer for each reader. The reader sets the timer each time before it sleeps, to a moment shortly after the one at
 * which it wants to wake; a thread that wakes a reader by its mailbox sets it too. So the monitor is not woken while readers run,
 * neither in quiet nor in a flood. If a reader looks only rarely, a flood may begin meanwhile: then half of its ring wakes the
 * monitor, once.
 */
#pragma once

#include "daemon/base/thread.h"
#include "daemon/reader/cycle.h"

typedef struct StallMonitor {
        Thread thread;
        Reader *readers; /* borrowed; one for each possible CPU */
        size_t n;
        ThreadPriority priority;
        const uint32_t *cpus; /* borrowed: the CPUs with readers of their own; none: all */
        size_t n_cpus;
        int epoll_fd, stop_fd;
        int *timers;   /* timerfds, one for each reader */
        struct Stall *stalls; /* of the thread: what it observed of each reader */
        bool has_said; /* a failure to help a reader has been logged */
} StallMonitor;

/*
 * Main, before readers start, because these use its fds. Everything except `readers`, `n`, `priority`, `cpus` and `n_cpus` is
 * initialized. -errno; stall_monitor_stop() accepts a partly initialized one.
 */
int stall_monitor_start(StallMonitor *m);
/* Main, after all readers have ended: ends the thread. False: it does not end. */
bool stall_monitor_end(StallMonitor *m);
/* The same, and frees everything, which no thread may use any more. */
void stall_monitor_stop(StallMonitor *m);
