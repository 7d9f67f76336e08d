/*
 * Changing what is traced while it is traced. One mechanism serves every change, so that none disturbs another event:
 *
 *     open     the new fds, disabled, filtered, in their rings           nobody sees them
 *     publish  every reader knows their stream ids                       still silent
 *     enable   they write; a replacement is on standby and its predecessor active
 *     publish  each reader, at one place of its ring, makes the other active
 *     disable  what is to go; publish without it; close
 *
 * Everything that can be refused happens before the first enable that matters; what was begun is undone in the
 * opposite order.
 */

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/changes/already.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/events/external.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/switch.h"
#include "daemon/supervisor/resolve/external.h"
#include "daemon/supervisor/subscriptions/subscription.h"

/* Who inherits it has to be known when it is enabled again, and is told by births only. */
static bool is_inherited(const EventSpec *spec) {
        return !spec->no_inherit && (spec->n_pids > 0 || spec->n_tids > 0);
}

/* The carriers write side records only while something is traced, or will be by those who are born meanwhile. */
static int changes_update_active(Changes *s, Explanation *e) {
        bool observes = false, has_inherited = false;
        int error;

        for (const Registration *r = s->events->registrations; r; r = r->next) {
                has_inherited |= !r->event->external && is_inherited(&r->event->spec);
                observes |= !r->event->external && r->enabled;
        }
        events_update_window(s->events);
        s->readers->observes = observes || has_inherited;
        s->readers->has_inherited = has_inherited;
        error = readers_update_carriers(s->readers, e);
        return error == 0 && s->readers->wants_tasks ? readers_learn_tasks(s->readers) : error;
}

/* It is the only one of its name. */
static int check_name(const Changes *s, const Index *names, const Registration *g, Explanation *e) {
        const char *name = g->event->spec.name;

        if (events_find(s->events, name))
                return refuse(e, REFUSED_EXISTS, "exists", "an event called %s already exists: %s", name,
                              g->of_glob ? "it is another one than the pattern would add: remove it, or name the others one by one, because the "
                                      "events of a pattern cannot be given names"
                                         : "remove it, or give this one another name");
        return names_find(names, name) == g ? 0 : refuse(e, REFUSED_EXISTS, "exists", "%s is named twice", name);
}

/* The names of what is to be registered, and how much that is. */
static int check_list(const Changes *s, Registration *list, size_t n, Explanation *e) {
        Index names = INDEX_NULL;
        int r = names_add_list(&names, list);

        for (const Registration *g = list; g && r == 0; g = g->next)
                r = check_name(s, &names, g, e);
        index_deinit(&names);
        if (r == 0 && s->events->n_registrations + n > MAX_EVENTS)
                r = refuse(e, REFUSED_EXHAUSTED, "too-many-events", "%zu and %zu more exceed the limit of %d events: remove some",
                           s->events->n_registrations, n, MAX_EVENTS);
        return r;
}

/* Everything named, as a list that is not yet registered; without what is there `already`. */
static int resolve_all(Changes *s, EventSpec *specs, size_t n, const AddOptions *adding, Registration **ret, Already *already,
                       Explanation *e) {
        Registration *list = NULL, **end = &list;
        size_t n_list = 0;
        int r = 0;

        for (size_t i = 0; i < n && r == 0 && n_list <= MAX_EVENTS; i++) {
                r = resolver_resolve(s->resolver, &specs[i], end, e);
                for (; *end; end = &(*end)->next) {
                        (*end)->asked = i;
                        n_list++;
                }
        }
        if (r == 0)
                r = already_take(s->events, &list, adding, already, e);
        if (r == 0)
                r = check_list(s, list, n_list, e);
        if (r != 0) {
                registrations_free(s->events, list);
                return r;
        }
        *ret = list;
        return 0;
}

/* All of them, or none. What `enabled` says of them is the caller's. */
static int list_switch(Changes *s, Registration *const *regs, size_t n, bool on, Explanation *e) {
        _cleanup_free_ PerfFdSet **list = calloc(n + 1, sizeof(*list));

        if (!list)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                list[i] = &regs[i]->opened;
        if (!on)
                return event_fds_disable(s->readers, list, n);
        return event_fds_enable(s->readers, list, n, n == 1 ? regs[0]->event->spec.name : "one of the events", e);
}

