/*
 * A process lives as long as a task of its pid is known, and stays where it is when it is described again, so that all
 * of its threads see it.
 */
#include "client/item/task.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_BUCKETS 64

struct TaskProcess {
        TaskProcess *next; /* in its bucket */
        perfd_process process;
        Perfd__V1__Process *message; /* process points into it, or NULL */
        size_t n_tasks;
};

struct KnownTask {
        KnownTask *next; /* in its bucket */
        perfd_task task;
        Perfd__V1__Task *message; /* task points into it */
        TaskProcess *process;
};

static uint32_t place(const Tasks *t, uint32_t id) {
        return (id * 0x9E3779B1U >> 8) & t->mask;
}

static perfd_text text_of(ProtobufCBinaryData from) {
        return (perfd_text){ .bytes = from.len > 0 ? (const char *)from.data : "", .length = from.len };
}

static int tasks_resize(Tasks *t, uint32_t n) {
        Tasks to = { .tasks = calloc(n, sizeof(*to.tasks)), .processes = calloc(n, sizeof(*to.processes)), .mask = n - 1 };

        if (!to.tasks || !to.processes) {
                free(to.tasks);
                free(to.processes);
                return -ENOMEM;
        }
        for (uint32_t i = 0; t->tasks && i <= t->mask; i++) {
                for (KnownTask *k = t->tasks[i], *next; k; k = next) {
                        next = k->next;
                        k->next = to.tasks[place(&to, k->task.tid)];
                        to.tasks[place(&to, k->task.tid)] = k;
                }
                for (TaskProcess *p = t->processes[i], *next; p; p = next) {
                        next = p->next;
                        p->next = to.processes[place(&to, p->process.pid)];
                        to.processes[place(&to, p->process.pid)] = p;
                }
        }
        free(t->tasks);
        free(t->processes);
        t->tasks = to.tasks;
        t->processes = to.processes;
        t->mask = to.mask;
        return 0;
}

static KnownTask **task_place(const Tasks *t, uint32_t tid) {
        KnownTask **at = &t->tasks[place(t, tid)];

        while (*at && (*at)->task.tid != tid)
                at = &(*at)->next;
        return at;
}

static TaskProcess **process_place(const Tasks *t, uint32_t pid) {
        TaskProcess **at = &t->processes[place(t, pid)];

        while (*at && (*at)->process.pid != pid)
                at = &(*at)->next;
        return at;
}

static TaskProcess *process_take(Tasks *t, uint32_t pid) {
        TaskProcess **at = process_place(t, pid);

        if (!*at) {
                *at = calloc(1, sizeof(**at));
                if (!*at)
                        return NULL;
                (*at)->process = (perfd_process){ .pid = pid, .executable = { .bytes = "" }, .cgroup = { .bytes = "" },
                                                  .container = "", .runtime = "", .pod_uid = "", .unit = "" };
        }
        (*at)->n_tasks++;
        return *at;
}

static void process_give(Tasks *t, TaskProcess *p) {
        if (!p || --p->n_tasks > 0)
                return;
        *process_place(t, p->process.pid) = p->next;
        if (p->message)
                perfd__v1__process__free_unpacked(p->message, NULL);
        free(p);
}

/* The message moves. */
static void process_set(TaskProcess *p, Perfd__V1__Process *m) {
        if (p->message)
                perfd__v1__process__free_unpacked(p->message, NULL);
        p->message = m;
        p->process = (perfd_process){
                .pid = p->process.pid,
                .parent = m->parent,
                .has_uid = m->known_uid_case == PERFD__V1__PROCESS__KNOWN_UID_UID,
                .uid = m->known_uid_case == PERFD__V1__PROCESS__KNOWN_UID_UID ? m->uid : 0,
                .start = m->start,
                .executable = text_of(m->executable),
                .cgroup = text_of(m->cgroup),
                .cgroup_id = m->cgroup_id,
                .container = m->container,
                .runtime = m->runtime,
                .pod_uid = m->pod_uid,
                .unit = m->unit,
        };
}

/* The one of this tid, new or emptied. */
static KnownTask *task_take(Tasks *t, uint32_t tid) {
        KnownTask **at;

        if ((!t->tasks || t->n > t->mask) && tasks_resize(t, t->tasks ? 2 * (t->mask + 1) : FIRST_BUCKETS) < 0 && !t->tasks)
                return NULL;
        at = task_place(t, tid);
        if (!*at) {
                *at = calloc(1, sizeof(**at));
                if (!*at)
                        return NULL;
                (*at)->task.tid = tid;
                t->n++;
        }
        return *at;
}

int tasks_add(Tasks *t, Perfd__V1__Task *message) {
        KnownTask *k = t->n < TASKS_LIMIT ? task_take(t, message->tid) : NULL;
        TaskProcess *p = k ? process_take(t, message->pid) : NULL, *before;

        if (!p) {
                if (k && !k->message)
                        tasks_forget(t, message->tid);
                perfd__v1__task__free_unpacked(message, NULL);
                return t->n < TASKS_LIMIT ? -ENOMEM : PERFD_E_PROTOCOL;
        }
        before = k->process;
        if (k->message)
                perfd__v1__task__free_unpacked(k->message, NULL);
        k->message = message;
        k->process = p;
        k->task = (perfd_task){ .pid = message->pid, .tid = message->tid, .comm = text_of(message->comm),
                                .since = message->since, .process = &p->process };
        process_give(t, before);
        if (message->process) {
                process_set(p, message->process);
                message->process = NULL;
        }
        t->last_tid = message->tid;
        t->last = &k->task;
        return 0;
}

void tasks_forget(Tasks *t, uint32_t tid) {
        KnownTask **at, *k;

        if (!t->tasks)
                return;
        at = task_place(t, tid);
        k = *at;
        if (!k)
                return;
        *at = k->next;
        process_give(t, k->process);
        if (k->message)
                perfd__v1__task__free_unpacked(k->message, NULL);
        free(k);
        t->n--;
        t->last = NULL;
}

const perfd_task *tasks_look(Tasks *t, uint32_t tid) {
        KnownTask *k = t->tasks ? *task_place(t, tid) : NULL;

        if (!k)
                return NULL;
        t->last_tid = tid;
        t->last = &k->task;
        return t->last;
}

void tasks_deinit(Tasks *t) {
        for (uint32_t i = 0; t->tasks && i <= t->mask; i++)
                while (t->tasks[i])
                        tasks_forget(t, t->tasks[i]->task.tid);
        free(t->tasks);
        free(t->processes);
        *t = TASKS_NULL;
}
