/*
 * Who the tasks are that were there before anybody looked, and the stream that says who moves between cgroups.
 *
 * The order of things is what makes names exact: first the readers tell the dispatcher whatever records say from now
 * on, then /proc is read, and what it says is older than these where both know something. Only then does a stream
 * begin, or an event fire. So /proc is read when somebody subscribes and nobody was, and again when the carriers were
 * off for a while, because nobody noticed then who came and went. They are on only while somebody needs to know: each fork of
 * the host costs the records, and a reader who reads them.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/task/process.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/kernel/task/uid-socket.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/readers.h"
#include "daemon/supervisor/readers/switch.h"
#include "daemon/supervisor/readers/tasks.h"

#define MOVES "cgroup:cgroup_attach_task"

/* ---- moves between cgroups --------------------------------------------------------------------------------------- */

/* The number of the hierarchy that perf events use: 0 is v2. */
static uint64_t hierarchy_of_events(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/cgroups", "re");
        unsigned long number = 0;
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "perf_event %lu", &number) == 1)
                        break;
        return number;
}

/* What that costs is said once, at the start, and by doctor. */
static int find_namespace(Readers *s) {
        /* refused: then cgroups have no ids */
        int r = s->host->cgroups.path ? 0 : cgroup_find_hierarchy("", &s->host->cgroups, NULL);

        if (r < 0)
                return r;
        log_print(LOG_WARNING, MESSAGE_TASKS_UNNAMED, "perfd is in a pid namespace: processes outside of it have pid 0 and are "
                "called " COMM_OF_OUTSIDE ", or " COMM_OF_NO_PID " where a sample does not show that they are no idle CPUs; cgroups and containers are those in /proc%s",
                  tasks_has_own_proc() ? ", and none for processes that have ended by then"
                                       : ", which belongs to another namespace: no process has one");
        return 0;
}

int readers_find_migrations(Readers *s) {
        MoveFields *f = &s->migrations.fields;
        Plan *plan = NULL;
        int r;

        s->migrations.fds = malloc(s->n_cpus * sizeof(*s->migrations.fds));
        if (!s->migrations.fds)
                return error_origin(-ENOMEM);
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                s->migrations.fds[slot] = -1;
        if (s->host->is_in_pid_namespace)
                return find_namespace(s); /* it has other pids than ours */
        r = tracing_load(&s->host->tracing, "cgroup", "cgroup_attach_task", &plan, NULL);
        if (r != 0)
                return r < 0 ? r : 0; /* a kernel without it, or without cgroups */
        s->migrations.plan = plan;
        *f = (MoveFields){ .plan = plan, .hierarchy = plan_find(plan, "dst_root"), .cgroup = plan_find(plan, "dst_id"),
                           .tid = plan_find(plan, "pid"), .path = plan_find(plan, "dst_path"),
                           .wanted = hierarchy_of_events() };
        if (!f->hierarchy || !f->cgroup || !f->tid || !f->path) /* it has become another one */
                s->migrations.plan = plan_unref(plan);
        return sample_layout_init_type(&f->layout, SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW);
}

static struct perf_event_attr attr_of_migrations(const Readers *s) {
        struct perf_event_attr attr = attr_of_plain_carrier(&s->attr);

        attr.type = PERF_TYPE_TRACEPOINT;
        attr.config = s->migrations.plan->type;
        attr.sample_type |= PERF_SAMPLE_RAW;
        attr.sample_period = 1;
        attr.comm = attr.comm_exec = attr.task = attr.mmap = attr.mmap2 = 0; /* the carrier has them */
        return attr;
}

int readers_open_migrations(Readers *s, uint32_t slot, Explanation *e) {
        OpenPlace place = { .pid = -1, .cpu = (int)s->cpus[slot], .leader_fd = -1 };
        _cleanup_close_ int fd = -1;
        struct perf_event_attr attr;
        uint64_t id;
        int r;

        if (!s->migrations.plan)
                return 0;
        attr = attr_of_migrations(s);
        r = open_event(&attr, MOVES, place, &fd, NULL);
        if (r != 0) /* without it a process is shown in the cgroup in which it was first seen */
                return r < 0 ? r : 0;
        r = open_redirect(fd, s->carriers[slot], MOVES, &id, e);
        if (r != 0)
                return r;
        s->migrations.fds[slot] = TAKE_FD(fd);
        s->by_slot[slot].moves = s->migrations.fields;
        s->by_slot[slot].moves.id = id;
        return 0;
}

void readers_close_migrations(Readers *s, uint32_t slot) {
        s->migrations.fds[slot] = close_fd(s->migrations.fds[slot]);
        s->by_slot[slot].moves.id = 0;
}

