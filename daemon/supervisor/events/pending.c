/* The list alone; supervisor/configuration/retry.c tries them again. */
#include "daemon/supervisor/events/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/events/events.h"

static void pending_free(PendingEvent *p) {
        perfd__v1__event_spec__free_unpacked(p->spec, NULL);
        free(p->place);
        free(p->why);
        free(p);
}

void pending_free_list(PendingEvent *list) {
        for (PendingEvent *next; list; list = next) {
                next = list->next;
                pending_free(list);
        }
}

static int fill(PendingEvent *p, const ConfigPlace *place, const Explanation *why) {
        p->is_configured = place != NULL;
        p->reason = why ? why->reason : NULL;
        p->why = strdup(why ? why->text : "");
        if (!place || !place->path)
                p->place = strdup("");
        else if (asprintf(&p->place, "%s:%u:%u: ", place->path, place->line, place->column) < 0)
                p->place = NULL;
        return p->why && p->place ? 0 : error_origin(-ENOMEM);
}

int pending_new(Perfd__V1__EventSpec *spec, const ConfigPlace *place, const Explanation *why, PendingEvent **ret) {
        PendingEvent *p = calloc(1, sizeof(*p));
        int r;

        if (!p) {
                perfd__v1__event_spec__free_unpacked(spec, NULL);
                return error_origin(-ENOMEM);
        }
        p->spec = spec;
        r = fill(p, place, why);
        if (r < 0) {
                pending_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

void pending_log(const PendingEvent *p) {
        log_print_with(LOG_WARNING, MESSAGE_EVENT_PENDING, LOG_FIELDS({ "EVENT", p->spec->name }, { "REASON", p->reason }),
                       "%s%s is pending, and is opened as soon as possible: %s", p->place, p->spec->name, p->why);
}

size_t events_count_pending(const Events *s) {
        size_t n = 0;

        for (const PendingEvent *p = s->pending.first; p; p = p->next)
                n++;
        return n;
}

const PendingEvent *events_find_pending(const Events *s, const char *name) {
        const PendingEvent *p = s->pending.first;

        while (p && strcmp(p->spec->name, name) != 0)
                p = p->next;
        return p;
}

void pending_remove(PendingEvent **at, PendingEvent *removed) {
        while (*at != removed)
                at = &(*at)->next;
        *at = removed->next;
        pending_free(removed);
}

void events_set_pending(Events *s, PendingEvent *list, bool is_configured) {
        PendingEvent **end = &s->pending.first;

        while (*end)
                if ((*end)->is_configured == is_configured)
                        pending_remove(end, *end);
                else
                        end = &(*end)->next;
        *end = list;
}
