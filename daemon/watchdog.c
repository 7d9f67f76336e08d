/* A look is one file of /proc: what main would have to say of itself at every call would cost more. */
#include "daemon/watchdog.h"

#include <errno.h>

#include "daemon/base/fd-limit.h"
#include "daemon/kernel/task/tasks.h"

/* False: the end. */
static bool watchdog_sleep(Watchdog *w) {
        const struct timespec next = nsec_timespec(clock_now(CLOCK_MONOTONIC) + w->interval);

        while (sem_clockwait(&w->stop, CLOCK_MONOTONIC, &next) < 0) {
                if (errno == ETIMEDOUT)
                        return true;
                assert(errno == EINTR);
        }
        return false;
}

static int watchdog_run(void *userdata) {
        Watchdog *w = userdata;

        while (watchdog_sleep(w)) {
                WITH_FD_RESERVE;

                if (task_state((uint32_t)w->tid) == TASK_STATE_UNINTERRUPTIBLE)
                        w->feed();
                counter_add(&w->looks, 1);
        }
        return 0;
}

int watchdog_start(Watchdog *w, pid_t tid, nsec_t interval, void (*feed)(void)) {
        int r;

        *w = (Watchdog){ .thread = THREAD_NULL, .tid = tid, .interval = interval, .feed = feed };
        sem_init(&w->stop, 0, 0);
        r = thread_start(&w->thread, THREAD_WATCHDOG, "watchdog", -1, watchdog_run, w);
        if (r < 0)
                sem_destroy(&w->stop);
        return r;
}

void watchdog_stop(Watchdog *w) {
        if (!w->thread.started)
                return;
        sem_post(&w->stop);
        (void)thread_join(&w->thread);
        sem_destroy(&w->stop);
}
