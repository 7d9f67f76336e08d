/*
 * Cgroups that come and go under a glob, a container's id or a unit's name. After each word of inotify what the names mean
 * is looked up again and compared with what is open: the words only say when to look.
 *
 * What a cgroup does between its making and our opening it is not seen: nobody can open what is not there yet.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/extend.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/targets.h"

static int watch_names(Changes *s, CgroupNaming naming, const Strings *names, Explanation *e) {
        int r = 0;

        for (size_t i = 0; i < names->n && r == 0; i++)
                r = cgroup_watch_add(s->cgroup_watch, naming, names->items[i], e);
        return r;
}

static int watch_spec(Changes *s, const EventSpec *spec, Explanation *e) {
        int r = watch_names(s, CGROUP_BY_PATH, &spec->cgroups, e);

        if (r == 0)
                r = watch_names(s, CGROUP_BY_CONTAINER, &spec->containers, e);
        return r == 0 ? watch_names(s, CGROUP_BY_UNIT, &spec->units, e) : r;
}

/* What the names of a target mean now: looked up once for all events that have it. */
typedef struct TargetLookup {
        const EventSpec *spec;
        TargetSet targets;
} TargetLookup;

typedef struct Following {
        TargetLookup *lookups;
        size_t n_lookups;
        FdDelta *list; /* events that were looked at, with what has come to them */
        size_t n;
} Following;

static void following_deinit(Changes *s, Following *f) {
        for (size_t i = 0; i < f->n_lookups; i++)
                target_set_deinit(&f->lookups[i].targets);
        fd_deltas_deinit(s, f->list, f->n);
        free(f->lookups);
        free(f->list);
}

static int look_up_target(Changes *s, Following *f, const Registration *g, const TargetSet **ret, Explanation *e) {
        const EventSpec *spec = &g->event->spec;
        TargetLookup *lookup = &f->lookups[f->n_lookups];
        int r;

        for (size_t i = 0; i < f->n_lookups; i++)
                if (event_spec_same_target(f->lookups[i].spec, spec)) {
                        *ret = &f->lookups[i].targets;
                        return 0;
                }
        r = watch_spec(s, spec, e);
        if (r == 0)
                r = events_find_targets(s->events, g, &lookup->targets, e);
        if (r != 0)
                return r;
        lookup->spec = spec;
        f->n_lookups++;
        *ret = &lookup->targets;
        return 0;
}

static int compare_ids(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* Those of `now` that are not open yet; borrows its fds. */
static int find_arrived(const Registration *g, const TargetSet *now, TargetSet *ret) {
        _cleanup_free_ uint64_t *open = calloc(g->opened.n + 1, sizeof(*open));

        *ret = TARGET_SET_NULL;
        ret->list = calloc(now->n + 1, sizeof(*ret->list));
        if (!open || !ret->list)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < g->opened.n; i++)
                open[i] = g->opened.fds[i].target_id;
        qsort(open, g->opened.n, sizeof(*open), compare_ids);
        for (size_t i = 0; i < now->n; i++)
                if (!bsearch(&now->list[i].id, open, g->opened.n, sizeof(*open), compare_ids))
                        ret->list[ret->n++] = now->list[i];
        return 0;
}

/* For people: which of its names have no cgroup now. */
static int set_absent(Registration *g, const TargetSet *now) {
        static const char *const kinds[] = { [CGROUP_BY_PATH] = "cgroup", [CGROUP_BY_CONTAINER] = "container",
                                             [CGROUP_BY_UNIT] = "unit" };
        static const char *const fates[] = { [CGROUP_FATE_UNKNOWN] = "", [CGROUP_FATE_STOPPED] = " (it is stopped)",
                                             [CGROUP_FATE_GONE] = ": it has been removed for good" };
        static const char *const hopes[] = { [CGROUP_FATE_UNKNOWN] = "it is observed as soon as it exists",
                                             [CGROUP_FATE_STOPPED] = "it is observed as soon as it is started",
                                             [CGROUP_FATE_GONE] = "no runtime knows it any longer, and a new container has "
                                                     "another id; use the container's name to follow it when it is recreated" };
        char *text = NULL;

        if (now->n_absent > 1
                    ? asprintf(&text, "there is no %s %s now%s, and %zu more do not exist", kinds[now->absent_by], now->absent,
                               fates[now->fate], now->n_absent - 1) < 0
                    : now->n_absent > 0 && asprintf(&text, "there is no %s %s now%s", kinds[now->absent_by], now->absent,
                                                    fates[now->fate]) < 0)
                return error_origin(-ENOMEM);
        if (text && (!g->absent || strcmp(text, g->absent) != 0))
                log_print_with(LOG_NOTICE, MESSAGE_TARGET_ABSENT, LOG_FIELDS({ "EVENT", g->event->spec.name }),
                               "%s: %s; %s", g->event->spec.name, text, hopes[now->fate]);
        else if (!text && g->absent)
                log_print_with(LOG_NOTICE, MESSAGE_TARGET_PRESENT, LOG_FIELDS({ "EVENT", g->event->spec.name }),
                               "%s again observes everything that it names", g->event->spec.name);
        free(g->absent);
        g->absent = text;
        return 0;
}

