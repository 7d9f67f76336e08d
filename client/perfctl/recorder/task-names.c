#include "client/perfctl/recorder/task-names.h"

#include <stdlib.h>
#include <string.h>

#define ROOM ((size_t)1024)
#define SPREAD UINT32_C(2654435769)

static size_t home_of(const TaskNames *t, uint32_t tid) {
        return (tid * SPREAD >> 8) & (t->room - 1);
}

/* Its place, or the free one where it belongs. */
static size_t find(const TaskNames *t, uint32_t tid) {
        size_t at = home_of(t, tid);

        while (t->list[at].tid != 0 && t->list[at].tid != tid)
                at = (at + 1) & (t->room - 1);
        return at;
}

static void grow(TaskNames *t) {
        const TaskNames before = *t;

        if (t->room > 0 && 2 * (t->n + 1) < t->room)
                return;
        t->room = before.room ? 2 * before.room : ROOM;
        t->list = must_have(calloc(t->room, sizeof(*t->list)));
        for (size_t i = 0; i < before.room; i++)
                if (before.list[i].tid != 0)
                        t->list[find(t, before.list[i].tid)] = before.list[i];
        free(before.list);
}

bool task_names_take(TaskNames *t, uint32_t tid, perfd_text comm) {
        char name[TASK_NAME] = "";
        size_t at;

        if (tid == 0)
                return false;
        memcpy(name, comm.bytes, comm.length < TASK_NAME ? comm.length : TASK_NAME - 1);
        grow(t);
        at = find(t, tid);
        if (t->list[at].tid == tid && memcmp(t->list[at].comm, name, TASK_NAME) == 0)
                return false;
        t->n += t->list[at].tid == 0;
        t->list[at].tid = tid;
        memcpy(t->list[at].comm, name, TASK_NAME);
        return true;
}

/* Those behind it that would not be found any more move up. */
void task_names_forget(TaskNames *t, uint32_t tid) {
        size_t hole, at;

        if (tid == 0 || t->room == 0)
                return;
        hole = find(t, tid);
        if (t->list[hole].tid == 0)
                return;
        t->n--;
        for (at = (hole + 1) & (t->room - 1); t->list[at].tid != 0; at = (at + 1) & (t->room - 1))
                if (((at - home_of(t, t->list[at].tid)) & (t->room - 1)) >= ((at - hole) & (t->room - 1))) {
                        t->list[hole] = t->list[at];
                        hole = at;
                }
        t->list[hole] = (TaskName){ .tid = 0 };
}

void task_names_deinit(TaskNames *t) {
        free(t->list);
        *t = (TaskNames){ .list = NULL };
}
