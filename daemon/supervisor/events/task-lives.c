/*
 * A perf fd outlives the task it is open on, because its counts do: so the fds do not tell who is left. poll(2) on one says so only on
 * some kernels, and not while it shares a ring buffer. /proc says it everywhere, and costs nothing until somebody asks. A tid
 * that another task has by now is told from the first by its birth.
 */
#include "daemon/supervisor/events/task-lives.h"

#include "daemon/kernel/task/tasks.h"

#define SLACK NSEC_PER_SEC /* of what /proc says of births; so soon no tid is used again */
#define NOBODY UINT64_MAX

/* A zombie has lost its events. */
static nsec_t birth_of(clockid_t clock, uint32_t tid) {
        nsec_t birth;

        switch (task_life(clock, tid, &birth)) {
        case '\0':
        case 'Z':
        case 'X':
                return NOBODY;
        default:
                return birth;
        }
}

/* NULL: too many were looked at. */
static const TaskLife *look_at(TaskLives *l, uint32_t tid) {
        const size_t room = sizeof(l->lives) / sizeof(l->lives[0]);
        size_t i = tid % room;

        while (l->lives[i].tid != 0 && l->lives[i].tid != tid)
                i = (i + 1) % room;
        if (l->lives[i].tid == 0) {
                if (l->n == TASK_LIVES_MAX)
                        return NULL;
                l->n++;
                l->lives[i] = (TaskLife){ .tid = tid, .birth = birth_of(l->clock, tid) };
        }
        return &l->lives[i];
}

/* Each has an fd for the event on the same CPUs, so those of one CPU are counted. */
uint64_t task_lives_count(TaskLives *l, const Registration *g, uint64_t *ret_ended) {
        const bool can_look = tasks_has_own_proc();
        uint64_t n = 0, n_ended = 0;

        for (size_t i = 0; i < g->opened.n; i++) {
                const PerfFd *a = &g->opened.fds[i];
                const TaskLife *life;

                if (a->target_id == 0 || a->member != 0 || a->slot != g->opened.fds[0].slot)
                        continue;
                n++;
                life = can_look && !a->is_cgroup ? look_at(l, (uint32_t)a->target_id) : NULL;
                n_ended += life && (life->birth == NOBODY || life->birth > a->since + SLACK);
        }
        *ret_ended = n_ended;
        return n;
}