/* Looks, and opens what has come, disabled. */
static int follow_event(Changes *s, Following *f, Registration *g, Explanation *e) {
        _cleanup_(target_set_deinit) TargetSet arrived = TARGET_SET_NULL;
        _cleanup_free_ uint32_t *slots = NULL;
        const TargetSet *now = NULL;
        size_t n_slots = 0;
        int r;

        r = look_up_target(s, f, g, &now, e);
        if (r != 0)
                return r;
        f->list[f->n++].registration = g;
        r = set_absent(g, now);
        if (r < 0)
                return r;
        for (size_t i = 0; i < g->opened.n; i++)
                g->opened.fds[i].leaves = g->opened.fds[i].is_cgroup && !target_set_has(now, g->opened.fds[i].target_id);
        r = find_arrived(g, now, &arrived);
        if (r != 0 || arrived.n == 0)
                return r;
        r = events_find_slots(s->events, g, &slots, &n_slots, e);
        if (r == 0)
                r = events_check_fd_quota(s->events, g, arrived.n * n_slots * g->plan.n_attrs, e);
        if (r == 0)
                r = events_open_at(s->events, g, g->event->spec.filter, &arrived, slots, n_slots, &f->list[f->n - 1].more, e);
        return r;
}

static void say_refused(const Changes *s, const Registration *g, const Explanation *e, const void *userdata) {
        log_print_with(LOG_WARNING, MESSAGE_TARGET_ABSENT, LOG_FIELDS({ "EVENT", g->event->spec.name }, { "REASON", e->reason }),
                       "%s does not follow its cgroups: %s", g->event->spec.name, e->text);
}

/* Those of the list that follow cgroups. Refused: nothing has changed, or with `each` only the others have. */
static int follow_events(Changes *s, Registration *list, bool each, Explanation *e) {
        Following f = { .lookups = calloc(s->events->n_registrations + 1, sizeof(*f.lookups)),
                        .list = calloc(s->events->n_registrations + 1, sizeof(*f.list)) };
        int r = f.lookups && f.list ? 0 : error_origin(-ENOMEM);

        for (Registration *g = list; g && r == 0; g = g->next) {
                Explanation why = EXPLANATION_NULL;

                if (!g->is_dynamic)
                        continue;
                r = follow_event(s, &f, g, &why);
                if (r > 0 && each) {
                        say_refused(s, g, &why, NULL);
                        r = 0;
                } else if (r > 0 && e)
                        *e = why;
        }
        if (r == 0)
                r = each ? changes_extend_each(s, f.list, f.n, say_refused, NULL) : changes_extend(s, f.list, f.n, e);
        if (r == 0)
                r = changes_drop_leaving(s); /* of events that nothing has come to, or that were refused it */
        following_deinit(s, &f);
        return r;
}

int changes_on_cgroups(void *userdata) {
        Changes *s = userdata;
        bool changed = false;
        int r = cgroup_watch_dispatch(s->cgroup_watch, &changed);

        return r == 0 && changed ? follow_events(s, s->events->registrations, true, NULL) : r;
}

static int start_watch(Changes *s, Explanation *e) {
        int r;

        if (s->cgroup_watch)
                return 0;
        r = s->host->cgroups.path ? 0 : cgroup_find_hierarchy("", &s->host->cgroups, e);
        if (r == 0)
                r = cgroup_watch_open(&s->host->cgroups, &s->cgroup_watch, e);
        if (r != 0)
                return r;
        r = operations_listen(s->operations, CHANGE_CGROUPS, cgroup_watch_fd(s->cgroup_watch));
        if (r < 0) { /* epoll_ctl(2): ENOMEM, or ENOSPC by fs.epoll.max_user_watches */
                s->cgroup_watch = cgroup_watch_close(s->cgroup_watch);
                return refuse_kernel_memory(e, "to watch for cgroups that appear or disappear");
        }
        return 0;
}

/* What came between the opening and the first watch is found by looking once more. */
int changes_follow_cgroups(Changes *s, Registration *list, Explanation *e) {
        bool any = false;
        int r;

        for (const Registration *g = list; g && !any; g = g->next)
                any = g->is_dynamic;
        if (!any)
                return 0;
        r = start_watch(s, e);
        return r == 0 ? follow_events(s, list, false, e) : r;
}

static bool has_text(const Strings *list, const char *text) {
        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->items[i], text) == 0)
                        return true;
        return false;
}

static const Strings *names_of(const EventSpec *spec, CgroupNaming naming) {
        return naming == CGROUP_BY_PATH ? &spec->cgroups : naming == CGROUP_BY_CONTAINER ? &spec->containers : &spec->units;
}

void changes_unfollow_cgroups(Changes *s) {
        operations_unlisten(s->operations, CHANGE_CGROUPS);
        s->cgroup_watch = cgroup_watch_close(s->cgroup_watch);
}

void changes_unfollow_event(Changes *s, const Registration *g) {
        static const CgroupNaming namings[] = { CGROUP_BY_PATH, CGROUP_BY_CONTAINER, CGROUP_BY_UNIT };
        bool any = false;

        if (!g->is_dynamic)
                return;
        for (const Registration *o = s->events->registrations; o && !any; o = o->next)
                any = o != g && o->is_dynamic;
        if (!any)
                changes_unfollow_cgroups(s);
        for (size_t k = 0; s->cgroup_watch && g->is_dynamic && k < ARRAY_SIZE(namings); k++) {
                const Strings *names = names_of(&g->event->spec, namings[k]);

                for (size_t i = 0; i < names->n; i++) {
                        bool wanted = false;

                        for (const Registration *o = s->events->registrations; o && !wanted; o = o->next)
                                wanted = o != g && o->is_dynamic &&
                                         has_text(names_of(&o->event->spec, namings[k]), names->items[i]);
                        if (!wanted)
                                cgroup_watch_remove(s->cgroup_watch, namings[k], names->items[i]);
                }
        }
}
