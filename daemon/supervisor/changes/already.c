/*
 * What somebody asks to be added may run already: a glob's events, which cannot have another name, and a temporary event that is to
 * be shared. It is told as if it had been added, in its place of the request; and if it is temporary, who asks becomes a holder of
 * it, so that it lives as long as what is added. The decision to doubt is what is equal: the spec says what was asked for, but of
 * tasks and cgroups it does not say who was found then, so only events of whole CPUs are shared.
 */
#include "daemon/supervisor/changes/already.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/printable.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/registered.h"

/* In whatever group it is, if none was asked for. */
static bool is_equal(const Registration *running, const Registration *g) {
        EventSpec there = running->event->spec, wanted = g->event->spec;

        if (!wanted.group)
                there.group = NULL;
        return event_spec_equal(&there, &wanted);
}

/* Nobody holds what a rule grants to another user, or what is not granted at all. */
static bool may_hold(const Registration *running, const Registration *g) {
        const EventSpec *a = &running->event->spec, *b = &g->event->spec;

        return a->is_granted == b->is_granted && (!a->is_granted || (a->uid == b->uid && a->gid == b->gid));
}

/* Of a probe: that of the same file, which may have been written again since. */
static bool has_same_place(const Registration *running, const Registration *g) {
        if (!running->probe || !g->probe)
                return !running->probe && !g->probe;
        return strcmp(probe_text(running->probe), probe_text(g->probe)) == 0;
}

/* Nobody has changed it since it was added, and what it is on does not depend on when that was. */
static bool is_shared(const Registration *running, const Registration *g, const AddOptions *adding) {
        return adding->is_shared && running->is_temporary && running->enabled && !g->event->spec.disabled &&
               event_spec_is_host(&g->event->spec) && has_same_place(running, g);
}

static bool is_of_glob(const Registration *running, const Registration *g, const AddOptions *adding) {
        return g->of_glob && (!running->is_temporary || adding->owner != 0) && (running->is_persistent || !adding->keep);
}

static bool is_there(const Registration *running, const Registration *g, const AddOptions *adding) {
        return is_equal(running, g) && (is_of_glob(running, g, adding) || is_shared(running, g, adding)) &&
               (!running->is_temporary || may_hold(running, g));
}

/* `g` is what was asked for. */
static int take(Events *s, Registration *running, const Registration *g, const AddOptions *adding, Already *a, Explanation *e) {
        const uint32_t uid = g->event->spec.uid;
        AlreadyEvent *more = reallocarray(a->events, a->n + 1, sizeof(*more));
        bool is_new = false;
        int r = 0;

        if (!more)
                return error_origin(-ENOMEM);
        a->events = more;
        if (running->is_temporary)
                r = events_check_share_quota(s, running, uid, e);
        if (r == 0 && running->is_temporary)
                r = holders_add(running, adding->owner, uid, &is_new);
        if (r == 0)
                more[a->n++] = (AlreadyEvent){ .event = running, .asked = g->asked, .is_new_holder = is_new, .is_told = g->of_glob };
        return r;
}

int already_take(Events *s, Registration **list, const AddOptions *adding, Already *a, Explanation *e) {
        Registration **at = list;
        int r = 0;

        while (*at && r == 0) {
                Registration *g = *at, *running = events_find(s, g->event->spec.name);

                if (!running || !is_there(running, g, adding)) {
                        at = &g->next;
                        continue;
                }
                r = take(s, running, g, adding, a, e);
                if (r != 0)
                        break;
                *at = g->next;
                g->next = NULL;
                registrations_free(s, g);
        }
        return r;
}

/* Both are in the order of the request. */
int already_refs(const Already *a, const Registration *list, EventRefs *refs) {
        size_t i = 0;
        int r = 0;

        while (r == 0 && (list || i < a->n)) {
                const bool is_there = i < a->n && (!list || a->events[i].asked <= list->asked);
                const Event *event = is_there ? a->events[i].event->event : list->event;

                r = event_refs_add(refs, event->id, event->spec.name);
                if (is_there)
                        i++;
                else
                        list = list->next;
        }
        return r;
}

void already_undo(Already *a, Operations *o, uint64_t connection) {
        for (size_t i = 0; i < a->n; i++) {
                if (!a->events[i].is_new_holder)
                        continue;
                (void)holders_remove(a->events[i].event, connection);
                if (registration_is_orphan(a->events[i].event)) /* the others have left meanwhile */
                        operations_set_due(o, CHANGE_ORPHANS);
        }
        a->n = 0;
}

void already_deinit(Already *a) {
        free(a->events);
        *a = ALREADY_NULL;
}

void already_note(const Already *a, Explanation *e) {
        const char *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < a->n; i++)
                if (a->events[i].is_told && n++ == 0)
                        first = a->events[i].event->event->spec.name;
        if (n == 0)
                return;
        if (n == 1)
                (void)snprintf(e->text, sizeof(e->text), "%.200s was already there, and stays as it is", first);
        else
                (void)snprintf(e->text, sizeof(e->text), "%.200s and %zu more were already there, and stay as they are", first, n - 1);
        printable_make(e->text, sizeof(e->text)); /* it may be cut in a character */
}
