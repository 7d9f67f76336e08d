/* Which events a request means, and what its answer calls them. */

#include <string.h>

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/select.h"

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

static int refuse_unknown(const Events *s, const NamePattern *p, Explanation *e) {
        const PendingEvent *pending = p->is_group ? NULL : events_find_pending(s, p->text);
        Nearest near = NEAREST_NULL;

        for (const Registration *r = s->registrations; r; r = r->next)
                nearest_add(&near, p->text, p->is_group ? event_spec_group(&r->event->spec) : r->event->spec.name);
        if (pending)
                return refuse(e, REFUSED_NOT_FOUND, "pending", "%s is not running: it is pending, because it cannot be opened "
                        "now: %s", p->text, pending->why);
        if (p->is_group)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-group",
                              "no running event is in a group called %s: `perfctl list` shows them%s", p->text, HINT(&near));
        return refuse(e, REFUSED_NOT_FOUND, "unknown-event",
                      *p->text ? "no running event is called %s: `perfctl list` shows them%s" : "an event's name cannot be empty",
                      p->text, HINT(&near));
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

/* What an exact one means; NULL: there is none. */
static Registration *find_exact(const Events *s, const NamePattern *p) {
        Registration *g = p->id != 0 ? events_find_id(s, p->id) : NULL;

        return g ? g : events_find(s, p->text);
}

/* Whether it selects something, and what of that is not selected yet. */
static int select_one(const Events *s, const NamePattern *p, bool waiting_too, Registration **selected, size_t *n,
                      bool *ret_any, Explanation *e) {
        int r = 0;

        *ret_any = false;
        if (name_pattern_is_exact(p)) {
                Registration *g = find_exact(s, p);

                *n = add_once(selected, *n, g);
                *ret_any = g;
        }
        for (Registration *g = s->registrations; g && r == 0 && !name_pattern_is_exact(p); g = g->next) {
                r = checkpoint(e);
                if (r == 0 && name_pattern_selects(p, g->event)) {
                        *n = add_once(selected, *n, g);
                        *ret_any = true;
                }
        }
        for (const PendingEvent *w = s->pending.first; w && !*ret_any && waiting_too; w = w->next)
                *ret_any = name_pattern_selects_pending(p, w);
        return r;
}

static int select_running(const Events *s, const NamePatterns *patterns, bool waiting_too, Registration ***ret,
                          size_t *ret_n, Explanation *e) {
        _cleanup_free_ Registration **selected = calloc(s->n_registrations + 1, sizeof(*selected));
        size_t n_selected = 0;
        int r = 0;

        if (!selected)
                return error_origin(-ENOMEM);
        if (patterns->n == 0)
                return refuse(e, REFUSED_INVALID, "bad-request", "no event is named");
        for (size_t i = 0; i < patterns->n && r == 0; i++) {
                bool any;

                r = select_one(s, &patterns->items[i], waiting_too, selected, &n_selected, &any, e);
                if (r == 0 && !any)
                        r = refuse_unknown(s, &patterns->items[i], e);
        }
        for (size_t i = 0; i < n_selected; i++)
                selected[i]->is_selected = false;
        if (r != 0)
                return r;
        qsort(selected, n_selected, sizeof(*selected), compare_positions);
        *ret = TAKE_PTR(selected);
        *ret_n = n_selected;
        return 0;
}

int events_cut_scope(Registration *const *list, size_t n, CutScope **ret) {
        CutScope *c = cut_scope_new(n);

        if (!c)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                cut_scope_add(c, list[i]->event->id);
        cut_scope_finish(c);
        *ret = c;
        return 0;
}

int events_select(const Events *s, char *const *names, size_t n, Registration ***ret, size_t *ret_n,
                  Explanation *e) {
        _cleanup_(name_patterns_deinit) NamePatterns patterns = NAME_PATTERNS_NULL;
        int r = name_patterns_init(&patterns, names, n, e);

        return r == 0 ? select_running(s, &patterns, false, ret, ret_n, e) : r;
}

static int add_waiting(const Events *s, const NamePatterns *patterns, EventRefs *refs) {
        int r = 0;

        for (const PendingEvent *w = s->pending.first; w && r == 0; w = w->next) {
                bool selected = false;

                for (size_t i = 0; i < patterns->n && !selected; i++)
                        selected = name_pattern_selects_pending(&patterns->items[i], w);
                r = selected ? event_refs_add(refs, 0, w->spec->name) : 0;
        }
        return r;
}

int events_select_with_refs(const Events *s, char *const *names, size_t n, bool waiting_too, Registration ***ret,
                            size_t *ret_n, EventRefs *ret_refs, Explanation *e) {
        _cleanup_(name_patterns_deinit) NamePatterns patterns = NAME_PATTERNS_NULL;
        _cleanup_free_ Registration **selected = NULL;
        EventRefs refs = { .n = 0 };
        size_t n_selected = 0;
        int r = name_patterns_init(&patterns, names, n, e);

        if (r == 0)
                r = select_running(s, &patterns, waiting_too, &selected, &n_selected, e);

        for (size_t i = 0; r == 0 && i < n_selected; i++)
                r = event_refs_add(&refs, selected[i]->event->id, selected[i]->event->spec.name);
        if (r == 0 && waiting_too)
                r = add_waiting(s, &patterns, &refs);
        if (r != 0) {
                event_refs_deinit(&refs);
                return r;
        }
        *ret = TAKE_PTR(selected);
        *ret_n = n_selected;
        *ret_refs = refs;
        return 0;
}
