/*
 * Persistent events outlive the daemon: the state file has them, as one AddRequest, and is written before each change of one of
 * them. So nothing is changed that cannot be stored, and nothing is acknowledged that is not on the disk; a change that is
 * refused after that writes the file as it was.
 *
 * An event of the file that cannot be opened, because its module or target does not exist now, stays there and is pending:
 * supervisor/configuration/retry.c.
 */
#include "daemon/supervisor/changes/persistent.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/kernel/host/state-file.h"
#include "daemon/supervisor/events/specs.h"

/* ---- what is pending ---------------------------------------------------------------------------------------------- */

/* What is removed, and what has the name of a new persistent event. */
static bool change_drops(const PersistentChange *change, const PendingEvent *w) {
        bool dropped = false;

        for (size_t i = 0; i < change->patterns.n && !dropped; i++)
                dropped = name_pattern_selects_pending(&change->patterns.items[i], w);
        for (const Registration *g = change->added; g && !dropped && !w->is_configured; g = g->next)
                dropped = strcmp(w->spec->name, g->event->spec.name) == 0;
        return dropped;
}

void persistent_forget_pending(Changes *s, const PersistentChange *change) {
        for (PendingEvent **p = &s->events->pending.first; *p;) {
                PendingEvent *w = *p;

                if (!change_drops(change, w)) {
                        p = &w->next;
                        continue;
                }
                *p = w->next;
                w->next = NULL;
                pending_free_list(w);
        }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void change_mark(const PersistentChange *change, bool on) {
        for (size_t i = 0; i < change->n_subjects; i++)
                change->subjects[i]->is_selected = on;
}

/* Whether the file is another one afterwards. */
static bool change_alters_file(const Changes *s, const PersistentChange *change) {
        bool alters = change->added != NULL;

        for (size_t i = 0; i < change->n_subjects && !alters; i++)
                alters = change->subjects[i]->is_persistent;
        for (const PendingEvent *w = s->events->pending.first; w && !alters; w = w->next)
                alters = !w->is_configured && change_drops(change, w);
        return alters;
}

/* The event as it is to be found at the next start: of a target, what the configuration says of it then. */
static int put_event(const EventSpec *from, bool enabled, Perfd__V1__AddRequest *q) {
        EventSpec spec = *from;
        int r;

        spec.disabled = !enabled;
        q->events[q->n_events] = NULL;
        r = spec_message_to_keep(&spec, &q->events[q->n_events]);
        q->n_events += q->events[q->n_events] != NULL;
        return r;
}

static int put_events(const Changes *s, const PersistentChange *change, Perfd__V1__AddRequest *q) {
        int r = 0;

        for (const Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                bool changes = g->is_selected;

                if (!g->is_persistent || (changes && change->removed))
                        continue;
                r = put_event(changes && change->spec ? change->spec : &g->event->spec,
                              changes && change->enabled ? *change->enabled : g->enabled, q);
        }
        for (const Registration *g = change->added; g && r == 0; g = g->next)
                r = put_event(&g->event->spec, !g->event->spec.disabled, q);
        return r;
}

static size_t count_events(const Changes *s, const PersistentChange *change) {
        size_t n = s->events->n_registrations + events_count_pending(s->events);

        for (const Registration *g = change->added; g; g = g->next)
                n++;
        return n;
}

/* Pending events are borrowed for the packing: they are behind those that the message owns. */
static int pack_events(const Changes *s, const PersistentChange *change, Perfd__V1__AddRequest *q, uint8_t **ret, size_t *ret_n) {
        size_t n_owned;
        int r;

        q->events = calloc(count_events(s, change) + 1, sizeof(*q->events));
        if (!q->events)
                return error_origin(-ENOMEM);
        change_mark(change, true);
        r = put_events(s, change, q);
        change_mark(change, false);
        if (r < 0)
                return r;
        n_owned = q->n_events;
        for (const PendingEvent *w = s->events->pending.first; w; w = w->next)
                if (!w->is_configured && !change_drops(change, w))
                        q->events[q->n_events++] = w->spec;
        *ret_n = perfd__v1__add_request__get_packed_size(q);
        *ret = malloc(*ret_n + 1);
        if (*ret)
                perfd__v1__add_request__pack(q, *ret);
        q->n_events = n_owned;
        return *ret ? 0 : error_origin(-ENOMEM);
}

static int write_file(Changes *s, const PersistentChange *change, Explanation *e) {
        Perfd__V1__AddRequest *q = malloc(sizeof(*q));
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t n = 0;
        int r;

        if (!q)
                return error_origin(-ENOMEM);
        perfd__v1__add_request__init(q);
        r = pack_events(s, change, q, &bytes, &n);
        perfd__v1__add_request__free_unpacked(q, NULL);
        return r == 0 ? state_file_write(s->state_path, bytes, n, e) : r;
}

int persistent_write(Changes *s, const PersistentChange *change, Explanation *e) {
        thread_assert(THREAD_MAIN);
        if (!change_alters_file(s, change))
                return 0;
        if (s->state_unusable)
                return refuse(e, REFUSED_DENIED, "state-file", "events cannot be made persistent, because the earlier ones could "
                        "not be read: %s; repair that and restart perfd", s->state_unusable);
        return write_file(s, change, e);
}

int persistent_restore(Changes *s, const PersistentChange *change) {
        const PersistentChange none = { .added = NULL };
        Explanation e = EXPLANATION_NULL;
        int r = change_alters_file(s, change) ? write_file(s, &none, &e) : 0;

        if (r > 0)
                log_print(LOG_ERR, MESSAGE_PERSISTENT_EVENTS,
                          "the state file contains a change that was refused, until the next change: %s", e.text);
        return r < 0 ? r : 0;
}
