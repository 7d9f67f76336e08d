/*
 * Make before break: the replacement of an event's fds is opened and heard, but muted, while its predecessor speaks;
 * then each reader, at one place of its ring, lets the other speak. A tracepoint fires without being preempted, and the
 * reader runs on the same CPU, so that this place is never in the middle of one: what fired before it came from the
 * predecessor, what fires behind it comes from the replacement, nothing from both and nothing from none.
 */
#include "daemon/supervisor.h"

#include <string.h>

#include "daemon/kernel/open.h"

/* What closed fds have counted stays in the ledger. They are disabled: nothing of this moves any more. */
int registration_keep_counts(Registration *r, const Opened *o) {
        for (size_t i = 0; i < o->n; i++) {
                const Stream *stream = &o->streams[i];
                EventCounters *c = &r->event->counters[stream->slot];
                ReadCount *kept = &r->event->closed_reads[stream->slot * r->event->n_members + stream->member];
                ReadCount read;
                int error = open_read(stream->fd, r->plan.attrs[stream->member].read_format, &read);

                if (error < 0)
                        return error;
                if (stream->member == 0) {
                        c->closed_count += read.value;
                        c->closed_lost += read.lost;
                }
                kept->value += read.value;
                kept->enabled += read.enabled;
                kept->running += read.running;
                kept->lost += read.lost;
        }
        return 0;
}

/* The readers forget `pending`, which is disabled, and it is closed. */
static int registration_retire_pending(Supervisor *s, Registration *r) {
        Opened old = r->pending;
        int error;

        error = opened_disable(s, (const Opened *const[]){ &old }, 1);
        if (error != 0)
                return error;
        error = registration_keep_counts(r, &old); /* nothing of it moves any more */
        if (error != 0)
                return error;
        r->pending = OPENED_NULL;
        error = supervisor_publish(s);
        if (error != 0) {
                r->pending = old;
                return error;
        }
        opened_close(s, &old);
        return 0;
}

/* Lets `replacement` (moves) speak in the place of what is open. Refused: as before, replacement closed. */
static int registration_replace(Supervisor *s, Registration *r, Opened *replacement, Explanation *e) {
        Opened speaking;
        int error;

        r->pending = *replacement;
        *replacement = OPENED_NULL;
        error = supervisor_publish(s);
        if (error != 0) {
                opened_close(s, &r->pending);
                return error;
        }
        error = r->enabled ? opened_enable(s, (const Opened *const[]){ &r->pending }, 1, r->event->spec.name, e) : 0;
        if (error != 0) {
                int undone = registration_retire_pending(s, r);

                return undone < 0 ? undone : error;
        }
        speaking = r->opened;
        r->opened = r->pending;
        r->pending = speaking;
        error = supervisor_publish(s);
        if (error != 0) { /* memory: the readers still listen to the old one */
                r->pending = r->opened;
                r->opened = speaking;
                return error;
        }
        return registration_retire_pending(s, r);
}

int supervisor_refilter(Supervisor *s, Registration *r, Opened *replacement, char *filter, Explanation *e) {
        int error = registration_replace(s, r, replacement, e);

        if (error != 0) {
                free(filter);
                return error;
        }
        free(r->event->spec.filter);
        r->event->spec.filter = filter;
        return 0;
}

int supervisor_set_filter(Supervisor *s, const char *name, const char *filter, Explanation *e) {
        _cleanup_free_ Registration **selected = NULL;
        _cleanup_free_ char *copy = NULL;
        Opened replacement = OPENED_NULL;
        Registration *r;
        size_t n;
        int error;

        thread_assert(THREAD_MAIN);
        error = supervisor_select(s, (char *const[]){ (char *)name }, 1, &selected, &n, e);
        if (error != 0)
                return error;
        if (n > 1)
                return refuse(e, REFUSED_INVALID, "bad-request", "%s selects %zu events: filters are changed one by one",
                              name, n);
        r = selected[0];
        if (filter && (r->event->external || r->plan.attrs[0].type != PERF_TYPE_TRACEPOINT))
                return refuse(e, REFUSED_INVALID, "bad-event", "%s has no fields that the kernel could filter on: only "
                              "tracepoints and probes with arguments have", r->event->spec.name);
        if (filter && !(copy = strdup(filter)))
                return -ENOMEM;
        error = supervisor_open(s, r, filter, &replacement, e);
        if (error == 0)
                error = supervisor_refilter(s, r, &replacement, TAKE_PTR(copy), e);
        opened_close(s, &replacement);
        return error;
}
