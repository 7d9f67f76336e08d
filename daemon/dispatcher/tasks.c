/*
 * Describes tasks. An item has only a tid. A stream describes a task once, in a packet that is never dropped and precedes the
 * items, and again when the description has changed.
 *
 * There are two tables, one for each order. What is true for an item when the merge releases it is not yet true when its batch
 * arrives, and streams ordered by CPU do not wait for the merge. Each table gets the same notes, in the order of its own streams.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>

#include "daemon/base/cleanup.h"
#include "daemon/encode/task.h"
#include "daemon/encode/wire.h"
#include "daemon/kernel/task/process.h"
#include "proto/item-fields.h"

int dispatcher_init_tasks(Dispatcher *d) {
        int r = 0;

        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                d->tasks[order] = TASK_TABLE_NULL;
        for (int order = 0; order < _STREAM_ORDER_MAX && r == 0; order++) {
                r = task_table_init(&d->tasks[order], TASKS_MAX, TASKS_ENDED_MAX);
                d->tasks[order].confirms_uids = d->reads_proc;
                d->tasks[order].guesses_uids = d->reads_proc && !d->uid_socket;
        }
        for (int order = 0; order < _STREAM_ORDER_MAX && r == 0 && d->confirms_cgroups; order++) {
                d->tasks[order].guesses = true;
                r = task_table_put_no_pid(&d->tasks[order]);
        }
        return r;
}

void dispatcher_deinit_tasks(Dispatcher *d) {
        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                task_table_deinit(&d->tasks[order]);
        uid_changes_deinit(&d->uids);
}

int dispatcher_note(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e) {
        TaskNote n = task_note_get(b->arena + entry_offset(e), e->length);

        return task_table_apply(&d->tasks[order], e->time, &n);
}

int dispatcher_learn(Dispatcher *d, const TaskScan *scan) {
        int r = 0;

        for (int order = 0; order < _STREAM_ORDER_MAX && r == 0; order++)
                r = task_table_learn(&d->tasks[order], scan);
        return r;
}

/* Appends to the channel's packet of descriptions, which precedes all items that have not been sent yet. */
static int channel_tell(Dispatcher *d, Channel *c, const uint8_t *field, size_t length) {
        int r;

        if (c->tasks && packet_append_field(c->tasks, field, length))
                return 0;
        r = c->tasks || (c->open && c->open->is_reserved) ? channel_flush(d, c) : 0;
        if (r < 0)
                return r;
        dispatcher_note_unflushed(d, c);
        c->tasks = packet_new_pooled(&d->packets);
        if (!c->tasks)
                return error_origin(-ENOMEM);
        (void)packet_append_field(c->tasks, field, length); /* always fits: a description is far shorter than a packet */
        return 0;
}

int channel_tell_wall(Dispatcher *d, Channel *c) {
        if (c->reading == d->n_readings)
                return 0;
        c->reading = d->n_readings;
        return channel_tell(d, c, d->wall_field, d->n_wall_field);
}

static int channel_name(Dispatcher *d, Channel *c, TaskTable *table, Task *task) {
        uint8_t bytes[TASK_ENCODED_MAX];
        uint64_t has_process;
        size_t length;
        int r = 0;

        if (c->open && task_was_described(task, c->number))
                r = channel_flush(d, c); /* its items were written before the task changed */
        if (r < 0)
                return r;
        has_process = task_channels_described(&task->process->channels, BATCH_GROUP(c->number)) & BATCH_BIT(c->number);
        length = task_encode(task, !has_process, bytes);
        r = task_set_described(table, task, c->number);
        return r < 0 ? r : channel_tell(d, c, bytes, length);
}

static int dispatcher_confirm_cgroup(Dispatcher *d, StreamOrder order, Process *p) {
        _cleanup_free_ char *path = NULL;
        uint64_t id = 0;
        int r = d->reads_proc ? process_read_cgroup(d->cgroups, p->pid, &path, &id) : 0;

        return r < 0 ? r : task_table_confirm_cgroup(&d->tasks[order], p, path, id);
}