void readers_free_migrations(Readers *s) {
        for (size_t slot = 0; s->migrations.fds && slot < s->n_cpus; slot++)
                close_fd(s->migrations.fds[slot]);
        free(s->migrations.fds);
        plan_unref(s->migrations.plan);
        s->migrations = (CgroupMigrations){ .plan = NULL };
}

/* ---- changes of uids --------------------------------------------------------------------------------------------- */

void readers_find_uids(Readers *s) {
        Explanation e = EXPLANATION_NULL;

        if (uid_socket_open(&s->uid_socket, &e) != 0)
                log_print(LOG_NOTICE, MESSAGE_TASKS_UNNAMED, "changes of uids are read from /proc, after an exec, and unknown of what "
                          "has ended by then: %s", e.text);
}

int readers_hear_uids(Readers *s, bool on) {
        return s->uid_socket >= 0 ? uid_socket_listen(s->uid_socket, on) : 0;
}

/* ---- what /proc says --------------------------------------------------------------------------------------------- */

/* Conditions on comm are the readers' to answer. */
static void learn_comms(Readers *s, const TaskScan *scan) {
        for (size_t i = 0; i < scan->n; i++)
                for (size_t k = 0; k < scan->processes[i].n_threads; k++)
                        comm_table_set(&s->comms, scan->processes[i].threads[k].tid, scan->processes[i].time,
                                       scan->processes[i].threads[k].comm);
}

/* For who is the first to subscribe, again and again if it leaves: charged, but for those who are served meanwhile. */
static int scan_processes(Readers *s, TaskScan **ret, Explanation *e) {
        const MainWork work = readers_begin_main(s);
        int r = process_scan(s->attr.clock, s->host->cgroups.path, ret, e);

        readers_end_main(s, work);
        return r;
}

int readers_update_carriers(Readers *s, Explanation *e) {
        bool on = s->observes && (s->wants_tasks || s->has_inherited);
        int error;

        if (on == s->active)
                return 0;
        process_tree_forget(&s->process_tree); /* who is born while the carriers are off is not noticed, nor who ends */
        if (on)
                error = event_fds_enable(s, (PerfFdSet *const[]){ &s->carrier_fds }, 1, "the ring's carrier", e);
        else
                error = event_fds_disable(s, (PerfFdSet *const[]){ &s->carrier_fds }, 1);
        if (error != 0)
                return error;
        s->active = on;
        s->knows_tasks = false; /* while they were off, who came and went was not noticed */
        return on ? 0 : readers_hear_uids(s, false);
}

int readers_forget_tasks(Readers *s) {
        int r;

        s->wants_tasks = s->knows_tasks = false;
        r = readers_update_carriers(s, NULL);
        return r < 0 ? r : readers_hear_uids(s, false);
}

int readers_learn_tasks(Readers *s) {
        _cleanup_(task_scan_freep) TaskScan *scan = NULL;
        Explanation e = EXPLANATION_NULL;
        DispatcherCommand *command;
        int r = 0;

        thread_assert(THREAD_MAIN);
        s->wants_tasks = true;
        if (!s->observes || !s->dispatcher_started || (s->active && s->knows_tasks)) /* nobody is to hear of them */
                return 0;
        if (!s->tells_notes)
                r = readers_publish(s);
        if (r == 0)
                r = readers_update_carriers(s, &e);
        if (r > 0) {
                log_print(LOG_WARNING, MESSAGE_TASKS_UNNAMED, "tasks have no names: %s", e.text);
                return 0;
        }
        if (r == 0)
                r = readers_hear_uids(s, true);
        if (r == 0 && !s->host->cgroups.path)
                r = cgroup_find_hierarchy("", &s->host->cgroups, NULL); /* refused: then cgroups have no ids */
        if (r >= 0 && !tasks_has_own_proc())
                r = refuse(&e, REFUSED_UNSUPPORTED, "kernel", "/proc belongs to another pid namespace, and has other pids: mount "
                        "-t proc proc /proc, or run perfd in the host's pid namespace");
        else if (r >= 0)
                r = scan_processes(s, &scan, &e);
        if (r < 0 || r == REFUSED_CANCELLED)
                return r;
        s->knows_tasks = true;
        if (r > 0) {
                log_print(LOG_WARNING, MESSAGE_TASKS_UNNAMED, "tasks that exist already have no names: %s", e.text);
                return 0;
        }
        learn_comms(s, scan);
        command = calloc(1, sizeof(*command));
        if (!command)
                return error_origin(-ENOMEM);
        *command = (DispatcherCommand){ .kind = DISPATCHER_LEARN, .scan = TAKE_PTR(scan) };
        dispatcher_post(&s->dispatcher, command);
        return 0;
}
