/* A bitmap of two levels: most tasks are known to few groups, and there may be many tasks. */
#include "daemon/model/task-channels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

void task_channels_deinit(TaskChannels *c) {
        free(c->others);
        *c = (TaskChannels){ .others = NULL };
}

/* Where a group is in `others`, or belongs. */
static size_t place_of(const TaskChannels *c, uint32_t group) {
        return (size_t)__builtin_popcountll(c->groups & ((1ULL << group) - 1));
}

ChannelMarks *task_channels_find(const TaskChannels *c, uint32_t group) {
        if (group == 0)
                return (ChannelMarks *)&c->first;
        return c->groups >> group & 1 ? &c->others[place_of(c, group)] : NULL;
}

ChannelMarks *task_channels_make(TaskChannels *c, uint32_t group) {
        ChannelMarks *marks = task_channels_find(c, group), *more;
        size_t n = (size_t)__builtin_popcountll(c->groups), at = place_of(c, group);

        if (marks)
                return marks;
        more = reallocarray(c->others, n + 1, sizeof(*more));
        if (!more)
                return NULL;
        c->others = more;
        memmove(&more[at + 1], &more[at], (n - at) * sizeof(*more));
        more[at] = (ChannelMarks){ .known = 0 };
        c->groups |= 1ULL << group;
        return &more[at];
}

void task_channels_change(TaskChannels *c) {
        size_t n = (size_t)__builtin_popcountll(c->groups);

        c->first.described = 0;
        for (size_t i = 0; i < n; i++)
                c->others[i].described = 0;
}

void task_channels_change_some(TaskChannels *c, const TaskChannels *gone) {
        c->first.described &= ~gone->first.known;
        FOR_EACH_BIT(group, c->groups)
                task_channels_find(c, (uint32_t)group)->described &= ~task_channels_known(gone, (uint32_t)group);
}

int task_channels_add_known(TaskChannels *c, const TaskChannels *from) {
        c->first.known |= from->first.known;
        FOR_EACH_BIT(group, from->groups) {
                ChannelMarks *marks = task_channels_make(c, (uint32_t)group);

                if (!marks)
                        return error_origin(-ENOMEM);
                marks->known |= task_channels_known(from, (uint32_t)group);
        }
        return 0;
}

void task_channels_forget(TaskChannels *c, uint32_t number) {
        uint32_t group = BATCH_GROUP(number);
        ChannelMarks *marks = task_channels_find(c, group);
        size_t n = (size_t)__builtin_popcountll(c->groups), at = place_of(c, group);

        if (!marks)
                return;
        marks->described &= ~BATCH_BIT(number);
        marks->known &= ~BATCH_BIT(number);
        if (group == 0 || marks->described || marks->known)
                return;
        memmove(marks, marks + 1, (n - at - 1) * sizeof(*marks));
        c->groups &= ~(1ULL << group);
        if (c->groups == 0) {
                free(c->others);
                c->others = NULL;
        }
}
