/* The list is what is walked; both indexes know the same registrations. */
#include "daemon/supervisor/events/registered.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/readers/switch.h"

static uint64_t key_of(const Registration *g) {
        return index_key_of_name(g->event->spec.name);
}

Registration *names_find(const Index *names, const char *name) {
        const uint64_t key = index_key_of_name(name);
        Registration *g;
        size_t at = 0;

        while ((g = index_next(names, key, &at)))
                if (strcmp(g->event->spec.name, name) == 0)
                        return g;
        return NULL;
}

int names_add_list(Index *names, Registration *list) {
        size_t n = 0;
        int r;

        for (const Registration *g = list; g; g = g->next)
                n++;
        r = index_reserve(names, n);
        if (r < 0)
                return r;
        for (Registration *g = list; g; g = g->next)
                index_add(names, key_of(g), g);
        return 0;
}

Registration *events_find(const Events *s, const char *name) {
        return names_find(&s->registered_names, name);
}

Registration *events_find_id(const Events *s, uint32_t id) {
        size_t at = 0;

        return index_next(&s->registered_ids, index_key_of_number(id), &at); /* each has its own */
}

int events_link(Events *s, Registration *list) {
        Registration *last = s->last_registration;
        size_t n = 0;
        int r;

        thread_assert(THREAD_MAIN);
        for (const Registration *g = list; g; g = g->next)
                n++;
        r = index_reserve(&s->registered_ids, n);
        if (r == 0)
                r = names_add_list(&s->registered_names, list);
        if (r < 0)
                return r;
        *(last ? &last->next : &s->registrations) = list;
        for (Registration *g = list; g; last = g, g = g->next) {
                g->previous = last;
                g->is_registered = g->was_registered = true;
                g->position = ++s->last_position;
                index_add(&s->registered_ids, index_key_of_number(g->event->id), g);
        }
        s->last_registration = last;
        s->n_registrations += n;
        return 0;
}

static void forget(Events *s, Registration *g) {
        index_remove(&s->registered_ids, index_key_of_number(g->event->id), g);
        index_remove(&s->registered_names, key_of(g), g);
        g->is_registered = false;
        g->previous = NULL;
        s->n_registrations--;
}

void events_unlink(Events *s, Registration *g) {
        *(g->previous ? &g->previous->next : &s->registrations) = g->next;
        *(g->next ? &g->next->previous : &s->last_registration) = g->previous;
        forget(s, g);
        g->next = NULL;
}

void events_unlink_last(Events *s, Registration *list) {
        Registration *before = list->previous;

        *(before ? &before->next : &s->registrations) = NULL;
        s->last_registration = before;
        for (Registration *g = list; g; g = g->next)
                forget(s, g);
}

void events_free_registered(Events *s) {
        registrations_free(s, s->registrations);
        s->registrations = s->last_registration = NULL;
        index_deinit(&s->registered_names);
        index_deinit(&s->registered_ids);
}

void events_end_succession(Events *s) {
        for (Registration *g = s->registrations; g; g = g->next)
                event_fds_set_successor(&g->opened, false);
}

/* ---- the end of one ---------------------------------------------------------------------------------------------- */

/* A snapshot that a reader has names its layouts; its probe goes behind its fds. */
static void registration_release(Readers *s, void *object) {
        Registration *r = object;

        closer_remove_probe(s->operations->closer, TAKE_PTR(r->probe)); /* behind its fds */
        if (s->answering.is_abandoned)
                return;
        event_unref(r->event);
        free(r->plan.attrs);
        free(r->plan.config3);
        free(r->layout);
        free(r->pending_layout);
        free(r->cpus);
        free(r->absent);
        free(r->holders);
        free(r);
}

Registration *registration_free(Events *s, Registration *r) {
        uint32_t uid = events_charged_uid(s), own;

        if (!r)
                return NULL;
        if (uid == 0 && r->event && registration_has_uid(r, &own))
                uid = own; /* whoever removes it: who has added it, or held it last, waits until it is closed */
        if (r->free_routes)
                r->free_routes(r);
        if (r->was_registered) {
                event_fds_close_of(s, &r->opened, uid);
                event_fds_close_of(s, &r->pending, uid);
                readers_defer(s->readers, registration_release, r);
        } else {
                event_fds_close_unknown(s, &r->opened, uid);
                registration_release(s->readers, r);
        }
        return NULL;
}

void registrations_free(Events *s, Registration *list) {
        for (Registration *next; list; list = next) {
                next = list->next;
                registration_free(s, list);
        }
}