/* Takes the list, the last of what is registered, out again; it is disabled. Readers know it, or they do not. */
static int changes_withdraw(Changes *s, Registration *list, bool published) {
        int r = 0;

        events_unlink_last(s->events, list);
        for (Registration *g = list; g; g = g->next) {
                changes_unfollow_event(s, g);
                registration_unroute(g);
        }
        if (published)
                r = readers_publish(s->readers);
        if (r < 0)
                return r;
        for (Registration *g = list; g; g = g->next)
                subscriptions_tell_removed(s->subscriptions, g);
        registrations_free(s->events, list);
        return changes_update_active(s, NULL);
}

/* Those of a new list that are to be on. */
static int switch_list(Changes *s, Registration *list, size_t n, bool on, Explanation *e) {
        _cleanup_free_ Registration **wanted = calloc(n + 1, sizeof(*wanted));
        size_t n_wanted = 0;

        if (!wanted)
                return error_origin(-ENOMEM);
        for (Registration *g = list; g; g = g->next)
                if (g->enabled)
                        wanted[n_wanted++] = g;
        return list_switch(s, wanted, n_wanted, on, e);
}

static int enable_list(Changes *s, Registration *list, size_t n, Explanation *e) {
        int r = changes_update_active(s, e);

        return r == 0 ? switch_list(s, list, n, true, e) : r;
}

/* The readers' timers run only while something is enabled, so that they have to hear of it before. */
static void mark_enabled(Registration *list) {
        for (Registration *r = list; r; r = r->next)
                r->enabled = !r->event->spec.disabled;
}

int changes_unregister(Changes *s, Registration *list, size_t n) {
        int r = switch_list(s, list, n, false, NULL);

        return r < 0 ? r : changes_withdraw(s, list, true);
}

int changes_register(Changes *s, Registration *list, size_t n, Explanation *e) {
        int r = events_link(s->events, list);

        if (r < 0) {
                registrations_free(s->events, list);
                return r;
        }
        for (Registration *g = list; g && r == 0; g = g->next)
                r = subscriptions_route_event(s->subscriptions, g);
        mark_enabled(list);
        if (r == 0)
                r = readers_publish(s->readers);
        if (r != 0) {
                int error = changes_withdraw(s, list, false);

                return error < 0 ? error : r;
        }
        r = enable_list(s, list, n, e);
        if (r == 0)
                r = changes_follow_cgroups(s, list, e);
        if (r != 0) {
                int error = changes_unregister(s, list, n);

                return error < 0 ? error : r;
        }
        return 0;
}

/* A program by way of a process that has its file system: uprobe:/proc/PID/root/PATH, in each member of a group. */
static bool names_root_of_process(const char *event) {
        for (const char *at = event; (at = strstr(at, "/proc/")); at++) {
                int n = 0;

                if ((sscanf(at, "/proc/%*[0-9]/root/%n", &n) == 0 && n > 0) || strncmp(at, "/proc/self/", 11) == 0)
                        return strncmp(at, "/proc/1/", 8) != 0; /* init is always there */
        }
        return false;
}

/* A number that another process may have by then is nothing to keep. */
static int check_keeping(const EventSpec *spec, const AddOptions *adding, Explanation *e) {
        if (adding->keep && names_root_of_process(spec->event))
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: the pid in a /proc/PID/root path can belong to another "
                        "process after a restart: name the file by its path on the host (`podman mount` shows the root of "
                        "podman's containers), or add the probe again when the container runs", spec->name);
        if (!adding->keep || spec->target || (spec->n_pids == 0 && spec->n_tids == 0))
                return 0;
        return refuse(e, REFUSED_INVALID, "bad-target", "%s: a pid or tid can belong to another process after a restart: only "
                "events of the host, of cgroups, containers, units, or of a target of the configuration can be "
                "persistent", spec->name);
}

/* The list moves; refused: it is closed and freed. Persistent ones are in the state file before they are registered. */
static int register_list(Changes *s, Registration *list, size_t n, const AddOptions *adding, Explanation *e) {
        PersistentChange change = { .added = adding->keep && !adding->is_written ? list : NULL };
        int r = persistent_write(s, &change, e);

        if (r != 0) {
                registrations_free(s->events, list);
                return r;
        }
        r = changes_register(s, list, n, e);
        if (r > 0) {
                int restored = persistent_restore(s, &change);

                return restored < 0 ? restored : r;
        }
        if (r == 0)
                persistent_forget_pending(s, &change);
        return r;
}

