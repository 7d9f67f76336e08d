/*
 * The fds of one event: for each task, cgroup or whole CPU, on each CPU, one for the event, or one for each member of its
 * group; disabled, filtered and redirected into the CPU's ring before anybody can see them.
 *
 * A thread that appears while the others are opened may have been followed or missed, and which of both is not to be
 * seen; then all are closed and opened again.
 */

#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/tracefs/filter-constants.h"
#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/room.h"

#define TRIES 10
/*
 * Of what the first look may know already: the second one, behind the opening, finds who has come since. So an add of a thousand
 * events on a process reads all of /proc once for each of them, and not twice.
 */
#define FIRST_LOOK_AGE (20 * NSEC_PER_MSEC)
#define GROUP_TRIES 16 /* each finds the leader gone in one of a hundred of them, on a task that makes a thousand children a second */

/* ---- filters ----------------------------------------------------------------------------------------------------- */

/* What the user wants and what keeps our own threads out, as one filter. NULL in *ret: none. */
static int compose_filter(const Events *s, const Registration *r, const char *filter, char **ret) {
        bool exclude = s->self_filter && !r->event->spec.include_self && event_spec_is_host(&r->event->spec);

        *ret = NULL;
        if (r->plan.attrs[0].type != PERF_TYPE_TRACEPOINT || (!filter && !exclude))
                return 0;
        if (filter && exclude)
                return asprintf(ret, "(%s) && (%s)", filter, s->self_filter) < 0 ? error_origin(-ENOMEM) : 0;
        *ret = strdup(filter ? filter : s->self_filter);
        return *ret ? 0 : error_origin(-ENOMEM);
}

/* What the kernel would take, and cannot have been meant. */
static int check_filter(const Events *s, const Registration *r, const char *filter, Explanation *e) {
        uint32_t n_cpus = 0;

        if (!filter || r->plan.attrs[0].type != PERF_TYPE_TRACEPOINT)
                return 0;
        for (size_t i = 0; i < s->readers->n_cpus; i++)
                if (s->readers->cpus[i] >= n_cpus)
                        n_cpus = s->readers->cpus[i] + 1;
        return filter_constants_check(r->event->plan, filter, n_cpus, e);
}

