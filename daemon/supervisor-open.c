/*
 * The fds of one event: for each task (or the whole CPU) and each CPU one, disabled, filtered and redirected into the
 * CPU's ring before anybody can see them.
 *
 * A process is opened thread by thread, because perf_event_open(2) follows children only from where they are born. A
 * thread that appears while the others are opened may have been followed or missed, and which of both is not to be
 * seen; then all are closed and opened anew.
 */
#include "daemon/supervisor.h"

#include <string.h>
#include <sys/resource.h>
#include "daemon/base/log.h"

#include "daemon/base/cpu-list.h"
#include "daemon/kernel/open.h"
#include "daemon/kernel/tasks.h"

#define TRIES 10

typedef struct Tasks {
        uint32_t *ids;
        size_t n;
} Tasks;

void opened_close(Supervisor *s, Opened *o) {
        _cleanup_free_ int *fds = calloc(o->n + 1, sizeof(*fds));

        for (size_t i = 0; i < o->n; i++)
                if (fds)
                        fds[i] = o->streams[i].fd;
                else
                        closer_close(&s->closer, &o->streams[i].fd, 1);
        if (fds)
                closer_close(&s->closer, fds, o->n);
        free(o->streams);
        *o = OPENED_NULL;
}

size_t supervisor_own_fds(size_t n_cpus) {
        return 64 + 2 * n_cpus; /* sockets, files that are open for a moment; a carrier and a mailbox for each CPU */
}

size_t supervisor_count_fds(const Supervisor *s) {
        size_t n = s->n_cpus;

        for (const Registration *r = s->registrations; r; r = r->next)
                n += r->opened.n + r->pending.n;
        return n;
}

static int tasks_add(Tasks *t, const uint32_t *ids, size_t n) {
        uint32_t *more = reallocarray(t->ids, t->n + n + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        t->ids = more;
        for (size_t i = 0; i < n; i++) {
                bool known = false;

                for (size_t k = 0; k < t->n && !known; k++)
                        known = t->ids[k] == ids[i];
                if (!known)
                        t->ids[t->n++] = ids[i];
        }
        return 0;
}

static int tasks_add_process(Tasks *t, uint32_t pid, Explanation *e) {
        _cleanup_free_ uint32_t *tids = NULL;
        size_t n = 0;
        int r = tasks_of_process(pid, &tids, &n, e);

        return r == 0 ? tasks_add(t, tids, n) : r;
}

/* Children that are there already: a replacement would lose them, and who follows children wants them anyway. */
static int tasks_add_descendants(Tasks *t, uint32_t pid, Explanation *e) {
        _cleanup_free_ uint32_t *pids = NULL;
        size_t n = 0;
        int r = tasks_descendants(pid, &pids, &n, e);

        for (size_t i = 0; i < n && r == 0; i++) {
                r = tasks_add_process(t, pids[i], e);
                if (r == REFUSED_NOT_FOUND)
                        r = 0; /* gone by now: its children have got another parent */
        }
        return r;
}

/* Every thread that the spec names, once. A process that is gone is said; that all of them are, is refused. */
static int tasks_of_spec(const EventSpec *spec, Tasks *t, Explanation *e) {
        int r = tasks_add(t, spec->tids, spec->n_tids);

        for (size_t i = 0; i < spec->n_pids && r == 0; i++) {
                r = tasks_add_process(t, spec->pids[i], e);
                if (r == 0 && !spec->no_inherit)
                        r = tasks_add_descendants(t, spec->pids[i], e);
                if (r == REFUSED_NOT_FOUND) {
                        log_print(LOG_NOTICE, "%s: there is no process %u (any more)", spec->name, spec->pids[i]);
                        r = 0;
                }
        }
        if (r != 0)
                return r;
        return t->n == 0 && spec->n_pids > 0 ? REFUSED_NOT_FOUND : 0; /* explained by tasks_of_process() */
}

static bool tasks_contain(const Tasks *all, const Tasks *some) {
        for (size_t i = 0; i < some->n; i++) {
                bool found = false;

                for (size_t k = 0; k < all->n && !found; k++)
                        found = all->ids[k] == some->ids[i];
                if (!found)
                        return false;
        }
        return true;
}

/* The slots of the CPUs that the spec names and that have a reader. */
static int slots_of_spec(const Supervisor *s, const EventSpec *spec, uint32_t **ret_slots, size_t *ret_n,
                         Explanation *e) {
        _cleanup_free_ uint32_t *slots = calloc(s->n_cpus, sizeof(*slots)), *wanted = NULL;
        size_t n = 0, n_wanted = 0;
        int r;

        if (!slots)
                return -ENOMEM;
        if (spec->cpus) {
                r = cpu_list_parse(spec->cpus, &wanted, &n_wanted, e);
                if (r != 0)
                        return r;
        }
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                bool take = !spec->cpus;

                for (size_t i = 0; i < n_wanted && !take; i++)
                        take = wanted[i] == s->cpus[slot];
                if (take)
                        slots[n++] = slot;
        }
        if (n == 0)
                return refuse(e, REFUSED_NOT_FOUND, "bad-target", "none of the CPUs %s is online", spec->cpus);
        *ret_slots = TAKE_PTR(slots);
        *ret_n = n;
        return 0;
}

