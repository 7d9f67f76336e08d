/*
 * What the kernel would let a client open itself if kernel.perf_event_paranoid did, perfd opens for it, and nothing else. perfd's
 * own privileges pass all checks of perf_event_open(2), so they are made here: that each task is the client's, at the moment
 * before it is opened and at the one behind it, through a folder of /proc that stays that of the same task; what is opened is
 * disabled until then. From there on the kernel ends what has to end, whoever opened it: at the exec of a setuid or setgid
 * program, of one with capabilities, or of one that its caller may not read (begin_new_exec(): perf_event_exit_task()), in each
 * task that has inherited the event, too. A task without capabilities comes by another uid in no other way.
 *
 * The decision to doubt is what may be sampled: as the kernel does it for users, system calls, and what happens in user space.
 * Other tracepoints tell of other tasks, and addresses of the kernel say where it lies.
 */
#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/events/own.h"

#include <stdio.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"
#include "daemon/base/printable.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/registered.h"

#define OWN_CONNECTIONS_MAX 16  /* of one uid, that events end with: they are never closed for being idle */
#define INTERVAL_MIN_MS 10
#define INTERVAL_MIN (INTERVAL_MIN_MS * NSEC_PER_MSEC)
#define FREQUENCY_MAX 10000     /* of samples, Hz */
#define CLOCK_PERIOD_MIN 100000 /* ns: as many */
#define NAMES_MAX 1000    /* of one request */
#define CGROUP_NAMES_MAX 8 /* of one request: each may have all cgroups of the host looked at, while other changes wait */
#define OWN_GLOBS_MAX 16  /* each is matched with the names of all events */

static bool is_on_tasks(const EventSpec *spec) {
        return spec->n_pids + spec->n_tids > 0;
}

bool own_is_on_tasks(const Registration *g) {
        return g->event->spec.is_granted && is_on_tasks(&g->event->spec);
}

/* ---- what may be asked for ---------------------------------------------------------------------------------------- */

bool own_is_only_counted(const EventSpec *spec) {
        return spec->interval > 0 && !spec->period && !spec->frequency && !spec->callchain;
}

bool own_is_granted(const Access *a, const EventSpec *spec) {
        if (!access_may_add(a))
                return false; /* without rules nobody adds anything by the stream socket */
        return (a->rule->own_processes && is_on_tasks(spec)) || (a->rule->stat && own_is_only_counted(spec));
}

static int refuse_event(const Access *a, const EventSpec *spec, const char *why, Explanation *e) {
        char what[256];

        (void)snprintf(what, sizeof(what), "%.80s, %s,", spec->event ? spec->event : "an event", why);
        printable_make(what, sizeof(what)); /* it may be cut in a character */
        return access_refuse(a, what, e);
}

/* One of the settings that a client may have: the others are what perfd decides, or what only root may. */
static bool may_set(const char *setting) {
        return strcmp(setting, "enable-on-exec=true") == 0;
}

static int check_options(const Access *a, const EventSpec *spec, Explanation *e) {
        for (size_t i = 0; i < spec->attr.n; i++)
                if (!may_set(spec->attr.items[i]))
                        return refuse_event(a, spec, "with an attr other than enable-on-exec", e);
        if (spec->args || spec->maxactive || spec->fields.n > 0 || spec->include_self || spec->target)
                return refuse_event(a, spec, "with args, fields, include-self or a target of the configuration", e);
        if (spec->containers.n > 0) /* a refusal would say which there are, and what they are called */
                return refuse_event(a, spec, "on a container: name its cgroup", e);
        if (spec->interval > 0 && spec->interval < INTERVAL_MIN)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-reads", "%s: the counts of an event that a rule grants are read every %u ms at "
                              "most: set a longer interval", QUOTE(spec->event ? spec->event : ""), INTERVAL_MIN_MS);
        return 0;
}

/* Of what a client cannot be told by counts, and of what would hold a counter against all others. */
static int check_member(const Access *a, const EventSpec *spec, const EventName *name, Explanation *e) {
        const EventModifiers *m = &name->modifiers;
        bool is_known = name->kind == EVENT_NAME_TRACEPOINT || name->kind == EVENT_NAME_SOFTWARE ||
                        name->kind == EVENT_NAME_HARDWARE || name->kind == EVENT_NAME_CACHE;

        if (!is_known)
                return refuse_event(a, spec, "which is neither a tracepoint nor a software, hardware or cache event", e);
        if (m->pinned || m->exclusive || m->host || m->guest)
                return refuse_event(a, spec, "with one of the modifiers D, e, G and H", e);
        if (own_is_only_counted(spec) && !m->group_sample)
                return spec->filter ? refuse_event(a, spec, "counted with a filter, which would reveal what others do", e) : 0;
        if (name->kind == EVENT_NAME_TRACEPOINT && strcmp(name->group, "syscalls") != 0 &&
            strcmp(name->group, "raw_syscalls") != 0)
                return refuse_event(a, spec, "whose samples can reveal what others do, unlike those of syscalls and "
                        "raw_syscalls", e);
        return 0;
}