/* What was resolved is opened, and the connection that it ends with holds it. */
static int open_list(Changes *s, Registration **list, const AddOptions *adding, Explanation *e) {
        bool is_new;
        int r = 0;

        for (Registration *g = *list; g && adding->is_written; g = g->next)
                registration_allow_absence(g);
        if (!adding->is_written) /* a persistent event was within the quota when it was added */
                r = events_check_quota(s->events, *list, e);
        if (r == 0)
                r = events_open_list(s->events, list, e);
        for (Registration *g = *list; g && r == 0; g = g->next) {
                g->is_persistent = adding->keep;
                r = check_keeping(&g->event->spec, adding, e);
                if (r == 0 && adding->owner != 0)
                        r = holders_add(g, adding->owner, g->event->spec.uid, &is_new);
        }
        return r;
}

static int add_list(Changes *s, Registration *list, const AddOptions *adding, const Already *already, EventRefs *refs, Explanation *e) {
        size_t n = 0;
        int r = open_list(s, &list, adding, e);

        if (r == 0)
                r = already_refs(already, list, refs);
        for (const Registration *g = list; g; g = g->next)
                n++;
        if (r != 0)
                registrations_free(s->events, list);
        return r == 0 && list ? register_list(s, list, n, adding, e) : r;
}

int changes_add(Changes *s, EventSpec *specs, size_t n, const AddOptions *adding, EventRefs *ret_refs, Explanation *e) {
        _cleanup_(already_deinit) Already already = ALREADY_NULL;
        EventRefs refs = { .n = 0 };
        Registration *list = NULL;
        int r;

        thread_assert(THREAD_MAIN);
        r = resolve_all(s, specs, n, adding, &list, &already, e);
        if (r == 0)
                r = add_list(s, list, adding, &already, &refs, e);
        if (r != 0) {
                already_undo(&already, s->operations, adding->owner);
                event_refs_deinit(&refs);
                return r;
        }
        *e = EXPLANATION_NULL;
        already_note(&already, e);
        *ret_refs = refs;
        return 0;
}

int changes_remove_selected(Changes *s, Registration *const *selected, size_t n, Explanation *e) {
        _cleanup_(cut_scope_unrefp) CutScope *scope = NULL;
        int r = list_switch(s, selected, n, false, e);

        if (r == 0)
                r = events_cut_scope(selected, n, &scope);
        if (r == 0)
                r = ledger_say_last_losses(s->ledger, selected, n);
        if (r == 0)
                r = readers_cut(s->readers, scope); /* the last one that they are in */
        if (r != 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                selected[i]->enabled = false;
                events_unlink(s->events, selected[i]);
                changes_unfollow_event(s, selected[i]);
                registration_unroute(selected[i]);
        }
        r = changes_update_active(s, e);
        if (r == 0)
                r = readers_publish(s->readers);
        if (r == 0)
                r = ledger_remember_removed(s->ledger, selected, n,
                                            s->subscriptions->subscribers ? s->subscriptions->last_subscriber_id : 0);
        if (r != 0)
                return r < 0 ? r : -EIO;
        for (size_t i = 0; i < n; i++) {
                subscriptions_tell_removed(s->subscriptions, selected[i]);
                ledger_add_removed_losses(s->ledger, selected[i]);
                registration_free(s->events, selected[i]);
        }
        return 0;
}

int changes_remove(Changes *s, char *const *names, size_t n, EventRefs *ret_refs, Explanation *e) {
        _cleanup_(name_patterns_deinit) NamePatterns patterns = NAME_PATTERNS_NULL;
        _cleanup_free_ Registration **selected = NULL;
        EventRefs refs = { .n = 0 };
        PersistentChange change;
        size_t n_selected;
        int r;

        thread_assert(THREAD_MAIN);
        r = name_patterns_init(&patterns, names, n, e);
        if (r == 0)
                r = events_select_with_refs(s->events, names, n, true, &selected, &n_selected, &refs, e);
        if (r != 0)
                return r;
        change = (PersistentChange){ .patterns = patterns, .subjects = selected, .n_subjects = n_selected, .removed = true };
        r = persistent_write(s, &change, e);
        if (r == 0 && n_selected > 0)
                r = changes_remove_selected(s, selected, n_selected, e);
        if (r != 0) {
                event_refs_deinit(&refs);
                return r;
        }
        persistent_forget_pending(s, &(PersistentChange){ .patterns = patterns });
        *ret_refs = refs;
        return 0;
}

