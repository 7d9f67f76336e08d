/* For the supervisor: who the tasks are, and who moves between cgroups. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/reader/reader.h"

typedef struct Readers Readers;

/* The stream of each CPU that says who moves between cgroups: cgroup:cgroup_attach_task. */
typedef struct CgroupMigrations {
        Plan *plan;        /* NULL: there is none */
        MoveFields fields; /* as the readers have it, but for the id */
        int *fds;          /* by slot, -1: it has none */
} CgroupMigrations;

/*
 * Before a stream begins, and when the carriers were enabled while somebody is subscribed: the
 * dispatcher hears of all tasks that are there. Does nothing if it knows them. REFUSED_CANCELLED, negative.
 */
int readers_learn_tasks(Readers *s);
/* Nobody is subscribed any more. */
int readers_forget_tasks(Readers *s);
/* Behind a change of who needs side records: the carriers write them, or not. Refused: one of them cannot be enabled. */
int readers_update_carriers(Readers *s, Explanation *e);
/* Once, before the dispatcher: the kernel's reports of changed uids, if it gives them. */
void readers_find_uids(Readers *s);
/* From before /proc is read until nobody is subscribed, or nothing is observed. */
int readers_hear_uids(Readers *s, bool on);
/* Once, before the rings: the stream of moves between cgroups, if this kernel has it. */
int readers_find_migrations(Readers *s);
/* Opens it in a ring that has a carrier, before its reader starts. If it cannot be opened it is simply not there. */
int readers_open_migrations(Readers *s, uint32_t slot, Explanation *e);
/* After its reader ended. */
void readers_close_migrations(Readers *s, uint32_t slot);
void readers_free_migrations(Readers *s);