/* Before anything is opened: does it fit? */
static int check_fds(const Supervisor *s, const char *what, size_t need, Explanation *e) {
        struct rlimit limit;
        size_t have = supervisor_count_fds(s) - s->n_cpus + s->control.n_connections + s->n_subscribers +
                      supervisor_own_fds(s->n_cpus) +
                      atomic_load_explicit(&s->closer.n_pending, memory_order_relaxed);

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        if (have + need <= limit.rlim_cur)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "%s needs %zu fds (tasks times CPUs), %zu of perfd's %llu are left; raise LimitNOFILE= "
                      "(RLIMIT_NOFILE) or trace fewer tasks or CPUs", what, need,
                      have < limit.rlim_cur ? (size_t)limit.rlim_cur - have : 0, (unsigned long long)limit.rlim_cur);
}

static bool is_host(const EventSpec *spec) {
        return spec->n_pids == 0 && spec->n_tids == 0;
}

/* What the user wants and what keeps our own threads out, as one filter. NULL in *ret: none. */
static int compose_filter(const Supervisor *s, const Registration *r, const char *filter, char **ret) {
        bool exclude = s->self_filter && !r->event->spec.include_self && is_host(&r->event->spec);

        *ret = NULL;
        if (r->source.type != PERF_TYPE_TRACEPOINT || (!filter && !exclude))
                return 0;
        if (filter && exclude)
                return asprintf(ret, "(%s) && (%s)", filter, s->self_filter) < 0 ? -ENOMEM : 0;
        *ret = strdup(filter ? filter : s->self_filter);
        return *ret ? 0 : -ENOMEM;
}

static int set_filter(const Supervisor *s, const Registration *r, int fd, const char *filter, const char *composed,
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
        tracing_explain_filter(&s->tracing, plan->group, plan->name, filter, e);
        return error;
}

static int open_stream(Supervisor *s, const Registration *r, const char *filter, const char *composed, int pid,
                       uint32_t slot, Opened *o, Explanation *e) {
        struct perf_event_attr attr = attr_of_event(&s->attr, r->event, r->source, pid >= 0);
        const char *what = r->event->spec.name;
        _cleanup_close_ int fd = -1;
        uint64_t id;
        int error;

        error = open_event(&attr, what, pid, (int)s->cpus[slot], &fd, e);
        if (error == 0)
                error = set_filter(s, r, fd, filter, composed, e);
        if (error == 0)
                error = open_redirect(fd, s->carriers[slot], what, &id, e);
        if (error == 0)
                o->streams[o->n++] = (Stream){ .slot = slot, .fd = TAKE_FD(fd), .id = id };
        return error;
}

static int open_streams(Supervisor *s, const Registration *r, const char *filter, const Tasks *tasks, Opened *o,
                        Explanation *e) {
        _cleanup_free_ char *composed = NULL;
        _cleanup_free_ uint32_t *slots = NULL;
        size_t n_slots = 0, n_tasks = tasks->n ? tasks->n : 1;
        int error;

        error = slots_of_spec(s, &r->event->spec, &slots, &n_slots, e);
        if (error == 0)
                error = check_fds(s, r->event->spec.name, n_tasks * n_slots, e);
        if (error == 0)
                error = compose_filter(s, r, filter, &composed);
        if (error != 0)
                return error;
        o->streams = calloc(n_tasks * n_slots, sizeof(*o->streams));
        if (!o->streams)
                return -ENOMEM;
        for (size_t i = 0; i < n_tasks * n_slots; i++) {
                int pid = tasks->n ? (int)tasks->ids[i / n_slots] : -1;

                error = open_stream(s, r, filter, composed, pid, slots[i % n_slots], o, e);
                if (error != 0 && error != OPEN_E_OFFLINE && error != OPEN_E_EXITED)
                        return error;
        }
        if (o->n == 0)
                return refuse(e, REFUSED_NOT_FOUND, "gone", "%s: %s", r->event->spec.name,
                              tasks->n ? "its tasks are gone" : "its CPUs are offline");
        return 0;
}

int supervisor_open(Supervisor *s, const Registration *r, const char *filter, Opened *ret, Explanation *e) {
        int error;

        thread_assert(THREAD_MAIN);
        for (int i = 0; i < TRIES; i++) {
                Opened o = OPENED_NULL;
                Tasks before = { .ids = NULL }, after = { .ids = NULL };
                bool same = false;

                error = tasks_of_spec(&r->event->spec, &before, e);
                if (error == 0)
                        error = open_streams(s, r, filter, &before, &o, e);
                if (error == 0)
                        error = tasks_of_spec(&r->event->spec, &after, e);
                if (error == 0)
                        same = tasks_contain(&before, &after);
                free(before.ids);
                free(after.ids);
                if (same) {
                        *ret = o;
                        return 0;
                }
                opened_close(s, &o);
                if (error != 0)
                        return error;
        }
        return refuse(e, REFUSED_EXHAUSTED, "bad-target",
                      "%s: its process makes threads faster than they can be opened (%d tries): try again, or trace the "
                      "host and filter by pid", r->event->spec.name, TRIES);
}
