/*
 * What an event observes, and where. What a user wrote (pids, cgroup globs, container ids) is looked up at each opening, so
 * that a replacement, a CPU that comes online, or a cgroup that appears sees what is there then.
 *
 * A process is opened thread by thread, because perf_event_open(2) follows children only from where they are born.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/cpu-list.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/events/sigtrap.h"
#include "daemon/supervisor/readers/publish.h"

#define GENERATIONS_MAX 32 /* of tasks that events were opened on */
#define SLACK NSEC_PER_SEC /* of what /proc says of births; so soon no tid is used again */

void target_set_deinit(TargetSet *w) {
        free(w->list);
        cgroups_free(w->cgroups, w->n_cgroups);
        *w = TARGET_SET_NULL;
}

static int compare_targets(const void *a, const void *b) {
        const TargetRef *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

bool target_set_has(const TargetSet *w, uint64_t id) {
        return w->n > 0 && bsearch(&(TargetRef){ .id = id }, w->list, w->n, sizeof(*w->list), compare_targets);
}

/* In no order, and perhaps twice: target_set_sort(). */
static int target_set_add(TargetSet *w, TargetRef target) {
        if (w->n == w->n_allocated) {
                size_t n = w->n_allocated * 2 + 16;
                TargetRef *more = reallocarray(w->list, n, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                w->list = more;
                w->n_allocated = n;
        }
        w->list[w->n++] = target;
        return 0;
}

static void target_set_sort(TargetSet *w) {
        size_t n = 0;

        if (w->n > 0)
                qsort(w->list, w->n, sizeof(*w->list), compare_targets);
        for (size_t i = 0; i < w->n; i++)
                if (n == 0 || w->list[n - 1].id != w->list[i].id)
                        w->list[n++] = w->list[i];
        w->n = n;
}

bool target_set_contains(const TargetSet *all, const TargetSet *some) {
        for (size_t i = 0; i < some->n; i++)
                if (!target_set_has(all, some->list[i].id))
                        return false;
        return true;
}

static int add_tasks(TargetSet *w, const uint32_t *tids, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = target_set_add(w, (TargetRef){ .pid = (int)tids[i], .id = tids[i] });
        return r;
}

static int compare_ids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Which of a target's names or numbers `e` is about. Gives `r`. */
static int note_item(int r, const char *list, size_t item, Explanation *e) {
        if (r > 0 && e) {
                e->list = list;
                e->item = item;
        }
        return r;
}

static int add_process(TargetSet *w, uint32_t pid, Explanation *e) {
        _cleanup_free_ uint32_t *tids = NULL;
        size_t n = 0;
        int r = checkpoint(e);

        if (r == 0)
                r = tasks_of_process(pid, &tids, &n, e);

        return r == 0 ? add_tasks(w, tids, n) : r;
}

/* Children that are there already: a replacement would lose them, and who follows children wants them anyway. */
static int add_descendants(Events *s, TargetSet *w, const EventSpec *spec, Explanation *e) {
        _cleanup_free_ uint32_t *pids = NULL, *roots = malloc((spec->n_pids + 1) * sizeof(*roots));
        size_t n = 0;
        int r;

        if (!roots)
                return error_origin(-ENOMEM);
        memcpy(roots, spec->pids, spec->n_pids * sizeof(*roots));
        qsort(roots, spec->n_pids, sizeof(*roots), compare_ids);
        r = tasks_descendants(&s->families, s->families_age, roots, spec->n_pids, &pids, &n, e);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = add_process(w, pids[i], e);
                if (r == REFUSED_NOT_FOUND)
                        r = 0; /* gone by now: its children have got another parent */
        }
        return r;
}

/* TargetRef an event was opened on, and since when: what is born to them later has inherited it. */
typedef struct Root {
        uint32_t tid;
        nsec_t since;
} Root;

static int compare_roots(const void *a, const void *b) {
        const Root *x = a, *y = b;

        return (x->tid > y->tid) - (x->tid < y->tid);
}

static int find_roots(const Registration *g, Root **ret, size_t *ret_n) {
        Root *roots = calloc(g->opened.n + 1, sizeof(*roots));
        size_t n = 0;

        if (!roots)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < g->opened.n; i++)
                roots[i] = (Root){ (uint32_t)g->opened.fds[i].target_id, g->opened.fds[i].since };
        qsort(roots, g->opened.n, sizeof(*roots), compare_roots);
        for (size_t i = 0; i < g->opened.n; i++)
                if (n == 0 || roots[n - 1].tid != roots[i].tid)
                        roots[n++] = roots[i];
                else if (roots[i].since < roots[n - 1].since) /* on another CPU, which came later */
                        roots[n - 1].since = roots[i].since;
        *ret = roots;
        *ret_n = n;
        return 0;
}

