/*
 * For the table of tasks: which channels have something as it is now, and which have it, perhaps as it was. Channels are known
 * by the number of their subscription; those of group 0 are in place, those of other groups in memory of their own, as many
 * groups as have heard of it.
 */
#pragma once

#include <stdint.h>

#include "daemon/model/batch.h"

/* Of a group: a bit for each channel. */
typedef struct ChannelMarks {
        uint64_t described; /* has it as it is now */
        uint64_t known;     /* has it, perhaps as it was */
} ChannelMarks;

typedef struct TaskChannels {
        ChannelMarks first;   /* of group 0 */
        uint64_t groups;      /* other groups that have a place */
        ChannelMarks *others; /* in the order of groups */
} TaskChannels;

void task_channels_deinit(TaskChannels *c);
/* NULL: no memory. */
ChannelMarks *task_channels_make(TaskChannels *c, uint32_t group);
/* NULL: nobody in this group has heard of it. */
ChannelMarks *task_channels_find(const TaskChannels *c, uint32_t group);
/* It is another one now: nobody has it as it is. */
void task_channels_change(TaskChannels *c);
/* Nobody has it as it is of those who have `gone`. */
void task_channels_change_some(TaskChannels *c, const TaskChannels *gone);
/* Who has heard of `from` has heard of it too. -ENOMEM */
int task_channels_add_known(TaskChannels *c, const TaskChannels *from);
/* The channel of this number has never heard of it. */
void task_channels_forget(TaskChannels *c, uint32_t number);

static inline uint64_t task_channels_described(const TaskChannels *c, uint32_t group) {
        const ChannelMarks *marks = task_channels_find(c, group);

        return marks ? marks->described : 0;
}

static inline uint64_t task_channels_known(const TaskChannels *c, uint32_t group) {
        const ChannelMarks *marks = task_channels_find(c, group);

        return marks ? marks->known : 0;
}
