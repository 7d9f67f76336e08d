/*
 * The watchdog thread, which is there only where a service manager watches perfd: main, who feeds its watchdog, cannot do it
 * while it waits for the kernel and nothing interrupts that, as behind another tool's close of a tracepoint (closer.h). To end
 * perfd for it would help nobody, and would lose all that it holds. What main does in user space is watched as ever.
 */
#pragma once

#include <semaphore.h>
#include <sys/types.h>

#include "daemon/base/clock.h"
#include "daemon/base/thread.h"
#include "daemon/model/counters.h"

typedef struct Watchdog {
        Thread thread;
        sem_t stop;
        pid_t tid;       /* of the thread that is looked at */
        nsec_t interval;
        void (*feed)(void); /* on the watchdog's thread */
        Counter looks;
} Watchdog;

#define WATCHDOG_NULL ((Watchdog){ .thread = THREAD_NULL })

/* Looks at `tid` at each interval, and feeds if it waits in the kernel then. Negative: from thread_start(). */
int watchdog_start(Watchdog *w, pid_t tid, nsec_t interval, void (*feed)(void));
/* Accepts one that was never started. */
void watchdog_stop(Watchdog *w);
