/*
 * For the dispatcher: which program, process and cgroup a thread is, as of the moment up to which notes were applied.
 * There is no history in it: who applies notes in the order of time, between the samples that come in the order of
 * time, has for each sample exactly what held then. Who applies them as they come has what is known by then; a note
 * that is older than what it would change is left out.
 *
 * Bounded: task_table_prune() forgets first those that have ended, then those that nobody asked for longest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/model/record.h"
#include "daemon/model/task-channels.h"
#include "daemon/model/task-note.h"
#include "daemon/model/task-scan.h"
#include "daemon/model/text-table.h"

#define TASKS_MAX ((size_t)65536)
#define TASK_HINTS ((size_t)256) /* a power of two */
#define TASKS_ENDED_MAX ((size_t)4096) /* of them: the last samples of a task may come behind its end */

typedef struct Process {
        unsigned n_refs; /* of its tasks */
        uint32_t pid, parent, uid;
        bool has_origin; /* the parent is known */
        bool has_uid;
        bool uid_is_guess; /* it may have changed since it was told: whoever uses it confirms it before */
        bool uid_is_lost; /* a report of it may have been lost */
        bool cgroup_is_guess; /* its parent's, or that of before its exec: TaskTable.guesses */
        bool awaits_map; /* after an exec: the next executable mapping is the program's */
        nsec_t start;    /* 0: not known */
        nsec_t exec_at, cgroup_at, uid_at; /* when these were told last, not inherited */
        Text *executable, *cgroup; /* or NULL */
        uint64_t cgroup_id;
        TaskChannels channels; /* that have what is here */
} Process;

typedef struct Task {
        struct Task *next;          /* in its bucket */
        struct Task *older, *newer; /* among those that have ended */
        uint32_t tid;
        uint32_t scan;    /* the last one that it was seen in */
        bool has_ended;
        bool is_used;     /* since the hand of task_table_prune() came by */
        char comm[COMM_SIZE];
        nsec_t since;     /* comm holds since then; 0: longer than is known */
        nsec_t told;      /* time of the newest note about it */
        nsec_t ended;
        Process *process; /* never NULL */
        TaskChannels channels; /* that have it */
} Task;

/*
 * What was said of a tid that was asked for, and holds until something changes: samples of few threads follow each other.
 * Channels are those of one group.
 */
typedef struct TaskHint {
        uint64_t undescribed; /* the channels that do need a description */
        uint64_t key;         /* TASK_HINT_KEY() */
} TaskHint;

#define TASK_HINT_KEY(round, tid) ((uint64_t)(round) << 32 | (tid))

typedef struct TaskTable {
        Task **buckets;
        uint32_t mask;
        size_t n, n_ended;
        size_t max, ended_max;
        Task *oldest, *newest; /* of those that have ended */
        uint32_t hand;         /* bucket where the search for unused ones goes on */
        uint32_t scan;         /* number of the last one */
        TextTable texts;
        nsec_t uids_lost_until; /* whatever was told of uids up to then may have changed unreported; 0: nothing was lost; UINT64_MAX: still */
        bool guesses_uids;  /* nothing tells of changes of uids: they are guesses after an exec or another change */
        bool confirms_uids; /* that of a process whose beginning was lost can be asked for */
        bool guesses; /* nothing tells of moves between cgroups: whoever describes a process confirms its cgroup before */

        uint32_t round;              /* of hints: those of another one are of what was */
        TaskHint hints[TASK_HINTS];  /* by tid, of group 0 */
        TaskHint *more_hints[BATCH_GROUPS]; /* the same of other groups that there are channels of */
} TaskTable;

#define TASK_TABLE_NULL ((TaskTable){ .buckets = NULL })

/* -ENOMEM */
int task_table_init(TaskTable *t, size_t max, size_t ended_max);
void task_table_deinit(TaskTable *t);

/* What a record said at `time`. -ENOMEM */
int task_table_apply(TaskTable *t, nsec_t time, const TaskNote *n);
/*
 * What /proc said: about all that no newer note was applied for. Whom it does not have and who was there before it
 * began has ended. -ENOMEM: half of it was learnt.
 */
int task_table_learn(TaskTable *t, const TaskScan *scan);

/*
 * Where the process is now, path NULL: it is gone, or not to be known. Then only what is below a container's cgroup stays.
 * -ENOMEM
 */