static bool is_clock(const EventName *name) {
        return name->kind == EVENT_NAME_SOFTWARE &&
               (name->config == PERF_COUNT_SW_CPU_CLOCK || name->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Each sample of a clock is an interrupt, which keeps everybody else from that CPU, whatever his priority. */
static int check_rate(const Access *a, const EventSpec *spec, const EventName *name, Explanation *e) {
        if (spec->frequency > FREQUENCY_MAX)
                return refuse_event(a, spec, "with a frequency of more than 10000 Hz", e);
        if (is_clock(name) && spec->period > 0 && spec->period < CLOCK_PERIOD_MIN)
                return refuse_event(a, spec, "with a period of less than 100000 ns", e);
        return 0;
}

/* Samples have nothing of the kernel in them but system calls. */
static int restrict_samples(const Access *a, EventSpec *spec, const EventName *name, Explanation *e) {
        const bool is_tracepoint = name->kind == EVENT_NAME_TRACEPOINT;
        int r = check_rate(a, spec, name, e);

        if (r == 0 && spec->callchain & CALLCHAIN_DWARF) /* kilobytes a sample, in rings that others share */
                return refuse_event(a, spec, "with copies of stacks (callchains along frame pointers are granted: --callchain user)", e);
        if (r == 0 && spec->callchain & CALLCHAIN_KERNEL)
                return refuse_event(
                        a, spec,
                        "with the callchain of the kernel (that of user space alone is granted: --callchain user)", e);
        if (r == 0 && !is_tracepoint)
                r = strings_add(&spec->attr, "exclude-kernel=true");
        if (r == 0 && !is_tracepoint)
                r = strings_add(&spec->attr, "exclude-hv=true");
        return r;
}

static int check_names(const Access *a, EventSpec *spec, Explanation *e) {
        _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
        int r = event_names_parse(spec->event ? spec->event : "", &names, e);
        bool samples = !own_is_only_counted(spec);

        for (size_t i = 0; i < names.n_members && r == 0; i++) {
                r = check_member(a, spec, &names.members[i], e);
                samples = samples || names.members[i].modifiers.group_sample;
        }
        if (r != 0)
                return r;
        if (samples && names.is_group) /* what is set of the leader is not of its members */
                return refuse_event(a, spec, "a group that is sampled", e);
        if (samples && !(a->rule->own_processes && is_on_tasks(spec)))
                return refuse_event(a, spec, a->rule->own_processes ? "sampled on others than processes of your own"
                                                                    : "sampled and not only counted (at an interval)", e);
        return samples ? restrict_samples(a, spec, &names.members[0], e) : 0;
}

int own_take_spec(const Access *a, gid_t gid, EventSpec *spec, Explanation *e) {
        int r = checkpoint(e);

        if (r == 0)
                r = check_options(a, spec, e);
        if (r == 0)
                r = check_names(a, spec, e);
        if (r == 0 && !own_is_granted(a, spec))
                r = refuse_event(a, spec, "on others than processes of your own", e);
        if (r != 0)
                return r;
        spec->is_granted = true;
        spec->gid = gid;
        free(spec->group);
        if (asprintf(&spec->group, "~%u", (unsigned)a->uid) < 0) {
                spec->group = NULL;
                return error_origin(-ENOMEM);
        }
        return 0;
}

static int check_cgroup_names(const Perfd__V1__AddRequest *q, Explanation *e) {
        size_t n = 0;

        for (size_t i = 0; i < q->n_events; i++)
                if (q->events[i]->target)
                        n += q->events[i]->target->n_cgroups + q->events[i]->target->n_containers + q->events[i]->target->n_units;
        return n <= CGROUP_NAMES_MAX ? 0
                                     : refuse(e, REFUSED_EXHAUSTED, "too-many-names", "a client of the stream socket may name at "
                                             "most %d cgroups and units in an add, for all of its events: name a parent cgroup "
                                             "of the others", CGROUP_NAMES_MAX);
}

int own_check_add(const Events *s, const Access *a, const Connection *c, const Perfd__V1__AddRequest *q, Explanation *e) {
        uint64_t owners[OWN_CONNECTIONS_MAX];
        size_t n = 0, at;
        int r = check_cgroup_names(q, e);

        if (r != 0)
                return r;
        if (!q->while_connected || q->keep)
                return access_refuse(a, "to add an event that does not end with its connection (`while_connected`), unlike those of "
                        "`perfctl watch` and `perfctl stat`,", e);
        for (const Registration *g = s->registrations; g && n < OWN_CONNECTIONS_MAX; g = g->next) {
                if (!own_is_of(&g->event->spec, a->uid))
                        continue;
                for (size_t i = 0; i < g->n_holders && n < OWN_CONNECTIONS_MAX; i++) {
                        for (at = 0; at < n && owners[at] != g->holders[i].connection;)
                                at++;
                        owners[at] = g->holders[i].connection;
                        n += at == n;
                }
        }
        for (at = 0; at < n && owners[at] != connection_id(c);)
                at++;
        if (at < n || n < OWN_CONNECTIONS_MAX)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-connections", "uid %u has %d connections that own events, which is the "
                "limit: close some, or add more events by one of them", (unsigned)a->uid,
                      OWN_CONNECTIONS_MAX);
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

int own_name(Registration *list) {
        for (Registration *g = list; g; g = g->next) {
                EventSpec *spec = &g->event->spec;
                char *name;

                if (!spec->is_granted)
                        continue;
                if (asprintf(&name, "~%u/%s", (unsigned)spec->uid, spec->name) < 0)
                        return error_origin(-ENOMEM);
                free(spec->name);
                spec->name = name;
        }
        return 0;
}

static int refuse_name(const Access *a, const char *name, Explanation *e) {
        char what[128];

        (void)snprintf(what, sizeof(what), "to change %.80s, which is not your own event,", name);
        printable_make(what, sizeof(what)); /* it may be cut in a character */
        return access_refuse(a, what, e);
}

/* Root may call an event as those of a uid are called. Without a glob a name is looked up. */
static int check_name(const Events *s, const Access *a, const char *name, Explanation *e) {
        _cleanup_(name_pattern_deinit) NamePattern pattern = { .glob = NULL };
        const Registration *found = events_find(s, name);
        bool is_own = !found || own_is_of(&found->event->spec, a->uid);
        char prefix[24];
        int r = name_pattern_init(&pattern, name, e);

        (void)snprintf(prefix, sizeof(prefix), "~%u/", (unsigned)a->uid);
        if (r == 0 && strncmp(name, prefix, strlen(prefix)) != 0)
                return refuse_name(a, name, e);
        for (const Registration *g = s->registrations; g && is_own && r == 0 && pattern.glob; g = g->next) {
                is_own = !name_pattern_selects(&pattern, g->event) || own_is_of(&g->event->spec, a->uid);
                r = checkpoint(e);
        }
        for (const PendingEvent *p = s->pending.first; p && is_own && r == 0; p = p->next)
                is_own = !name_pattern_selects_pending(&pattern, p);
        return r == 0 && !is_own ? refuse_name(a, name, e) : r;
}

int own_check_names(const Events *s, const Access *a, char *const *names, size_t n, Explanation *e) {
        size_t n_globs = 0;
        int r = 0;

        for (size_t i = 0; i < n && i < NAMES_MAX; i++)
                n_globs += text_is_glob(names[i]);
        if (n > NAMES_MAX || n_globs > OWN_GLOBS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-names", "a client of the stream socket may name at most %d events "
                        "at once, including %d globs: split the request, or use wider globs", NAMES_MAX, OWN_GLOBS_MAX);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = checkpoint(e);
                if (r == 0)
                        r = check_name(s, a, names[i], e);
        }
        return r;
}

/* ---- tasks --------------------------------------------------------------------------------------------------------- */

void own_tasks_deinit(OwnTasks *t) {
        for (size_t i = 0; i < t->n; i++)
                close_fd(t->list[i].fd);
        free(t->list);
        *t = OWN_TASKS_NULL;
}

static bool ids_have(const uint32_t *ids, size_t n, uint32_t id) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

static int refuse_task(const EventSpec *spec, const OwnTask *t, Explanation *e) {
        return refuse(e, REFUSED_DENIED, "not-granted", "%s on thread %u of process %u is not granted: the process must have uid "
                "%u and gid %u only, no capabilities, and be dumpable, as for ptrace(2)",
                      spec->event, t->tid, t->pid, (unsigned)spec->uid, (unsigned)spec->gid);
}

/* One that is there and the client's gets a place in `t`, whose list has room. */
static int hold(const Registration *g, uint32_t tid, OwnTasks *t, bool *ret_own, Explanation *e) {
        const EventSpec *spec = &g->event->spec;
        OwnTask task;
        int r = own_task_open(tid, &task, e);

        *ret_own = false;
        if (r != 0)
                return r == OWN_TASK_E_GONE ? 0 : r;
        r = own_task_check(&task, spec->uid, spec->gid);
        if (r == OWN_TASK_E_FOREIGN && !g->is_registered &&
            (ids_have(spec->tids, spec->n_tids, tid) || ids_have(spec->pids, spec->n_pids, task.pid))) {
                close_fd(task.fd);
                return refuse_task(spec, &task, e);
        }
        if (r != 0) {
                close_fd(task.fd);
                return 0;
        }
        t->list[t->n++] = task;
        *ret_own = true;
        return 0;
}

static int own_tasks_hold(const Registration *g, TargetSet *targets, OwnTasks *ret, Explanation *e) {
        const bool ends = own_tasks_end_at_setuid();
        OwnTasks t = OWN_TASKS_NULL;
        size_t n = 0;
        int r = 0;

        if (targets->n > OWN_TASKS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "bad-target", "%s: %zu threads exceed the limit of %d for an event of a "
                        "client of the stream socket: name fewer processes", g->event->spec.event, targets->n,
                              OWN_TASKS_MAX);
        t.list = calloc(targets->n + 1, sizeof(*t.list));
        if (!t.list)
                return error_origin(-ENOMEM);
        if (!ends && !g->is_registered) {
                free(t.list);
                return refuse(e, REFUSED_DENIED, "not-granted", "while fs.suid_dumpable is 1, Linux does not end events at the "
                        "exec of a setuid program, so none are granted on processes: set it to 0 or 2");
        }
        for (size_t i = 0; i < targets->n && r == 0 && ends; i++) {
                bool is_own = false;

                r = checkpoint(e);
                if (r == 0)
                        r = hold(g, (uint32_t)targets->list[i].pid, &t, &is_own, e);
                if (is_own)
                        targets->list[n++] = targets->list[i];
        }
        if (r != 0) {
                own_tasks_deinit(&t);
                return r;
        }
        targets->n = n;
        *ret = t;
        return 0;
}

int own_find_targets(Events *s, const Registration *g, TargetSet *ret, OwnTasks *own, Explanation *e) {
        int r = events_find_targets(s, g, ret, e);

        return r == 0 && own_is_on_tasks(g) ? own_tasks_hold(g, ret, own, e) : r;
}

static int own_tasks_check(const Registration *g, OwnTasks *t, bool *ret_same, Explanation *e) {
        bool same = true;
        int r = 0;

        for (size_t i = 0; i < t->n && same && r == 0; i++) {
                r = checkpoint(e);
                same = own_task_check(&t->list[i], g->event->spec.uid, g->event->spec.gid) == 0;
        }
        *ret_same = same;
        return r;
}

int own_look_again(Events *s, const Registration *g, const TargetSet *before, OwnTasks *own, bool *ret_same, Explanation *e) {
        _cleanup_(target_set_deinit) TargetSet after = TARGET_SET_NULL;
        _cleanup_(own_tasks_deinit) OwnTasks now = OWN_TASKS_NULL;
        int r;

        *ret_same = true;
        if (event_spec_is_host(&g->event->spec))
                return 0;
        r = own_find_targets(s, g, &after, &now, e);
        if (r == 0)
                r = own_tasks_check(g, own, ret_same, e);
        *ret_same = r == 0 && *ret_same && target_set_contains(before, &after);
        return r;
}

/* ---- behind a reload ----------------------------------------------------------------------------------------------- */

static const Connection *find_connection(const Events *s, uint64_t id) {
        const Connection *c = s->control->connections;

        while (c && connection_id(c) != id)
                c = connection_next(c);
        return c;
}

static bool is_still_granted(const Events *s, const EventSpec *spec, uint64_t connection) {
        const Connection *c = find_connection(s, connection);
        Access access = ACCESS_ALL;

        return !c || (access_of(s->settings->access, c, &access, NULL) == 0 && own_is_granted(&access, spec));
}

void own_recheck(Events *s) {
        for (Registration *g = s->registrations; g; g = g->next) {
                const EventSpec *spec = &g->event->spec;
                bool any = false;

                for (size_t i = spec->is_granted ? g->n_holders : 0; i-- > 0;)
                        if (!is_still_granted(s, spec, g->holders[i].connection))
                                any = holders_remove(g, g->holders[i].connection);
                if (!any || !registration_is_orphan(g))
                        continue;
                log_print(LOG_NOTICE, MESSAGE_ACCESS_ENDED, "%s is removed: the access rules for uid %u have changed", spec->name,
                          (unsigned)spec->uid);
                operations_set_due(s->operations, CHANGE_ORPHANS);
        }
}