static bool has_inherited(const Events *s, const Root *roots, size_t n, uint32_t root, nsec_t birth) {
        ProcessTreeEntry k;

        for (int i = 0; i < GENERATIONS_MAX && root != 0; i++) {
                const Root *found = bsearch(&(Root){ .tid = root }, roots, n, sizeof(*roots), compare_roots);

                if (found && found->since < birth)
                        return true;
                if (!process_tree_get(&s->readers->process_tree, root, &k) || k.birth > birth)
                        return false;
                birth = k.birth;
                root = process_tree_root(&s->readers->process_tree, &k); /* a root of another event */
        }
        return false;
}

/*
 * TargetRef it is open on, and who has inherited it from them, also if their parents are gone and /proc does not know whose they
 * are. What the readers have in their rings is read first. A tid that is another's by now was born at another time.
 */
static int add_inheritors(Events *s, const Registration *g, TargetSet *w) {
        _cleanup_free_ Root *roots = NULL;
        size_t at = 0, n = 0;
        nsec_t birth;
        int r;
        ProcessTreeEntry k;

        r = readers_command(s->readers, READER_SWITCH, NULL);
        if (r == 0)
                r = find_roots(g, &roots, &n);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = checkpoint(NULL);
                if (r == 0 && task_birth(s->readers->attr.clock, roots[i].tid, &birth) && birth < roots[i].since + SLACK)
                        r = target_set_add(w, (TargetRef){ .pid = (int)roots[i].tid, .id = roots[i].tid });
        }
        while (r == 0 && s->readers->active && process_tree_next(&s->readers->process_tree, &at, &k))
                if (!k.has_ended && has_inherited(s, roots, n, process_tree_root(&s->readers->process_tree, &k), k.birth) &&
                    task_birth(s->readers->attr.clock, k.tid, &birth) && birth < k.birth + SLACK && k.birth < birth + SLACK)
                        r = target_set_add(w, (TargetRef){ .pid = (int)k.tid, .id = k.tid });
        return r;
}

/* As the log says it. */
static int refuse_gone(const EventSpec *spec, size_t first, size_t n_gone, Explanation *e) {
        char more[64] = "";

        if (n_gone > 1)
                (void)snprintf(more, sizeof(more), ", and %zu more of its pids do not exist either", n_gone - 1);
        return note_item(refuse(e, REFUSED_NOT_FOUND, "gone", "there is no process %u%s", spec->pids[first], more), "pids", first, e);
}

/* A process that is gone is noted; that all of them are, is refused unless the event is there already. */
static int find_tasks(Events *s, const Registration *g, TargetSet *w, Explanation *e) {
        const EventSpec *spec = &g->event->spec;
        int r = add_tasks(w, spec->tids, spec->n_tids);
        size_t n_gone = 0, first = 0;

        for (size_t i = 0; i < spec->n_pids && r == 0; i++) {
                r = note_item(add_process(w, spec->pids[i], e), "pids", i, e);
                if (r == REFUSED_NOT_FOUND) {
                        first = n_gone++ == 0 ? i : first;
                        r = 0;
                }
        }
        if (r == 0 && n_gone < spec->n_pids && !spec->no_inherit)
                r = add_descendants(s, w, spec, e);
        if (r != 0)
                return r;
        if (n_gone > 0)
                notes_add_gone(&s->operations->notes, spec->name, spec->pids[first], n_gone);
        if (g->is_registered && !spec->no_inherit)
                return add_inheritors(s, g, w);
        if (w->n == 0 && spec->n_pids > 0 && !g->is_registered)
                return refuse_gone(spec, first, n_gone, e);
        return 0;
}

/* The first one is shown; that a container is gone for good comes before what may come again. */
static int note_absent(const CgroupHierarchy *h, TargetSet *w, CgroupNaming naming, const char *name) {
        CgroupFate fate = CGROUP_FATE_UNKNOWN;
        int r = naming == CGROUP_BY_CONTAINER ? cgroup_container_fate(h, name, &fate) : 0;

        if (r < 0 || (w->n_absent++ > 0 && (fate != CGROUP_FATE_GONE || w->fate == CGROUP_FATE_GONE)))
                return r;
        w->absent = name;
        w->absent_by = naming;
        w->fate = fate;
        return 0;
}

