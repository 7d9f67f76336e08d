/*
 * A thread that sleeps until a reader does not run in time, and then has its ring read from another CPU.
 *
 * What wakes it is a timer for each reader, which that sets anew each time that it sleeps, to a moment shortly behind the one
 * at which it wants to wake; who wakes a reader by its mailbox sets it too. So in quiet and in a flood it is never woken. A
 * reader that looks only now and then may meet a flood that begins: then half of its ring wakes the monitor, once.
 */
#pragma once

#include "daemon/base/thread.h"
#include "daemon/reader/cycle.h"

typedef struct StallMonitor {
        Thread thread;
        Reader *readers; /* borrowed; as many as there can be CPUs */
        size_t n;
        ThreadPriority priority;
        const uint32_t *cpus; /* borrowed: that have readers of their own; without any, all */
        size_t n_cpus;
        int epoll_fd, stop_fd;
        int *timers;   /* one for each reader */
        struct Stall *stalls; /* the thread's own: what it saw of each */
        bool has_said; /* that something could not be helped */
} StallMonitor;

/*
 * Main, before readers start: they are told. Everything but `readers`, `n`, `priority`, `cpus` and `n_cpus` gets its null image.
 * -errno; stall_monitor_stop() accepts a half-built one.
 */
int stall_monitor_start(StallMonitor *m);
/* Main, behind the end of all readers: its thread. False: that does not end. */
bool stall_monitor_end(StallMonitor *m);
/* The same, and all that it has, which nobody may use any more. */
void stall_monitor_stop(StallMonitor *m);