void changes_on_connection_gone(void *userdata, uint64_t id) {
        Changes *s = userdata;

        operations_drop(s->operations, id);
        for (Registration *g = s->events->registrations; g; g = g->next)
                if (holders_remove(g, id) && registration_is_orphan(g))
                        operations_set_due(s->operations, CHANGE_ORPHANS);
}

/* Who has asked for them is charged with what readers do for that. ret_n: how many there were. */
static int remove_orphans_of_one(Changes *s, Registration **orphans, size_t *ret_n) {
        uint32_t first = 0, uid = 0;
        uint64_t before;
        size_t n = 0;
        int r;

        for (Registration *g = s->events->registrations; g; g = g->next) {
                if (!registration_is_orphan(g))
                        continue;
                uid = registration_has_uid(g, &uid) ? uid : 0;
                if (n > 0 && uid != first)
                        continue;
                first = uid;
                orphans[n++] = g;
        }
        *ret_n = n;
        if (n == 0)
                return 0;
        before = readers_charge(s->readers, first);
        r = changes_remove_selected(s, orphans, n, NULL);
        (void)readers_charge(s->readers, before);
        return r;
}

int changes_remove_orphans(void *userdata) {
        Changes *s = userdata;
        _cleanup_free_ Registration **orphans = calloc(s->events->n_registrations + 1, sizeof(*orphans));
        size_t n = 0;
        int r;

        if (!orphans)
                return error_origin(-ENOMEM);
        do
                r = remove_orphans_of_one(s, orphans, &n);
        while (r == 0 && n > 0);
        return r;
}

/* What carriers and readers have to know of it. */
static int changes_mark(Changes *s, Registration *const *regs, size_t n, bool on, Explanation *e) {
        int r;

        for (size_t i = 0; i < n; i++)
                regs[i]->enabled = on;
        r = changes_update_active(s, e);
        return r == 0 ? readers_publish(s->readers) : r;
}

/* The carriers are on before the first event is, and off after the last one. */
static int changes_switch(Changes *s, Registration *const *selected, size_t n, bool on, Explanation *e) {
        _cleanup_free_ Registration **changing = calloc(n + 1, sizeof(*changing));
        size_t n_changing = 0;
        int r = 0;

        if (!changing)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                if (selected[i]->enabled != on)
                        changing[n_changing++] = selected[i];
        if (!on)
                r = list_switch(s, changing, n_changing, false, e);
        if (r == 0)
                r = changes_mark(s, changing, n_changing, on, e);
        if (r == 0 && on)
                r = list_switch(s, changing, n_changing, true, e);
        if (r > 0) { /* as before: none of them is on */
                int undone = changes_mark(s, changing, n_changing, false, NULL);

                r = undone < 0 ? undone : r;
        }
        return r;
}

int changes_enable(Changes *s, char *const *names, size_t n, bool on, EventRefs *ret_refs, Explanation *e) {
        _cleanup_free_ Registration **selected = NULL;
        EventRefs refs = { .n = 0 };
        PersistentChange change;
        size_t n_selected;
        int r;

        thread_assert(THREAD_MAIN);
        r = events_select_with_refs(s->events, names, n, false, &selected, &n_selected, &refs, e);
        if (r != 0)
                return r;
        change = (PersistentChange){ .subjects = selected, .n_subjects = n_selected, .enabled = &on };
        r = persistent_write(s, &change, e);
        if (r == 0) {
                r = changes_switch(s, selected, n_selected, on, e);
                if (r > 0) {
                        int restored = persistent_restore(s, &change);

                        r = restored < 0 ? restored : r;
                }
        }
        if (r != 0) {
                event_refs_deinit(&refs);
                return r;
        }
        *ret_refs = refs;
        return 0;
}

int changes_disable_all(Changes *s) {
        _cleanup_free_ Registration **all = calloc(s->events->n_registrations + 1, sizeof(*all));
        size_t n = 0;

        if (!all)
                return error_origin(-ENOMEM);
        for (Registration *r = s->events->registrations; r; r = r->next)
                all[n++] = r;
        return changes_switch(s, all, n, false, NULL);
}
