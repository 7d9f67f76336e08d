/*
 * The table of tasks. A task is a thread: its name is its own, everything else is its process's, which its threads
 * share.
 *
 * Tasks keep their place in the table when their tid is used again, with `known`: a channel has to hear that it is
 * another one now, behind what it has of the first.
 */
#include "daemon/model/task-table.h"

#include <errno.h>

#include "daemon/base/error-trail.h"

#define FIRST_BUCKETS 1024

int task_table_init(TaskTable *t, size_t max, size_t ended_max) {
        int r;

        *t = TASK_TABLE_NULL;
        t->max = max;
        t->ended_max = ended_max;
        t->round = 1;
        r = text_table_init(&t->texts);
        if (r < 0)
                return r;
        t->buckets = calloc(FIRST_BUCKETS, sizeof(*t->buckets));
        if (!t->buckets)
                return error_origin(-ENOMEM);
        t->mask = FIRST_BUCKETS - 1;
        return 0;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

Process *process_new(uint32_t pid) {
        Process *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        p->n_refs = 1;
        p->pid = pid;
        return p;
}

Process *process_ref(Process *p) {
        p->n_refs++;
        return p;
}

void process_unref(TaskTable *t, Process *p) {
        if (!p || --p->n_refs > 0)
                return;
        text_table_give(&t->texts, p->executable);
        text_table_give(&t->texts, p->cgroup);
        task_channels_deinit(&p->channels);
        free(p);
}

/* One of the process's own texts becomes these bytes. */
int process_set_text(TaskTable *t, Process *p, Text **text, const char *bytes, size_t length) {
        Text *now;
        int r = text_table_take(&t->texts, bytes, length < TASK_TEXT_MAX ? length : TASK_TEXT_MAX, &now);

        if (r < 0)
                return r;
        if (*text != now)
                task_channels_change(&p->channels);
        text_table_give(&t->texts, *text);
        *text = now;
        return 0;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static Task **task_table_bucket(const TaskTable *t, uint32_t tid) {
        return &t->buckets[(tid * 0x9E3779B1U >> 8) & t->mask];
}

Task *task_table_find(TaskTable *t, uint32_t tid) {
        Task *task = *task_table_bucket(t, tid);

        while (task && task->tid != tid)
                task = task->next;
        if (task)
                task->is_used = true;
        return task;
}

void task_table_forget_hints(TaskTable *t) {
        if (++t->round > 0)
                return;
        memset(t->hints, 0, sizeof(t->hints)); /* some of them are that old */
        for (size_t i = 0; i < BATCH_GROUPS; i++)
                if (t->more_hints[i])
                        memset(t->more_hints[i], 0, sizeof(t->hints));
        t->round = 1;
}

int task_table_add_group(TaskTable *t, uint32_t group) {
        if (group > 0 && !t->more_hints[group])
                t->more_hints[group] = calloc(TASK_HINTS, sizeof(*t->hints));
        return group > 0 && !t->more_hints[group] ? error_origin(-ENOMEM) : 0;
}

/* Those of the group that have both as they are. */
static uint64_t task_described(const Task *task, uint32_t group) {
        return task_channels_described(&task->channels, group) & task_channels_described(&task->process->channels, group);
}

uint64_t task_table_look(TaskTable *t, uint32_t group, uint32_t tid) {
        const Task *task = task_table_find(t, tid);
        uint64_t described = task ? task_described(task, group) : UINT64_MAX;
        TaskHint *hints = group == 0 ? t->hints : t->more_hints[group];

        hints[tid % TASK_HINTS] = (TaskHint){ .undescribed = ~described, .key = TASK_HINT_KEY(t->round, tid) };
        return described;
}

/* Twice as many buckets; without memory the chains become longer instead. */
static void task_table_grow(TaskTable *t) {
        TaskTable bigger = { .mask = 2 * t->mask + 1 };

        bigger.buckets = calloc((size_t)bigger.mask + 1, sizeof(*bigger.buckets));
        if (!bigger.buckets)
                return;
        for (uint32_t i = 0; i <= t->mask; i++)
                for (Task *task = t->buckets[i], *next; task; task = next) {
                        Task **bucket = task_table_bucket(&bigger, task->tid);

                        next = task->next;
                        task->next = *bucket;
                        *bucket = task;
                }
        free(t->buckets);
        t->buckets = bigger.buckets;
        t->mask = bigger.mask;
}

static void task_list_remove(TaskTable *t, Task *task) {
        if (task->older)
                task->older->newer = task->newer;
        else
                t->oldest = task->newer;
        if (task->newer)
                task->newer->older = task->older;
        else
                t->newest = task->older;
        task->older = task->newer = NULL;
        t->n_ended--;
}

void task_table_end(TaskTable *t, Task *task, nsec_t time) {
        task->ended = time;
        if (task->has_ended)
                return;
        task->has_ended = true;
        task->older = t->newest;
        if (t->newest)
                t->newest->newer = task;
        else
                t->oldest = task;
        t->newest = task;
        t->n_ended++;
}

Task *task_table_put(TaskTable *t, uint32_t tid, Process *process, nsec_t time) {
        Task *task = task_table_find(t, tid);

        if (!task) {
                Task **bucket;

                task = calloc(1, sizeof(*task));
                if (!task)
                        return NULL;
                if (t->n > t->mask)
                        task_table_grow(t);
                bucket = task_table_bucket(t, tid);
                task->tid = tid;
                task->next = *bucket;
                *bucket = task;
                t->n++;
        } else {
                if (task->has_ended)
                        task_list_remove(t, task);
                task->has_ended = false;
                task_channels_change(&task->channels);
                if (process != task->process && process->pid == task->process->pid &&
                    task_channels_add_known(&process->channels, &task->process->channels) < 0)
                        return NULL;
                process_unref(t, task->process);
        }
        task->is_used = true;
        task->process = process;
        task->since = task->told = time;
        task->ended = 0;
        memset(task->comm, 0, sizeof(task->comm));
        return task;
}

Process *task_table_process(TaskTable *t, uint32_t pid) {
        Task *leader = task_table_find(t, pid);

        return leader && leader->process->pid == pid ? leader->process : NULL;
}

void task_set_comm(Task *task, const char *comm, size_t length, nsec_t since) {
        char now[COMM_SIZE] = { 0 };

        memcpy(now, comm, length < sizeof(now) ? length : sizeof(now) - 1);
        if (memcmp(now, task->comm, sizeof(now)) == 0)
                return;
        memcpy(task->comm, now, sizeof(now));
        task->since = since;
        task_channels_change(&task->channels);
}

/* ---- channels ---------------------------------------------------------------------------------------------------- */

int task_set_described(TaskTable *t, Task *task, uint32_t number) {
        ChannelMarks *marks = task_channels_make(&task->channels, BATCH_GROUP(number));
        ChannelMarks *of_process = task_channels_make(&task->process->channels, BATCH_GROUP(number));

        if (!marks || !of_process)
                return error_origin(-ENOMEM);
        task_table_forget_hints(t);
        marks->described |= BATCH_BIT(number);
        marks->known |= BATCH_BIT(number);
        of_process->described |= BATCH_BIT(number);
        of_process->known |= BATCH_BIT(number);
        return 0;
}

bool task_was_described(const Task *task, uint32_t number) {
        uint32_t group = BATCH_GROUP(number);
        const TaskChannels *p = &task->process->channels;
        uint64_t before = task_channels_known(p, group) & ~task_channels_described(p, group);

        return (task_channels_known(&task->channels, group) | before) & BATCH_BIT(number);
}

void task_table_forget_channel(TaskTable *t, uint32_t number) {
        task_table_forget_hints(t);
        for (uint32_t i = 0; i <= t->mask; i++)
                for (Task *task = t->buckets[i]; task; task = task->next) {
                        task_channels_forget(&task->channels, number);
                        task_channels_forget(&task->process->channels, number);
                }
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* What its channels forget with it has to be told again with the next task of its process. */
static int task_table_forget(TaskTable *t, Task *task, TaskForgotten forgotten, void *userdata) {
        Task **at = task_table_bucket(t, task->tid);
        bool is_known = task->channels.first.known || task->channels.groups;
        int r = is_known && forgotten ? forgotten(userdata, task) : 0;

        while (*at != task)
                at = &(*at)->next;
        *at = task->next;
        if (task->has_ended)
                task_list_remove(t, task);
        task_channels_change_some(&task->process->channels, &task->channels);
        process_unref(t, task->process);
        task_channels_deinit(&task->channels);
        free(task);
        t->n--;
        return r;
}

/* The next one that was not used since the hand came by. Nobody else is left that has ended. */
static Task *task_table_unused(TaskTable *t) {
        for (;; t->hand++)
                for (Task *task = t->buckets[t->hand & t->mask]; task; task = task->next) {
                        if (!task->is_used)
                                return task;
                        task->is_used = false;
                }
}

int task_table_prune(TaskTable *t, TaskForgotten forgotten, void *userdata, uint64_t *ret_n_living) {
        uint64_t n_living = 0;
        int r = 0;

        if (t->n_ended <= t->ended_max && t->n <= t->max) {
                *ret_n_living = 0;
                return 0;
        }
        task_table_forget_hints(t); /* who is asked for again is in use */
        if (t->n_ended > t->ended_max) /* half of them, so that the next ones do not cost a look each */
                while (r >= 0 && t->n_ended > t->ended_max / 2)
                        r = task_table_forget(t, t->oldest, forgotten, userdata);
        while (r >= 0 && t->n > t->max && t->oldest)
                r = task_table_forget(t, t->oldest, forgotten, userdata);
        for (; r >= 0 && t->n > t->max; n_living++)
                r = task_table_forget(t, task_table_unused(t), forgotten, userdata);
        *ret_n_living = n_living;
        return r;
}

void task_table_deinit(TaskTable *t) {
        for (uint32_t i = 0; t->buckets && i <= t->mask; i++)
                while (t->buckets[i])
                        (void)task_table_forget(t, t->buckets[i], NULL, NULL);
        for (size_t i = 0; i < BATCH_GROUPS; i++)
                free(t->more_hints[i]);
        free(t->buckets);
        text_table_deinit(&t->texts);
        *t = TASK_TABLE_NULL;
}
