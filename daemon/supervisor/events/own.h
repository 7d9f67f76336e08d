/*
 * For the supervisor: events that clients of the stream socket add because a rule of access grants it. Each ends with its
 * connection, is called "~UID/NAME", and is charged to its uid. Those on tasks are on tasks of that uid alone. Main thread only.
 */
#pragma once

#include "daemon/kernel/task/own-task.h"
#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/events/events.h"
#include "daemon/supervisor/events/targets.h"

#define OWN_TASKS_MAX 1024 /* of one event: each has an fd while it is opened */

/* A spec of a client as what is granted to it, or refused with the rule; what it must not have of a sample is taken out of it. */
int own_take_spec(const Access *a, gid_t gid, EventSpec *spec, Explanation *e);
/* It asks for nothing but to be counted. */
bool own_is_only_counted(const EventSpec *spec);
/*
 * Before that: cgroups that the client owns become its processes in them, if the rule grants no counts of all cgroups. Refused: one is
 * another's, with the rule; or it has no process of the client's. supervisor/events/own-cgroups.c
 */
int own_take_cgroups(Events *s, const Access *a, gid_t gid, EventSpec *spec, Explanation *e);
/* Whether an event that was granted still is. */
bool own_is_granted(const Access *a, const EventSpec *spec);
/* Of a whole request: it is bound to its connection, of which a uid has few that events end with. */
int own_check_add(const Events *s, const Access *a, const Connection *c, const Perfd__V1__AddRequest *q, Explanation *e);
/* Of all that remove, enable or disable names: it is the client's. */
int own_check_names(const Events *s, const Access *a, char *const *names, size_t n, Explanation *e);
/* What was resolved of such a spec gets the names that such events have. -ENOMEM */
int own_name(Registration *list);
/* It is this uid's own, by a rule. */
static inline bool own_is_of(const EventSpec *spec, uid_t uid) {
        return spec->is_granted && spec->uid == uid;
}
/* Behind a reload: those that are not granted any more are to be removed. */
void own_recheck(Events *s);

/* The tasks that one of these events is opened on, while that is done. */
typedef struct OwnTasks {
        OwnTask *list;
        size_t n;
} OwnTasks;

#define OWN_TASKS_NULL ((OwnTasks){ .list = NULL })

/* It is one of these, and on tasks. */
bool own_is_on_tasks(const Registration *g);
/*
 * As events_find_targets(), before they are opened. Of one of these events tasks that are not the client's are left out, and all
 * others held in `own`. Refused: the client has named one that is not, unless the event is registered already; or they are too many.
 */
int own_find_targets(Events *s, const Registration *g, TargetSet *ret, OwnTasks *own, Explanation *e);
/*
 * Behind that, while nothing is enabled: whether everybody who is there now was there before, and, of these events, those who were
 * are still there, and the client's.
 */
int own_look_again(Events *s, const Registration *g, const TargetSet *before, OwnTasks *own, bool *ret_same, Explanation *e);
void own_tasks_deinit(OwnTasks *t);
