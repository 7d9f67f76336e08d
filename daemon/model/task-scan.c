/*
 * How a table learns what /proc says. Notes have been coming for some time already when a scan is learnt: what they said
 * of something is newer than the scan wherever their time is behind that at which the process was read.
 */
#include <errno.h>

#include "daemon/base/error-trail.h"
#include "daemon/model/task-table.h"

#define SAME_START (100 * NSEC_PER_MSEC) /* /proc has the start of a process in clock ticks */

/* Another one than what the table has: its pid was used again while nobody told. */
static bool is_other(const Process *p, const ScannedProcess *s) {
        nsec_t apart = p->start > s->start ? p->start - s->start : s->start - p->start;

        return p->start && s->start && apart > SAME_START;
}

static int learn_text(TaskTable *t, Process *p, Text **text, const char *from) {
        if (from)
                return process_set_text(t, p, text, from, strlen(from));
        if (*text)
                task_channels_change(&p->channels);
        *text = text_table_give(&t->texts, *text);
        return 0;
}

static int learn_process(TaskTable *t, Process *p, const ScannedProcess *s) {
        int r = 0;

        if (!p->has_origin || p->parent != s->parent)
                task_channels_change(&p->channels);
        p->has_origin = true;
        p->parent = s->parent;
        if (p->uid_at <= s->time)
                process_set_uid(t, p, s->time, s->uid);
        if (!p->start)
                p->start = s->start;
        if (p->exec_at <= s->time) {
                p->awaits_map = false;
                r = learn_text(t, p, &p->executable, s->executable);
        }
        if (r == 0 && p->cgroup_at <= s->time) {
                if (p->cgroup_id != s->cgroup_id)
                        task_channels_change(&p->channels);
                p->cgroup_id = s->cgroup_id;
                p->cgroup_is_guess = false;
                r = learn_text(t, p, &p->cgroup, s->cgroup);
        }
        return r;
}

static int learn_thread(TaskTable *t, Process *p, const ScannedProcess *s, const ScannedThread *thread) {
        Task *task = task_table_find(t, thread->tid);

        if (task && task->told > s->time) {
                task->scan = t->scan;
                return 0;
        }
        if (!task || task->process != p || task->has_ended) {
                task = task_table_put(t, thread->tid, process_ref(p), 0);
                if (!task) {
                        process_unref(t, p);
                        return error_origin(-ENOMEM);
                }
        }
        task_set_comm(task, thread->comm, strlen(thread->comm), task->since ? s->time : 0);
        task->told = s->time;
        task->scan = t->scan;
        return 0;
}

static int learn_one(TaskTable *t, const ScannedProcess *s) {
        Process *p = task_table_process(t, s->pid);
        int r;

        if (p && p->start > s->time)
                return 0; /* it is gone, and its pid used again: what is known is newer */
        p = p && !is_other(p, s) ? process_ref(p) : process_new(s->pid);
        if (!p)
                return error_origin(-ENOMEM);
        r = learn_process(t, p, s);
        for (size_t i = 0; i < s->n_threads && r == 0; i++)
                r = learn_thread(t, p, s, &s->threads[i]);
        process_unref(t, p);
        return r;
}

/* Children of processes that were not known when they were born. False: nothing more to be found out for this one. */
static bool learn_origin(TaskTable *t, Task *task) {
        Process *p = task->process;
        Task *parent;

        if (p->has_origin || p->parent == 0)
                return false;
        parent = task_table_find(t, p->parent);
        if (!parent || !parent->process->has_origin)
                return false;
        task_inherit(t, task, parent);
        return true;
}

int task_table_learn(TaskTable *t, const TaskScan *scan) {
        bool learnt = true;
        int r = 0;

        task_table_forget_hints(t);
        t->scan++;
        for (size_t i = 0; i < scan->n && r == 0; i++)
                r = learn_one(t, &scan->processes[i]);
        for (uint32_t i = 0; i <= t->mask && r == 0; i++)
                for (Task *task = t->buckets[i]; task; task = task->next)
                        if (!task->has_ended && task->scan != t->scan && task->told < scan->begin)
                                task_table_end(t, task, scan->begin);
        while (learnt && r == 0) { /* a generation each time */
                learnt = false;
                for (uint32_t i = 0; i <= t->mask; i++)
                        for (Task *task = t->buckets[i]; task; task = task->next)
                                learnt |= learn_origin(t, task);
        }
        return r;
}