/*
 * What /proc says holds from now on, and a sample that is released in the order of time is older: reports of what has changed in between
 * are still to come, or were lost. So it becomes a change of this moment, and what held before is unknown. /proc is read on both sides
 * of the moment, or a change in between would be one too early.
 */
static void dispatcher_put_uid_of_now(Dispatcher *d, uint32_t pid, uint32_t uid) {
        const UidChange change = { .time = clock_now(d->clock), .pid = pid, .uid = uid };
        uint32_t after;

        if (process_read_uid(pid, &after) && after == uid)
                (void)uid_changes_add(&d->uids, change); /* without memory it stays unknown */
}

/* Only of processes that somebody asks for, and once after each exec: some 10 us. */
static void dispatcher_confirm_uid(Dispatcher *d, StreamOrder order, Process *p) {
        TaskTable *t = &d->tasks[order];
        const bool is_losing = t->uids_lost_until == UINT64_MAX;
        uint32_t uid = 0;
        bool is_known = d->reads_proc && !is_losing && process_read_uid(p->pid, &uid);

        if (is_known && d->uid_socket && order == STREAM_BY_TIME) {
                dispatcher_put_uid_of_now(d, p->pid, uid);
                is_known = false;
        }
        task_table_confirm_uid(t, p, is_known, uid);
}

int dispatcher_confirm(Dispatcher *d, StreamOrder order, Task *task) {
        if (!task || task->process->pid == 0)
                return 0;
        if (task->process->uid_is_guess)
                dispatcher_confirm_uid(d, order, task->process);
        return task->process->cgroup_is_guess ? dispatcher_confirm_cgroup(d, order, task->process) : 0;
}

int dispatcher_name(Dispatcher *d, StreamOrder order, uint32_t group, uint32_t tid, uint64_t bits) {
        TaskTable *table = &d->tasks[order];
        Task *task = task_table_find(table, tid);
        int r = dispatcher_confirm(d, order, task);

        for (uint64_t m = bits & ~task_table_described(table, group, tid); m && r >= 0; m &= m - 1)
                r = channel_name(d, d->groups[order][group].by_bit[__builtin_ctzll(m)], table, task);
        return r;
}

typedef struct Pruning {
        Dispatcher *dispatcher;
        StreamOrder order;
} Pruning;

static int group_tell_forgotten(const Pruning *p, uint32_t group, const Task *task) {
        uint8_t field[16], *end = wire_put_number(field, PACKET_FORGOTTEN_TASKS, task->tid);
        ChannelGroup *channels = &p->dispatcher->groups[p->order][group];
        int r = 0;

        for (uint64_t m = task_channels_known(&task->channels, group) & channels->bits; m && r >= 0; m &= m - 1)
                r = channel_tell(p->dispatcher, channels->by_bit[__builtin_ctzll(m)], field, (size_t)(end - field));
        return r;
}

/* Tells each channel that had described the task that it is forgotten: a new description precedes its next item. */
static int on_forgotten(void *userdata, const Task *task) {
        int r = group_tell_forgotten(userdata, 0, task);

        for (uint64_t m = task->channels.groups; m && r >= 0; m &= m - 1)
                r = group_tell_forgotten(userdata, (uint32_t)__builtin_ctzll(m), task);
        return r;
}

int dispatcher_prune_tasks(Dispatcher *d) {
        int r = 0;

        for (int order = 0; order < _STREAM_ORDER_MAX && r >= 0; order++) {
                Pruning p = { d, (StreamOrder)order };
                uint64_t n = 0;

                r = task_table_prune(&d->tasks[order], on_forgotten, &p, &n);
                if (n > 0)
                        counter_add(&d->tasks_forgotten, n);
        }
        return r;
}
