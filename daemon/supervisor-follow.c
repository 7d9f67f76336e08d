/*
 * Cgroups that come and go under a glob, a container's id or a unit's name. After each word of inotify what the names mean
 * is looked up anew and compared with what is open: the words only say when to look.
 *
 * What a cgroup does between its making and our opening it is not seen: nobody can open what is not there yet.
 */
#include "daemon/supervisor.h"

#include <string.h>

#include "daemon/base/log.h"

static int watch_names(Supervisor *s, CgroupNaming naming, const Strings *names, Explanation *e) {
        int r = 0;

        for (size_t i = 0; i < names->n && r == 0; i++)
                r = cgroup_watch_add(s->cgroup_watch, naming, names->items[i], e);
        return r;
}

static int watch_spec(Supervisor *s, const EventSpec *spec, Explanation *e) {
        int r = watch_names(s, CGROUP_BY_PATH, &spec->cgroups, e);

        if (r == 0)
                r = watch_names(s, CGROUP_BY_CONTAINER, &spec->containers, e);
        return r == 0 ? watch_names(s, CGROUP_BY_UNIT, &spec->units, e) : r;
}

typedef struct Leaving {
        const Registration *registration;
        const Whoms *now;
} Leaving;

static bool has_left(const Registration *g, const Stream *stream, const void *userdata) {
        const Leaving *l = userdata;

        if (g != l->registration || !stream->is_cgroup)
                return false;
        for (size_t i = 0; i < l->now->n; i++)
                if (l->now->list[i].id == stream->whom)
                        return false;
        return true;
}

static bool is_open(const Registration *g, uint64_t whom) {
        for (size_t i = 0; i < g->opened.n; i++)
                if (g->opened.streams[i].whom == whom)
                        return true;
        return false;
}

/* Those of `now` that are not open yet; borrows its fds. */
static int find_arrived(const Registration *g, const Whoms *now, Whoms *ret) {
        *ret = WHOMS_NULL;
        ret->list = calloc(now->n + 1, sizeof(*ret->list));
        if (!ret->list)
                return -ENOMEM;
        for (size_t i = 0; i < now->n; i++)
                if (!is_open(g, now->list[i].id))
                        ret->list[ret->n++] = now->list[i];
        return 0;
}

static int follow_event(Supervisor *s, Registration *g, Explanation *e) {
        _cleanup_(whoms_deinit) Whoms now = WHOMS_NULL, arrived = WHOMS_NULL;
        _cleanup_free_ uint32_t *slots = NULL;
        Opened more = OPENED_NULL;
        size_t n_slots = 0;
        int r;

        r = watch_spec(s, &g->event->spec, e);
        if (r == 0)
                r = supervisor_find_whoms(s, &g->event->spec, &now, e);
        if (r == 0)
                r = supervisor_retract(s, has_left, &(Leaving){ g, &now });
        if (r == 0)
                r = find_arrived(g, &now, &arrived);
        if (r != 0 || arrived.n == 0)
                return r;
        r = supervisor_find_slots(s, g, &slots, &n_slots, e);
        if (r == 0)
                r = supervisor_open_at(s, g, g->event->spec.filter, &arrived, slots, n_slots, &more, e);
        if (r == 0 && more.n > 0)
                r = supervisor_extend(s, g, &more, e);
        opened_close(s, &more);
        return r;
}

static int on_cgroups(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Supervisor *s = userdata;
        bool changed = false;
        int r = cgroup_watch_dispatch(s->cgroup_watch, &changed);

        for (Registration *g = s->registrations; g && r >= 0 && changed; g = g->next) {
                Explanation e = EXPLANATION_NULL;

                if (!g->is_followed)
                        continue;
                r = follow_event(s, g, &e);
                if (r > 0)
                        log_print(LOG_WARNING, "%s does not follow its cgroups: %s", g->event->spec.name, e.text);
        }
        return r < 0 ? r : 0;
}

static int start_watch(Supervisor *s, Explanation *e) {
        int r;

        if (s->cgroup_watch)
                return 0;
        r = s->cgroups.path ? 0 : cgroup_find_hierarchy("", &s->cgroups, e);
        if (r == 0)
                r = cgroup_watch_open(&s->cgroups, &s->cgroup_watch, e);
        if (r != 0)
                return r;
        r = sd_event_add_io(s->event, &s->cgroup_source, cgroup_watch_fd(s->cgroup_watch), EPOLLIN, on_cgroups, s);
        if (r >= 0)
                r = sd_event_source_set_exit_on_failure(s->cgroup_source, true);
        return r < 0 ? r : 0;
}

/* What came between the opening and the first watch is found by looking once more. */
int supervisor_follow_cgroups(Supervisor *s, Registration *list, Explanation *e) {
        int r = 0;

        for (Registration *g = list; g && r == 0; g = g->next) {
                if (!g->is_followed)
                        continue;
                r = start_watch(s, e);
                if (r == 0)
                        r = follow_event(s, g, e);
        }
        return r;
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

void supervisor_unfollow_cgroups(Supervisor *s) {
        s->cgroup_source = sd_event_source_disable_unref(s->cgroup_source);
        s->cgroup_watch = cgroup_watch_close(s->cgroup_watch);
}

void supervisor_unfollow_event(Supervisor *s, const Registration *g) {
        static const CgroupNaming namings[] = { CGROUP_BY_PATH, CGROUP_BY_CONTAINER, CGROUP_BY_UNIT };
        bool any = false;

        for (const Registration *o = s->registrations; o && !any; o = o->next)
                any = o != g && o->is_followed;
        if (!any)
                supervisor_unfollow_cgroups(s);
        for (size_t k = 0; s->cgroup_watch && g->is_followed && k < ARRAY_SIZE(namings); k++) {
                const Strings *names = names_of(&g->event->spec, namings[k]);

                for (size_t i = 0; i < names->n; i++) {
                        bool wanted = false;

                        for (const Registration *o = s->registrations; o && !wanted; o = o->next)
                                wanted = o != g && o->is_followed &&
                                         has_text(names_of(&o->event->spec, namings[k]), names->items[i]);
                        if (!wanted)
                                cgroup_watch_remove(s->cgroup_watch, namings[k], names->items[i]);
                }
        }
}
