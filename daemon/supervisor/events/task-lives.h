/* For the supervisor: which tasks that events are open on have ended, for one answer to a client. Main thread only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/supervisor/events/registration.h"

#define TASK_LIVES_MAX 1024 /* tasks that are looked at for one answer: at some 10 us each it takes about 10 ms */

/* What /proc said of a task. */
typedef struct TaskLife {
        uint32_t tid; /* 0: none is here */
        nsec_t birth; /* of who has this tid now; UINT64_MAX: nobody has, or it is a zombie */
} TaskLife;

typedef struct TaskLives {
        clockid_t clock;
        TaskLife lives[2 * TASK_LIVES_MAX]; /* by tid: each is looked at once, however many events it has */
        size_t n;
} TaskLives;

/* Tasks or cgroups that the event is open on; ret_ended: tasks of these that have ended, as far as it was looked. */
uint64_t task_lives_count(TaskLives *l, const Registration *g, uint64_t *ret_ended);
