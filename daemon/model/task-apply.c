/*
 * What records say of tasks, applied to the table of tasks. What the kernel tells when is in perf_event_fork(),
 * perf_event_exec(), perf_event_comm() and perf_event_exit_task(): a child's FORK comes before it runs, an exec's COMM
 * before its first MMAP2.
 */
#include "daemon/base/error-trail.h"
#include "daemon/model/container.h"
#include "daemon/model/task-table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* One of which only that it is there is known: the record of its beginning was lost, or has not come yet. */
static Task *task_table_put_unknown(TaskTable *t, uint32_t pid, uint32_t tid, nsec_t time) {
        Process *process = tid == pid ? NULL : task_table_process(t, pid);
        Task *task;

        process = process ? process_ref(process) : process_new(pid);
        if (process && !process->cgroup)
                process->cgroup_is_guess = t->guesses;
        if (process && !process->has_uid)
                process->uid_is_guess = t->confirms_uids;
        task = process ? task_table_put(t, tid, process, time) : NULL;
        if (!task)
                process_unref(t, process);
        return task;
}

/* What was told of this time may have changed without a report. */
static void process_doubt_uid(const TaskTable *t, Process *p, nsec_t time) {
        if (t->uids_lost_until == 0 || time > t->uids_lost_until)
                return;
        p->uid_is_guess = p->uid_is_lost = true;
        task_channels_change(&p->channels);
}

void task_inherit(TaskTable *t, Task *task, const Task *parent) {
        const Process *from = parent->process;
        Process *p = task->process;

        p->has_origin = from->has_origin;
        if (p->uid_at == 0) {
                p->has_uid = from->has_uid;
                p->uid = from->uid;
                p->uid_is_guess = from->has_uid || from->uid_is_lost ? from->uid_is_guess : t->confirms_uids;
                p->uid_is_lost = from->uid_is_lost;
                process_doubt_uid(t, p, p->start); /* its parent's may be confirmed, for a later time */
        }
        if (!p->executable && p->exec_at == 0)
                p->executable = text_ref(from->executable);
        if (!p->cgroup && p->cgroup_at == 0) {
                p->cgroup = text_ref(from->cgroup);
                p->cgroup_id = from->cgroup_id;
                p->cgroup_is_guess = t->guesses;
        }
        if (!task->comm[0])
                task_set_comm(task, parent->comm, strlen(parent->comm), task->since);
        task_channels_change(&p->channels);
}

/* Its first record has come behind later ones: what these did not say. */
static void task_complete(TaskTable *t, Task *task, const TaskNote *n, nsec_t time) {
        Process *p = task->process;
        const Task *parent;

        if (p->has_origin || p->pid != n->pid || n->pid == n->parent_pid)
                return;
        p->start = time;
        p->parent = n->parent_pid;
        parent = task_table_find(t, n->parent_tid);
        if (parent)
                task_inherit(t, task, parent);
}

/* Of a new thread the one that it belongs to, else a new one. A reference. */
static Process *process_of_fork(TaskTable *t, const TaskNote *n, const Task *parent, nsec_t time) {
        Process *process;

        if (n->pid == n->parent_pid) {
                process = parent && parent->process->pid == n->pid ? parent->process : task_table_process(t, n->pid);
                return process ? process_ref(process) : process_new(n->pid);
        }
        process = process_new(n->pid);
        if (!process)
                return NULL;
        process->parent = n->parent_pid;
        process->start = time;
        process->cgroup_is_guess = t->guesses;
        process->uid_is_guess = t->confirms_uids; /* unless the parent's is known */
        return process;
}

/* That was its own already, told before its beginning. */
static void process_take_uid(Process *p, const Process *told) {
        p->has_uid = true;
        p->uid = told->uid;
        p->uid_at = told->uid_at;
        p->uid_is_guess = told->uid_is_guess;
        p->uid_is_lost = told->uid_is_lost;
}

static int apply_fork(TaskTable *t, nsec_t time, const TaskNote *n) {
        Task *task = task_table_find(t, n->tid), *parent;
        nsec_t ended = task && task->has_ended ? task->ended : 0;
        Process *process;

        if (task && time < task->told) {
                task_complete(t, task, n, time);
                return 0;
        }
        parent = task_table_find(t, n->parent_tid);
        process = process_of_fork(t, n, parent, time);
        if (process && task && task->process->pid == n->pid && task->process->uid_at > time)
                process_take_uid(process, task->process);
        task = process ? task_table_put(t, n->tid, process, time) : NULL;
        if (!task) {
                process_unref(t, process);
                return error_origin(-ENOMEM);
        }
        if (parent && parent != task && n->pid != n->parent_pid)
                task_inherit(t, task, parent);
        else if (parent && parent != task)
                memcpy(task->comm, parent->comm, sizeof(task->comm));
        if (ended > time)
                task_table_end(t, task, ended); /* that was its own end, told before its beginning */
        return 0;
}

/* Programs that change their uid do so between fork and exec, nearly all. */
static void process_guess_uid(const TaskTable *t, Process *p) {
        if (!t->guesses_uids || p->uid_is_guess)
                return;
        p->uid_is_guess = true;
        task_channels_change(&p->channels);
}

