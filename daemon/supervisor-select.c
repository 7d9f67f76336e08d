/* Which events a request means, and what its answer calls them. */
#include "daemon/supervisor.h"

#include <fnmatch.h>
#include <string.h>

#include "config/words.h"
#include "daemon/supervisor-kept.h"
#include "daemon/supervisor-registered.h"

void event_refs_deinit(EventRefs *r) {
        for (size_t i = 0; i < r->n; i++)
                free(r->refs[i].name);
        free(r->refs);
        *r = (EventRefs){ .n = 0 };
}

int event_refs_add(EventRefs *r, uint32_t id, const char *name) {
        EventRef *more = reallocarray(r->refs, r->n + 1, sizeof(*more));

        if (!more)
                return error_origin(-ENOMEM);
        r->refs = more;
        more[r->n] = (EventRef){ .id = id, .name = strdup(name) };
        if (!more[r->n].name)
                return error_origin(-ENOMEM);
        r->n++;
        return 0;
}

bool name_selects(const char *pattern, const Event *event) {
        if (pattern[0] == '@')
                return fnmatch(pattern + 1, event_spec_group(&event->spec), 0) == 0;
        if (pattern[0] == '#') {
                char *end;
                unsigned long id = strtoul(pattern + 1, &end, 10);

                return !*end && end != pattern + 1 && id == event->id;
        }
        return strcmp(pattern, event->spec.name) == 0 || fnmatch(pattern, event->spec.name, 0) == 0;
}

static int refuse_unknown(const Supervisor *s, const char *name, Explanation *e) {
        const PendingEvent *pending = supervisor_find_pending(s, name);
        Nearest near = NEAREST_NULL;

        for (const Registration *r = s->registrations; r; r = r->next)
                nearest_add(&near, name[0] == '@' ? name + 1 : name,
                            name[0] == '@' ? event_spec_group(&r->event->spec) : r->event->spec.name);
        if (pending)
                return refuse(e, REFUSED_NOT_FOUND, "pending", "%s does not run: it is pending, because it can not be opened "
                              "now: %s", name, pending->why);
        if (name[0] == '@')
                return refuse(e, REFUSED_NOT_FOUND, "unknown-group",
                              "no running event is in a group called %s: `perfctl list` shows them%s", name + 1, HINT(&near));
        return refuse(e, REFUSED_NOT_FOUND, "unknown-event",
                      *name ? "no running event is called %s: `perfctl list` shows them%s" : "an empty name is no event's", name,
                      HINT(&near));
}

/* A name or "#ID", which mean one event at most and are looked up; else it is a pattern, for which all are looked at. */
static bool is_exact(const char *name) {
        return name[0] != '@' && !name[strcspn(name, "*?[\\")];
}

/* What a name that is_exact() means; NULL: there is none. */
static Registration *find_exact(const Supervisor *s, const char *name) {
        Registration *g;
        char *end;

        if (name[0] != '#')
                return supervisor_find(s, name);
        g = supervisor_find_id(s, (uint32_t)strtoul(name + 1, &end, 10));
        return g && name_selects(name, g->event) ? g : NULL;
}

static bool selects_any(const Supervisor *s, const char *name, bool waiting_too) {
        bool any = is_exact(name) && find_exact(s, name);

        for (const Registration *r = s->registrations; r && !any && !is_exact(name); r = r->next)
                any = name_selects(name, r->event);
        for (const PendingEvent *w = s->pending.first; w && !any && waiting_too; w = w->next)
                any = pending_is_selected(w, name);
        return any;
}

static int compare_positions(const void *a, const void *b) {
        const Registration *const *x = a, *const *y = b;

        return ((*x)->position > (*y)->position) - ((*x)->position < (*y)->position);
}

/* NULL: a name of what only waits. */
static size_t add_once(Registration **list, size_t n, Registration *g) {
        if (!g || g->is_selected)
                return n;
        g->is_selected = true;
        list[n] = g;
        return n + 1;
}

static int select_running(const Supervisor *s, char *const *names, size_t n, bool waiting_too, Registration ***ret,
                          size_t *ret_n, Explanation *e) {
        _cleanup_free_ Registration **selected = calloc(s->n_registrations + 1, sizeof(*selected));
        _cleanup_free_ const char **patterns = NULL;
        size_t n_selected = 0, n_patterns = 0;

        if (!selected)
                return error_origin(-ENOMEM);
        if (n == 0)
                return refuse(e, REFUSED_INVALID, "bad-request", "no event is named");
        for (size_t i = 0; i < n; i++)
                if (!selects_any(s, names[i], waiting_too))
                        return refuse_unknown(s, names[i], e);
        patterns = calloc(n, sizeof(*patterns));
        if (!patterns)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                if (!is_exact(names[i]))
                        patterns[n_patterns++] = names[i];
                else
                        n_selected = add_once(selected, n_selected, find_exact(s, names[i]));
        for (Registration *r = s->registrations; r && n_patterns > 0; r = r->next)
                for (size_t i = 0; i < n_patterns && !r->is_selected; i++)
                        if (name_selects(patterns[i], r->event))
                                n_selected = add_once(selected, n_selected, r);
        for (size_t i = 0; i < n_selected; i++)
                selected[i]->is_selected = false;
        qsort(selected, n_selected, sizeof(*selected), compare_positions);
        *ret = TAKE_PTR(selected);
        *ret_n = n_selected;
        return 0;
}

int supervisor_select(const Supervisor *s, char *const *names, size_t n, Registration ***ret, size_t *ret_n,
                      Explanation *e) {
        return select_running(s, names, n, false, ret, ret_n, e);
}

static int add_waiting(const Supervisor *s, char *const *names, size_t n, EventRefs *refs) {
        int r = 0;

        for (const PendingEvent *w = s->pending.first; w && r == 0; w = w->next) {
                bool selected = false;

                for (size_t i = 0; i < n && !selected; i++)
                        selected = pending_is_selected(w, names[i]);
                r = selected ? event_refs_add(refs, 0, w->spec->name) : 0;
        }
        return r;
}

int supervisor_select_with_refs(const Supervisor *s, char *const *names, size_t n, bool waiting_too, Registration ***ret,
                                size_t *ret_n, EventRefs *ret_refs, Explanation *e) {
        _cleanup_free_ Registration **selected = NULL;
        EventRefs refs = { .n = 0 };
        size_t n_selected;
        int r = select_running(s, names, n, waiting_too, &selected, &n_selected, e);

        for (size_t i = 0; r == 0 && i < n_selected; i++)
                r = event_refs_add(&refs, selected[i]->event->id, selected[i]->event->spec.name);
        if (r == 0 && waiting_too)
                r = add_waiting(s, names, n, &refs);
        if (r != 0) {
                event_refs_deinit(&refs);
                return r;
        }
        *ret = TAKE_PTR(selected);
        *ret_n = n_selected;
        *ret_refs = refs;
        return 0;
}