static int find_cgroups_named(Events *s, CgroupNaming naming, const Strings *names, bool lenient, TargetSet *w, Explanation *e) {
        static const char *const lists[] = { [CGROUP_BY_PATH] = "cgroups", [CGROUP_BY_CONTAINER] = "containers",
                                             [CGROUP_BY_UNIT] = "units" };

        for (size_t i = 0; i < names->n; i++) {
                Cgroup *found = NULL;
                size_t n = 0, n_duplicates = 0;
                int r = note_item(cgroup_resolve(&s->host->cgroups, naming, names->items[i], &found, &n, e), lists[naming], i, e);

                if (r == REFUSED_NOT_FOUND && lenient) {
                        r = note_absent(&s->host->cgroups, w, naming, names->items[i]);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (r == 0)
                        r = cgroups_add(&w->cgroups, &w->n_cgroups, found, n, &n_duplicates);
                if (r != 0)
                        return r;
                w->n_duplicates += n_duplicates;
        }
        return 0;
}

/* The root of the hierarchy, which has all others in it, is everybody: a whole CPU counts that for less. */
static int find_cgroups(Events *s, const Registration *g, TargetSet *w, Explanation *e) {
        const EventSpec *spec = &g->event->spec;
        int r = s->host->cgroups.path ? 0 : cgroup_find_hierarchy("", &s->host->cgroups, e);
        bool lenient = g->is_registered || g->may_be_absent; /* what it observes may go, and come back */

        if (r == 0)
                r = find_cgroups_named(s, CGROUP_BY_PATH, &spec->cgroups, lenient, w, e);
        if (r == 0)
                r = find_cgroups_named(s, CGROUP_BY_CONTAINER, &spec->containers, lenient, w, e);
        if (r == 0)
                r = find_cgroups_named(s, CGROUP_BY_UNIT, &spec->units, lenient, w, e);
        for (size_t i = 0; i < w->n_cgroups && r == 0; i++) {
                const Cgroup *c = &w->cgroups[i];

                r = strcmp(c->path, "/") == 0 ? target_set_add(w, (TargetRef){ .pid = -1 })
                                              : target_set_add(w, (TargetRef){ .pid = c->fd, .cgroup = c, .id = c->inode });
        }
        return r;
}

int events_find_targets(Events *s, const Registration *g, TargetSet *ret, Explanation *e) {
        const EventSpec *spec = &g->event->spec;
        TargetSet w = TARGET_SET_NULL;
        int r;

        if (event_spec_is_host(spec))
                r = target_set_add(&w, (TargetRef){ .pid = -1 });
        else if (spec->n_pids || spec->n_tids)
                r = find_tasks(s, g, &w, e);
        else
                r = find_cgroups(s, g, &w, e);
        if (r != 0 && e)
                e->position = 0; /* in a target's name, and not in the event's */
        if (r != 0) {
                target_set_deinit(&w);
                return r;
        }
        target_set_sort(&w);
        r = w.n_cgroups == 0 ? sigtrap_check_targets(spec, &w, e) : 0; /* Linux takes it on tasks only */
        if (r != 0) {
                target_set_deinit(&w);
                return r;
        }
        *ret = w;
        return 0;
}

static int parse_cpus(const char *text, uint32_t **ret, size_t *ret_n, Explanation *e) {
        return text ? cpu_list_parse(text, ret, ret_n, e) : 0;
}

static bool list_has(const uint32_t *list, size_t n, const char *text, uint32_t cpu) {
        bool found = !text;

        for (size_t i = 0; i < n && !found; i++)
                found = list[i] == cpu;
        return found;
}

static int refuse_slots(const Registration *g, Explanation *e) {
        if (g->cpus)
                return refuse(e, REFUSED_NOT_FOUND, "bad-target", "%s is counted only on the CPUs %s, and none of these is both "
                        "online and requested", g->event->spec.name, g->cpus);
        return note_item(refuse(e, REFUSED_NOT_FOUND, "bad-target", "none of the CPUs %s is online", g->event->spec.cpus),
                           "cpus", 0, e);
}

int events_find_slots(const Events *s, const Registration *g, uint32_t **ret_slots, size_t *ret_n,
                      Explanation *e) {
        _cleanup_free_ uint32_t *slots = calloc(s->readers->n_cpus, sizeof(*slots)), *wanted = NULL, *able = NULL;
        size_t n = 0, n_wanted = 0, n_able = 0;
        const char *cpus = g->event->spec.cpus;
        int r;

        if (!slots)
                return error_origin(-ENOMEM);
        r = parse_cpus(cpus, &wanted, &n_wanted, e);
        if (r == 0)
                r = parse_cpus(g->cpus, &able, &n_able, e);
        if (r != 0)
                return r;
        for (uint32_t slot = 0; slot < s->readers->n_cpus; slot++)
                if (s->readers->online[slot] && list_has(wanted, n_wanted, cpus, s->readers->cpus[slot]) &&
                    list_has(able, n_able, g->cpus, s->readers->cpus[slot]))
                        slots[n++] = slot;
        if (n == 0 && !g->is_registered) /* of an event that is there, all may be offline */
                return refuse_slots(g, e);
        *ret_slots = TAKE_PTR(slots);
        *ret_n = n;
        return 0;
}
