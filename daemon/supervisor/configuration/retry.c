/*
 * An event that cannot be opened now does not keep the others from running, nor perfd from starting: after a reboot a unit,
 * a container, a module or a file may come later than perfd. Cgroups are watched by inotify(7), and an event whose unit is not
 * there is registered without an fd (supervisor/changes/follow.c). For all else nothing tells when to look again, so a timer does:
 * after a second, then after twice as long each time, up to half a minute. It runs only while something is pending.
 */
#include "daemon/supervisor/configuration/retry.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/events/specs.h"

#define RETRY_FIRST_USEC UINT64_C(1000000)
#define RETRY_MOST_USEC UINT64_C(30000000)
#define RETRY_ACCURACY_USEC UINT64_C(500000)

/* ---- the timer --------------------------------------------------------------------------------------------------- */

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Configuration *s = userdata;

        operations_set_due(s->operations, CHANGE_PENDING);
        return 0;
}

int configuration_start_pending(Configuration *s) {
        int r = error_origin(sd_event_add_time(s->operations->event, &s->events->pending.timer, CLOCK_MONOTONIC, 0,
                                               RETRY_ACCURACY_USEC, on_time, s));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->events->pending.timer, SD_EVENT_OFF));
        return r < 0 ? r : 0;
}

static int set_timer(Configuration *s) {
        uint64_t usec = RETRY_FIRST_USEC << (s->events->pending.n_tries < 8 ? s->events->pending.n_tries : 8);
        int r;

        if (!s->events->pending.first)
                return error_origin(sd_event_source_set_enabled(s->events->pending.timer, SD_EVENT_OFF));
        r = error_origin(sd_event_source_set_time_relative(s->events->pending.timer,
                                                           usec < RETRY_MOST_USEC ? usec : RETRY_MOST_USEC));
        return r < 0 ? r : error_origin(sd_event_source_set_enabled(s->events->pending.timer, SD_EVENT_ONESHOT));
}

void configuration_free_pending(Configuration *s) {
        pending_free_list(s->events->pending.first);
        s->events->pending.first = NULL;
        s->events->pending.timer = sd_event_source_disable_unref(s->events->pending.timer);
}

/* ---- trying again ------------------------------------------------------------------------------------------------ */

static int try_to_add(Configuration *s, PendingEvent *const *list, size_t n, Explanation *e) {
        AddOptions adding = { .keep = !list[0]->is_configured, .is_written = true };
        EventSpec *specs = calloc(n, sizeof(*specs));
        EventRefs refs = { .n = 0 };
        int r = specs ? 0 : error_origin(-ENOMEM);

        for (size_t i = 0; i < n && r == 0; i++) {
                r = spec_from_message(s->events, list[i]->spec, &specs[i], e);
                specs[i].configured = list[i]->is_configured;
        }
        if (r == 0)
                r = changes_add(s->changes, specs, n, &adding, &refs, e);
        for (size_t i = 0; specs && i < n; i++)
                event_spec_deinit(&specs[i]);
        free(specs);
        event_refs_deinit(&refs);
        return r;
}

/* The log hears of another reason, not of each other number in its text. */
static int stay_pending(PendingEvent *p, const Explanation *e) {
        bool is_another = !p->reason || strcmp(p->reason, e->reason ? e->reason : "") != 0;
        char *why;

        if (strcmp(p->why, e->text) == 0)
                return 0;
        why = strdup(e->text);
        if (!why)
                return error_origin(-ENOMEM);
        free(p->why);
        p->why = why;
        p->reason = e->reason ? e->reason : "";
        if (is_another)
                pending_log(p);
        return 0;
}

/*
 * All at once, because a thousand changes one by one take their time; if that is refused, each half on its own, until it is
 * known which it is.
 */
static int retry(Configuration *s, PendingEvent *const *list, size_t n) {
        Explanation e = EXPLANATION_NULL;
        int r = n > 0 ? try_to_add(s, list, n, &e) : 0;

        if (r < 0 || r == REFUSED_CANCELLED)
                return r;
        if (r > 0 && n > 1) {
                r = retry(s, list, n / 2);
                return r == 0 ? retry(s, list + n / 2, n - n / 2) : r;
        }
        if (r > 0)
                return stay_pending(list[0], &e);
        for (size_t i = 0; i < n; i++) {
                if (list[i]->reason)
                        log_print_with(LOG_NOTICE, MESSAGE_EVENT_OPENED, LOG_FIELDS({ "EVENT", list[i]->spec->name }),
                                       "%s is no longer pending: it is open", list[i]->spec->name);
                pending_remove(&s->events->pending.first, list[i]);
        }
        return 0;
}

/* No request changes the list meanwhile: one operation runs at a time. */
static int retry_kind(Configuration *s, bool is_configured) {
        _cleanup_free_ PendingEvent **list = calloc(events_count_pending(s->events) + 1, sizeof(*list));
        size_t n = 0;

        if (!list)
                return error_origin(-ENOMEM);
        for (PendingEvent *p = s->events->pending.first; p; p = p->next)
                if (p->is_configured == is_configured)
                        list[n++] = p;
        return retry(s, list, n);
}

int configuration_retry_pending(void *userdata) {
        Configuration *s = userdata;
        int r;

        thread_assert(THREAD_MAIN);
        r = retry_kind(s, true);
        if (r == 0)
                r = retry_kind(s, false);
        notes_forget(&s->operations->notes); /* of what is tried again and again nothing is noted */
        s->events->pending.n_tries++;
        return r < 0 ? r : set_timer(s); /* cancelled: perfd is stopping */
}

int configuration_retry_persistent(Configuration *s) {
        int r = retry_kind(s, false);

        s->events->pending.n_tries = 0;
        return r < 0 ? r : set_timer(s);
}