int task_table_confirm_cgroup(TaskTable *t, Process *p, const char *path, uint64_t id);
/* The process has another uid from then on. -ENOMEM */
int task_table_set_uid(TaskTable *t, nsec_t time, uint32_t pid, uint32_t uid);
/*
 * Changes of uids were lost, the last of them not after `until`; UINT64_MAX: it goes on. All are guesses, and so is what is told later of
 * that time.
 */
void task_table_doubt_uids(TaskTable *t, nsec_t until);
/* Which uid the process has now; not known: it is gone. */
void task_table_confirm_uid(TaskTable *t, Process *p, bool is_known, uint32_t uid);
/* Who has no pid here. -ENOMEM */
int task_table_put_no_pid(TaskTable *t);

/* NULL: nothing is known of this thread. */
Task *task_table_find(TaskTable *t, uint32_t tid);

/* Before a first channel of the group. -ENOMEM */
int task_table_add_group(TaskTable *t, uint32_t group);

/* The hints, as long as nothing is done with the table. */
typedef struct TaskHints {
        const TaskHint *hints;
        uint64_t round;
} TaskHints;

static inline TaskHints task_table_hints(const TaskTable *t, uint32_t group) {
        return (TaskHints){ .hints = group == 0 ? t->hints : t->more_hints[group], .round = TASK_HINT_KEY(t->round, 0) };
}

/* Whether it is known without a look that these channels of the group need no description of this thread. */
static inline bool task_hints_has(TaskHints h, uint32_t tid, uint64_t channels) {
        const TaskHint *hint = &h.hints[tid % TASK_HINTS];

        return hint->key == (h.round | tid) && !(channels & hint->undescribed);
}

/* For task_table_described(): looks it up. */
uint64_t task_table_look(TaskTable *t, uint32_t group, uint32_t tid);

/* The channels of the group that need no description of this thread before an item of it; all, if there is none to give. */
static inline uint64_t task_table_described(TaskTable *t, uint32_t group, uint32_t tid) {
        const TaskHint *hint = &task_table_hints(t, group).hints[tid % TASK_HINTS];

        return hint->key == TASK_HINT_KEY(t->round, tid) ? ~hint->undescribed : task_table_look(t, group, tid);
}

/* The channel has this task and its process as they are now. -ENOMEM */
int task_set_described(TaskTable *t, Task *task, uint32_t number);
/* Whether items that the channel has not sent yet may be of what the task, or its process, was before. */
bool task_was_described(const Task *task, uint32_t number);
/* No task has been described to this channel. */
void task_table_forget_channel(TaskTable *t, uint32_t number);

/* Called for each task before it is forgotten; Task.channels has the channels to which it was described. Negative: stop. */
typedef int (*TaskForgotten)(void *userdata, const Task *task);
/* Forgets the tasks above the table's limit. Stores how many of them had not ended. Negative: from the callback. */
int task_table_prune(TaskTable *t, TaskForgotten forgotten, void *userdata, uint64_t *ret_n_living);

/* ---- for task-apply.c, task-scan.c and task-table.c -------------------------------------------------------------- */

/* Before a change: it may be of what a hint says, also of other threads of the process. */
void task_table_forget_hints(TaskTable *t);
/* The process has had this uid at `time`. */
void process_set_uid(TaskTable *t, Process *p, nsec_t time, uint32_t uid);
/* NULL: no memory. */
Process *process_new(uint32_t pid);
Process *process_ref(Process *p);
void process_unref(TaskTable *t, Process *p);
/* Sets one of the process's texts to a copy. -ENOMEM */
int process_set_text(TaskTable *t, Process *p, Text **text, const char *bytes, size_t length);
/* The process that its leader is in, or NULL. */
Process *task_table_process(TaskTable *t, uint32_t pid);
/*
 * Takes the reference to the process, if there is memory. A tid that was used before is another task from now on, without
 * a name.
 */
Task *task_table_put(TaskTable *t, uint32_t tid, Process *process, nsec_t time);
/* The task ended at this time: it is among the first to be forgotten. */
void task_table_end(TaskTable *t, Task *task, nsec_t time);
/* What it has from its parent, as far as nothing else was told of it. */
void task_inherit(TaskTable *t, Task *task, const Task *parent);
/* since: ns of the stream's clock; 0: since before it was known. */
void task_set_comm(Task *task, const char *comm, size_t length, nsec_t since);
