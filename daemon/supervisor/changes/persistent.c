/*
 * Persistent events outlive the daemon: the state file has them, as one AddRequest, and is written before each change of one of
 * them. So nothing is added that cannot be stored, and nothing is acknowledged that is not on the disk; a change that is
 * refused after that writes the file as it was.
 *
 * But for what lets go of something: events that fill the disk must be stopped while it is full. They are removed or disabled, the
 * reply and the log say that this is not stored, and perfd writes the file at the next change, and once a minute until it succeeds.
 *
 * An event of the file that cannot be opened, because its module or target does not exist now, stays there and is pending:
 * supervisor/configuration/retry.c.
 */
#include "daemon/supervisor/changes/persistent.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/printable.h"
#include "daemon/kernel/host/state-file.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/specs.h"

#define STORE_USEC UINT64_C(60000000)
#define STORE_ACCURACY_USEC UINT64_C(1000000)

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

/* ---- what could not be written ------------------------------------------------------------------------------------ */

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Changes *s = userdata;

        operations_set_due(s->operations, CHANGE_STATE);
        return 0;
}

int persistent_start(Changes *s) {
        int r = error_origin(sd_event_add_time(s->operations->event, &s->state_timer, CLOCK_MONOTONIC, 0, STORE_ACCURACY_USEC,
                                               on_time, s));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->state_timer, SD_EVENT_OFF));
        return r < 0 ? r : 0;
}

void persistent_free(Changes *s) {
        s->state_timer = sd_event_source_disable_unref(s->state_timer);
        free(s->state_unstored);
        s->state_unstored = NULL;
}

static int set_timer(Changes *s) {
        int r = s->state_unstored ? error_origin(sd_event_source_set_time_relative(s->state_timer, STORE_USEC)) : 0;

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->state_timer, s->state_unstored ? SD_EVENT_ONESHOT : SD_EVENT_OFF));
        return r < 0 ? r : 0;
}

/* The log hears of each other reason once. */
static int set_unstored(Changes *s, const char *text) {
        bool is_another = !s->state_unstored || strcmp(s->state_unstored, text) != 0;
        char *why = strdup(text);

        if (!why)
                return error_origin(-ENOMEM);
        free(s->state_unstored);
        s->state_unstored = why;
        if (is_another)
                log_print(LOG_ERR, MESSAGE_PERSISTENT_EVENTS, "the persistent events are not stored as they are now: %s; a perfd "
                          "that starts before they are has those of the last time; this one tries again at each change, and "
                          "once a minute", why);
        return set_timer(s);
}

static int set_stored(Changes *s) {
        if (!s->state_unstored)
                return 0;
        free(s->state_unstored);
        s->state_unstored = NULL;
        log_print(LOG_NOTICE, MESSAGE_PERSISTENT_EVENTS, "the persistent events are stored again as they are");
        return set_timer(s);
}

/* Nothing is observed after it that was not before. */
static bool change_lets_go(const PersistentChange *change) {
        return !change->added && (change->removed || (change->enabled && !*change->enabled));
}

/* ---- what others call --------------------------------------------------------------------------------------------- */

static void say_unstored(const PersistentChange *change, const char *why, Explanation *e) {
        if (!e)
                return;
        *e = EXPLANATION_NULL;
        (void)snprintf(e->text, sizeof(e->text), "this holds now and is not stored, so that a perfd that starts before it is %s; perfd "
                       "tries again at each change, and once a minute: %.400s",
                       change->removed ? "adds them again" : "enables them again", why);
        printable_make(e->text, sizeof(e->text)); /* it may be cut in a character */
}

int persistent_write(Changes *s, const PersistentChange *change, Explanation *e) {
        bool alters = change_alters_file(s, change);
        Explanation why = EXPLANATION_NULL;
        int r;

        thread_assert(THREAD_MAIN);
        if (!alters && !s->state_unstored)
                return 0;
        if (s->state_unusable)
                return refuse(e, REFUSED_DENIED, "state-file", "events cannot be made persistent, because the earlier ones could "
                        "not be read: %s; repair that and restart perfd", s->state_unusable);
        r = write_file(s, change, &why);
        if (r == 0)
                return set_stored(s);
        if (r < 0)
                return r;
        if (alters && !change_lets_go(change)) {
                if (e)
                        *e = why;
                return r;
        }
        r = set_unstored(s, why.text);
        if (r == 0 && alters)
                say_unstored(change, why.text, e);
        return r;
}

int persistent_restore(Changes *s, const PersistentChange *change) {
        const PersistentChange none = { .added = NULL };
        Explanation e = EXPLANATION_NULL;
        int r;

        if (!change_alters_file(s, change))
                return 0;
        r = write_file(s, &none, &e);
        if (r < 0)
                return r;
        return r > 0 ? set_unstored(s, e.text) : set_stored(s);
}

static bool is_name_configured(const Changes *s, const char *name) {
        const Registration *g = events_find(s->events, name);
        bool found = g && g->event->spec.configured;

        for (const PendingEvent *w = s->events->pending.first; w && !found; w = w->next)
                found = w->is_configured && strcmp(w->spec->name, name) == 0;
        return found;
}

int persistent_drop_configured(Changes *s) {
        const PersistentChange none = { .added = NULL };
        Explanation e = EXPLANATION_NULL;
        size_t n = 0;
        int r;

        thread_assert(THREAD_MAIN);
        for (PendingEvent **p = &s->events->pending.first; *p;) {
                PendingEvent *w = *p;

                if (w->is_configured || !is_name_configured(s, w->spec->name)) {
                        p = &w->next;
                        continue;
                }
                log_print_with(LOG_NOTICE, MESSAGE_PERSISTENT_EVENTS, LOG_FIELDS({ "EVENT", w->spec->name }),
                               "the persistent event %s is dropped: the configuration has an event of that name, which holds", w->spec->name);
                pending_remove(p, w);
                n++;
        }
        if (n == 0)
                return 0;
        r = write_file(s, &none, &e);
        if (r < 0)
                return r;
        return r > 0 ? set_unstored(s, e.text) : set_stored(s);
}

int changes_store_state(void *userdata) {
        const PersistentChange none = { .added = NULL };
        Changes *s = userdata;

        return persistent_write(s, &none, NULL);
}