static int apply_comm(TaskTable *t, nsec_t time, const TaskNote *n) {
        Task *task = task_table_find(t, n->tid);
        Process *p;

        if (!task || (task->has_ended && time > task->ended))
                task = task_table_put_unknown(t, n->pid, n->tid, time);
        else if (time < task->told)
                return 0;
        if (!task)
                return error_origin(-ENOMEM);
        task->told = time;
        task_set_comm(task, n->text, n->n_text, time);
        p = task->process;
        process_guess_uid(t, p);
        if (n->kind != TASK_NOTE_EXEC || time < p->exec_at)
                return 0;
        p->exec_at = time;
        p->awaits_map = true;
        p->cgroup_is_guess = t->guesses; /* who starts a container or a service has moved it by now */
        p->executable = text_table_give(&t->texts, p->executable);
        task_channels_change(&p->channels);
        return 0;
}

static int apply_map(TaskTable *t, nsec_t time, const TaskNote *n) {
        Process *p = task_table_process(t, n->pid);

        if (!p || !p->awaits_map || time < p->exec_at)
                return 0;
        p->awaits_map = false;
        return n->n_text > 0 ? process_set_text(t, p, &p->executable, n->text, n->n_text) : 0;
}

static int apply_cgroup(TaskTable *t, nsec_t time, const TaskNote *n) {
        Task *task = task_table_find(t, n->tid);
        Process *p;

        if (!task || task->has_ended)
                return 0;
        p = task->process;
        if (p->pid != n->tid || time < p->cgroup_at || time < p->start)
                return 0; /* a thread that moves alone stays where its process is shown */
        p->cgroup_at = time;
        process_guess_uid(t, p); /* a service, or a session */
        if (p->cgroup_id != n->cgroup)
                task_channels_change(&p->channels);
        p->cgroup_id = n->cgroup;
        return process_set_text(t, p, &p->cgroup, n->text, n->n_text);
}

/* Who was born in a container stays in it, or in one in it; who was not may have become the first of one. */
int task_table_confirm_cgroup(TaskTable *t, Process *p, const char *path, uint64_t id) {
        ContainerName name = { .id = "" };

        p->cgroup_is_guess = false;
        if (!path && p->cgroup)
                container_name_of(p->cgroup->bytes, &name);
        if (!path && name.id[0])
                return 0;
        if (p->cgroup_id != id)
                task_channels_change(&p->channels);
        p->cgroup_id = id;
        if (path)
                return process_set_text(t, p, &p->cgroup, path, strlen(path));
        if (p->cgroup)
                task_channels_change(&p->channels);
        p->cgroup = text_table_give(&t->texts, p->cgroup);
        return 0;
}

/* What the kernel tells of uids comes beside the notes, so it can be of a process whose beginning has not come yet. */
int task_table_set_uid(TaskTable *t, nsec_t time, uint32_t pid, uint32_t uid) {
        Task *task;
        Process *p;

        task_table_forget_hints(t);
        task = task_table_find(t, pid);
        if (!task || (task->has_ended && time > task->ended))
                task = task_table_put_unknown(t, pid, pid, time);
        if (!task)
                return error_origin(-ENOMEM);
        p = task->process;
        if (p->pid != pid || time < p->uid_at || time < p->start)
                return 0;
        process_set_uid(t, p, time, uid);
        return 0;
}

void process_set_uid(TaskTable *t, Process *p, nsec_t time, uint32_t uid) {
        p->uid_at = time;
        task_table_confirm_uid(t, p, true, uid);
        process_doubt_uid(t, p, time);
}

void task_table_confirm_uid(TaskTable *t, Process *p, bool is_known, uint32_t uid) {
        p->uid_is_guess = p->uid_is_lost = false;
        if (p->has_uid == is_known && (!is_known || p->uid == uid))
                return;
        task_table_forget_hints(t);
        task_channels_change(&p->channels);
        p->has_uid = is_known;
        p->uid = is_known ? uid : 0;
}

void task_table_doubt_uids(TaskTable *t, nsec_t until) {
        t->uids_lost_until = until;
        task_table_forget_hints(t);
        for (uint32_t i = 0; i <= t->mask; i++)
                for (Task *task = t->buckets[i]; task; task = task->next) {
                        task->process->uid_is_guess = task->process->uid_is_lost = true;
                        task_channels_change(&task->process->channels);
                }
}

int task_table_put_no_pid(TaskTable *t) {
        Process *p = process_new(0);
        Task *task = p ? task_table_put(t, 0, p, 0) : NULL;

        if (!task) {
                process_unref(t, p);
                return error_origin(-ENOMEM);
        }
        task_set_comm(task, COMM_OF_NO_PID, strlen(COMM_OF_NO_PID), 0);
        task->told = UINT64_MAX; /* /proc has nobody to compare it with */
        return 0;
}

static void apply_exit(TaskTable *t, nsec_t time, const TaskNote *n) {
        Task *task = task_table_find(t, n->tid);

        if (task && time >= task->told && !(task->has_ended && time < task->ended))
                task_table_end(t, task, time);
}

int task_table_apply(TaskTable *t, nsec_t time, const TaskNote *n) {
        task_table_forget_hints(t);
        switch (n->kind) {
        case TASK_NOTE_FORK:
                return apply_fork(t, time, n);
        case TASK_NOTE_COMM:
        case TASK_NOTE_EXEC:
                return apply_comm(t, time, n);
        case TASK_NOTE_MAP:
                return apply_map(t, time, n);
        case TASK_NOTE_CGROUP:
                return apply_cgroup(t, time, n);
        case TASK_NOTE_EXIT:
                apply_exit(t, time, n);
                return 0;
        }
        assert(false);
        return 0;
}