static int set_filter(const Events *s, const Registration *r, int fd, const char *filter, const char *composed,
                      Explanation *e) {
        const Plan *plan = r->event->plan;
        int error = 0;

        if (filter && !open_filter_is_closed(filter))
                error = REFUSED_INVALID;
        else if (composed)
                error = open_set_filter(fd, composed, r->event->spec.name, e);
        if (error != REFUSED_INVALID)
                return error;
        if (!filter)
                return 0; /* an event without filters: the reader leaves our own doing out */
        tracing_explain_filter(&s->host->tracing, plan->group, plan->name, filter, e);
        return error;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

typedef struct Opening {
        Events *events;
        const Registration *registration;
        const char *filter;
        char *composed;
        nsec_t since;
        PerfFdSet opened;
} Opening;

/* As precise as this machine can: from 3 down. */
static int open_attr(const Registration *g, size_t i, bool for_task, OpenPlace place, int *ret_fd, Explanation *e) {
        struct perf_event_attr attr = attr_for(&g->plan, i, for_task, g->event->spec.no_inherit);
        const char *what = g->event->n_members > i ? g->event->members[i].event : g->event->spec.name;
        int r;

        if (i > 0 && !g->plan.is_group)
                what = g->event->spec.name;
        if (!g->plan.precise_max)
                return open_event(&attr, what, place, ret_fd, e);
        for (attr.precise_ip = 3;; attr.precise_ip--) {
                r = open_event(&attr, what, place, ret_fd, e);
                if (r != REFUSED_UNSUPPORTED || attr.precise_ip == 0)
                        return r;
        }
}

/* Attr i for one target on one CPU. Only what can write into the ring is led there. */
static int open_stream(Opening *o, size_t i, const TargetRef *target, uint32_t slot, int leader_fd, bool may_try_again, int *ret_fd,
                       Explanation *e) {
        const Registration *g = o->registration;
        Events *s = o->events;
        OpenPlace place = { .pid = target->pid, .is_cgroup = target->cgroup != NULL, .cpu = (int)s->readers->cpus[slot],
                            .leader_fd = leader_fd, .may_try_again = may_try_again, .config3 = g->plan.config3[i] };
        bool is_leader = i == 0 || !g->plan.is_group, is_task = target->pid >= 0 && !target->cgroup;
        const uint32_t type = g->plan.attrs[i].type;
        int fd = -1;
        uint64_t id;
        int r = checkpoint(e);

        if (r == 0)
                r = open_attr(g, i, is_task, place, &fd, e);
        if (r == 0 && is_leader && type == PERF_TYPE_TRACEPOINT)
                r = set_filter(s, g, fd, o->filter, o->composed, e);
        if (r == 0)
                r = is_leader ? open_redirect(fd, s->readers->carriers[slot], g->event->spec.name, &id, e) : open_id(fd, &id, e);
        if (r != 0) {
                (void)open_close_of(type, fd);
                return r;
        }
        *ret_fd = fd;
        o->opened.fds[o->opened.n++] = (PerfFd){ .slot = slot, .member = is_leader ? 0 : (uint32_t)i,
                                                     .fd = fd, .id = id, .target_id = target->id, .since = o->since,
                                                     .is_cgroup = target->cgroup != NULL,
                                                     .awaits_exec = is_task && g->plan.attrs[i].enable_on_exec,
                                                     .is_breakpoint = type == PERF_TYPE_BREAKPOINT,
                                                     .is_sampling = !g->event->exact, .period = g->event->period,
                                                     .read_format = g->plan.attrs[i].read_format };
        return 0;
}

/* Back to the first n. What is closed was never enabled. */
static void drop_streams(Opening *o, size_t n) {
        while (o->opened.n > n)
                (void)open_close(o->opened.fds[--o->opened.n].fd);
}

/* All attrs for one target on one CPU: a group, or the sites of a probe. Nothing of a group that is not whole stays. */
static int try_attrs(Opening *o, const TargetRef *target, uint32_t slot, bool may_try_again, Explanation *e) {
        const AttrPlan *plan = &o->registration->plan;
        const size_t before = o->opened.n;
        int leader = -1, r = 0;

        for (size_t i = 0; i < plan->n_attrs && r == 0; i++) {
                int fd = -1;

                r = open_stream(o, i, target, slot, plan->is_group ? leader : -1, may_try_again, &fd, e);
                if (i == 0)
                        leader = fd;
        }
        if (r > 0 && plan->is_group)
                drop_streams(o, before);
        return r;
}

static int open_attrs(Opening *o, const TargetRef *target, uint32_t slot, Explanation *e) {
        int r, n = 0;

        do
                r = try_attrs(o, target, slot, ++n < GROUP_TRIES, e);
        while (r == OPEN_E_LEADER_LEFT);
        if (r > 0 && r != REFUSED_CANCELLED && target->cgroup && cgroup_is_gone(&o->events->host->cgroups, target->cgroup))
                return 0; /* as a task that has exited */
        return r == OPEN_E_OFFLINE || r == OPEN_E_EXITED ? 0 : r;
}

static void note_roots(Opening *o, const TargetSet *targets) {
        for (size_t i = 0; i < targets->n && !o->registration->event->spec.no_inherit; i++)
                if (targets->list[i].pid >= 0 && !targets->list[i].cgroup)
                        process_tree_add_root(&o->events->readers->process_tree, (uint32_t)targets->list[i].pid);
}

static int open_all(Opening *o, const TargetSet *targets, const uint32_t *slots, size_t n_slots, Explanation *e) {
        size_t n = targets->n * n_slots * o->registration->plan.n_attrs;
        int r = events_check_fds(o->events, o->registration->event->spec.name, n, e);

        if (r == 0)
                r = compose_filter(o->events, o->registration, o->filter, &o->composed);
        if (r != 0)
                return r;
        o->opened.fds = calloc(n + 1, sizeof(*o->opened.fds));
        if (!o->opened.fds)
                return error_origin(-ENOMEM);
        o->since = clock_now(o->events->readers->attr.clock);
        note_roots(o, targets); /* before the first child can inherit */
        for (size_t i = 0; i < targets->n && r == 0; i++)
                for (size_t k = 0; k < n_slots && r == 0; k++)
                        r = open_attrs(o, &targets->list[i], slots[k], e);
        o->opened.event = o->registration->event->origin ? o->registration->event->origin : o->registration->event;
        o->opened.whole = o->opened.listed = clock_now(o->events->readers->attr.clock);
        return r;
}

int events_open_at(Events *s, const Registration *g, const char *filter, const TargetSet *targets, const uint32_t *slots,
                   size_t n_slots, PerfFdSet *ret, Explanation *e) {
        Opening o = { .events = s, .registration = g, .filter = filter, .opened = PERF_FD_SET_NULL };
        int r;

        thread_assert(THREAD_MAIN);
        r = error_trace_of(open_all(&o, targets, slots, n_slots, e), "event %s", g->event->spec.name);
        free(o.composed);
        if (r != 0)
                event_fds_close_unknown(s, &o.opened, events_charged_uid(s));
        else
                *ret = o.opened;
        return r;
}

/*
 * None of these was there any more when it was opened: refused, unless more may come. Threads are looked for only by opening, so
 * it is the first that was named.
 */
static int check_gone(const Registration *g, const TargetSet *targets, Explanation *e) {
        const EventSpec *spec = &g->event->spec;
        int r;

        if (targets->n == 0 || g->is_dynamic || g->is_registered)
                return 0;
        r = refuse(e, REFUSED_NOT_FOUND, "gone", "%s: %s", spec->name,
                   targets->list[0].pid < 0 ? "its CPUs are offline" : "its tasks or cgroups have ended");
        if (e && (spec->n_tids > 0 || spec->n_pids > 0)) {
                e->list = spec->n_tids > 0 ? "tids" : "pids";
                e->item = 0;
        }
        return r;
}

/* Once: refused, or *ret_same says whether everybody who is there now was there before. */
static int try_to_open(Events *s, const Registration *g, const char *filter, const uint32_t *slots, size_t n_slots,
                       PerfFdSet *ret, bool *ret_same, Explanation *e) {
        _cleanup_(target_set_deinit) TargetSet before = TARGET_SET_NULL;
        _cleanup_(own_tasks_deinit) OwnTasks own = OWN_TASKS_NULL;
        int r;

        s->families_age = FIRST_LOOK_AGE;
        r = own_find_targets(s, g, &before, &own, e);
        s->families_age = 0;
        if (r == 0)
                r = events_open_at(s, g, filter, &before, slots, n_slots, ret, e);
        if (r != 0)
                return r;
        if (ret->n == 0)
                r = check_gone(g, &before, e);
        return r == 0 ? own_look_again(s, g, &before, &own, ret_same, e) : r;
}

int events_open_on(Events *s, const Registration *g, const char *filter, const uint32_t *slots, size_t n_slots,
                   PerfFdSet *ret, Explanation *e) {
        thread_assert(THREAD_MAIN);
        for (int i = 0; i < TRIES; i++) {
                PerfFdSet o = PERF_FD_SET_NULL;
                bool same = false;
                int r = try_to_open(s, g, filter, slots, n_slots, &o, &same, e);

                if (r == 0 && same) {
                        *ret = o;
                        return 0;
                }
                event_fds_close_unknown(s, &o, events_charged_uid(s));
                if (r != 0)
                        return r;
        }
        if (g->is_registered && own_is_on_tasks(g))
                return 0; /* a client that makes tasks without end holds up no change of others: the event goes without these */
        return refuse(e, REFUSED_EXHAUSTED, "bad-target",
                      "%s: its processes or cgroups change faster than it can be opened (%d tries): try again, or trace the host "
                      "and filter by pid", g->event->spec.name, TRIES);
}

/*
 * A plan changes nothing: a user probe is not opened for it, because that puts a breakpoint into all programs that run the file,
 * and one in the middle of an instruction ends them. Its file, place and arguments are good by now.
 */
static int try_user_probe(Events *s, const Registration *g, const char *filter, Explanation *e) {
        const Plan *plan = g->event->plan;

        if (!filter || g->plan.attrs[0].type != PERF_TYPE_TRACEPOINT)
                return 0;
        if (!open_filter_is_closed(filter)) {
                tracing_explain_filter(&s->host->tracing, plan->group, plan->name, filter, e);
                return REFUSED_INVALID;
        }
        return tracing_try_filter(&s->host->tracing, plan->group, plan->name, filter, e);
}

/*
 * For a plan, and for whether a configuration is valid: what can be refused is found by opening it once, for one of those whom it
 * observes, on one of its CPUs, and closed at once. Matches of a glob without a filter are as their first one.
 */
static int open_for_trial(Events *s, const Registration *g, const char *filter, const uint32_t *slots, size_t n_slots,
                          Explanation *e) {
        _cleanup_(target_set_deinit) TargetSet targets = TARGET_SET_NULL;
        bool is_open = false;
        int r = 0;

        if (g->like_first && !filter)
                return 0;
        r = events_wait_for_trial_room(s, g->event->spec.name, g->plan.n_attrs, e);
        if (r == 0)
                r = events_find_targets(s, g, &targets, e);
        if (r == 0 && g->probe && probe_is_user(g->probe))
                return try_user_probe(s, g, filter, e);
        for (size_t i = 0; i < targets.n && n_slots > 0 && r == 0 && !is_open; i++) {
                TargetSet one = { .list = &targets.list[i], .n = 1 };
                PerfFdSet o = PERF_FD_SET_NULL;

                r = events_open_at(s, g, filter, &one, slots, 1, &o, e);
                is_open = o.n > 0; /* it is not gone */
                event_fds_close_unknown(s, &o, events_charged_uid(s));
        }
        return r == 0 && !is_open && n_slots > 0 ? check_gone(g, &targets, e) : r;
}

int events_open(Events *s, const Registration *g, const char *filter, PerfFdSet *ret, Explanation *e) {
        _cleanup_free_ uint32_t *slots = NULL;
        size_t n_slots = 0;
        int r;

        thread_assert(THREAD_MAIN);
        if (g->event->external)
                return 0;
        r = check_filter(s, g, filter, e);
        if (r == 0)
                r = events_find_slots(s, g, &slots, &n_slots, e);
        if (r == 0 && operations_is_trial(s->operations))
                return open_for_trial(s, g, filter, slots, n_slots, e);
        return r == 0 ? events_open_on(s, g, filter, slots, n_slots, ret, e) : r;
}

/* One of a pattern's: its tracepoint went since it was listed, as a probe of somebody's, or it is another one by now. */
static bool is_gone(Events *s, const Registration *g) {
        const Plan *plan = g->event->plan;
        Plan *now = NULL;
        bool is;

        if (!g->of_glob || !plan)
                return false;
        is = tracing_load(&s->host->tracing, plan->group, plan->name, &now, NULL) == REFUSED_NOT_FOUND ||
             (now && now->type != plan->type);
        plan_unref(now);
        return is;
}

int events_open_list(Events *s, Registration **list, Explanation *e) {
        Registration **p = list;
        int r = events_check_room(s, *list, e);

        while (*p && r == 0) {
                Registration *g = *p;
                Explanation why = EXPLANATION_NULL;

                r = events_open(s, g, g->event->spec.filter, &g->opened, &why);
                bool is_left_out = r == REFUSED_DENIED && g->of_glob && strcmp(why.reason, "not-sampled") == 0;

                if (is_left_out)
                        notes_add_left_out(&s->operations->notes, why.text);
                if (is_left_out || (r > 0 && r != REFUSED_CANCELLED && is_gone(s, g))) {
                        *p = g->next;
                        registration_free(s, g);
                        r = 0;
                        continue;
                }
                if (r > 0 && e)
                        *e = why;
                p = &g->next;
        }
        return r;
}
