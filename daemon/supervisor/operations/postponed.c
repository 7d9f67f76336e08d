/* Nobody is woken for nothing: a timer of the loop is set only where all that wait are postponed, to the end of the first one's wait. */
#include "daemon/supervisor/operations/postponed.h"

bool operations_is_postponed(const Operations *o, const Operation *p, nsec_t now, nsec_t *ret_until) {
        return o->postpones && p->uid != 0 && o->postpones(o->postponer, p->uid, now, ret_until);
}

static int on_paid(sd_event_source *source, uint64_t usec, void *userdata) {
        Operations *o = userdata;

        o->are_postponed = false;
        return 0;
}

/* CLOCK_MONOTONIC: when the first one that waits may run; 0: now, or none waits. */
static nsec_t find_first(const Operations *o) {
        const nsec_t now = clock_now(CLOCK_MONOTONIC);
        nsec_t first = 0, until;

        for (const Operation *p = o->waiting; p; p = p->next) {
                if (!operations_is_postponed(o, p, now, &until))
                        return 0;
                first = first == 0 || until < first ? until : first;
        }
        return first;
}

int operations_postpone(Operations *o) {
        nsec_t first = find_first(o);
        int r;

        o->are_postponed = false;
        if (first == 0)
                return 0;
        if (o->timer) {
                r = error_origin(sd_event_source_set_time(o->timer, first / NSEC_PER_USEC + 1));
                if (r >= 0)
                        r = error_origin(sd_event_source_set_enabled(o->timer, SD_EVENT_ONESHOT));
        } else
                r = error_origin(sd_event_add_time(o->event, &o->timer, CLOCK_MONOTONIC, first / NSEC_PER_USEC + 1, 0, on_paid, o));
        o->are_postponed = r >= 0;
        return r < 0 ? r : 0;
}
