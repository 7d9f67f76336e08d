/*
 * Who did what items say. An item has only a tid; who that is a stream says once, in a packet of its own that is never
 * dropped and leaves before the items, and again when it has changed.
 *
 * There are two tables: what holds for an item that the merge releases is not yet true when it is taken in, and what
 * comes as it comes cannot wait for the merge. Each is led through the same notes, in the order of its own streams.
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
        for (int order = 0; order < _STREAM_ORDER_MAX && r == 0; order++)
                r = task_table_init(&d->tasks[order], TASKS_MAX, TASKS_ENDED_MAX);
        for (int order = 0; order < _STREAM_ORDER_MAX && r == 0 && d->confirms_cgroups; order++) {
                d->tasks[order].guesses = true;
                r = task_table_put_no_pid(&d->tasks[order]);
        }
        return r;
}

void dispatcher_deinit_tasks(Dispatcher *d) {
        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                task_table_deinit(&d->tasks[order]);
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

/* Behind what is in the channel's packet of descriptions; that is before all items that are not sent yet. */
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
        (void)packet_append_field(c->tasks, field, length); /* far shorter */
        return 0;
}

static int channel_name(Dispatcher *d, Channel *c, TaskTable *table, Task *task) {
        uint8_t bytes[TASK_ENCODED_MAX];
        uint64_t has_process;
        size_t length;
        int r = 0;

        if (c->open && task_was_described(task, c->number))
                r = channel_flush(d, c); /* what is in it was done by whom the task was before */
        if (r < 0)
                return r;
        has_process = task_channels_described(&task->process->channels, BATCH_GROUP(c->number)) & BATCH_BIT(c->number);
        length = task_encode(task, !has_process, bytes);
        r = task_set_described(table, task, c->number);
        return r < 0 ? r : channel_tell(d, c, bytes, length);
}

int dispatcher_confirm_cgroup(Dispatcher *d, StreamOrder order, Task *task) {
        _cleanup_free_ char *path = NULL;
        uint64_t id = 0;
        int r;

        if (!task || !task->process->cgroup_is_guess || task->process->pid == 0)
                return 0;
        r = d->reads_proc ? process_read_cgroup(d->cgroups, task->process->pid, &path, &id) : 0;
        return r < 0 ? r : task_table_confirm_cgroup(&d->tasks[order], task->process, path, id);
}

int dispatcher_name(Dispatcher *d, StreamOrder order, uint32_t group, uint32_t tid, uint64_t bits) {
        TaskTable *table = &d->tasks[order];
        Task *task = task_table_find(table, tid);
        int r = dispatcher_confirm_cgroup(d, order, task);

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

/* Every channel that has it hears that it is forgotten: no item of it comes any more without another description. */
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
