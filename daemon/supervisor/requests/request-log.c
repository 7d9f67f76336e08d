/* What a request has changed, or subscribed to, for the line of the log that says who did: names, as many as fit, and numbers. */
#include "daemon/supervisor/requests/requests.h"

#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/base/text-line.h"

#define NAMES_MAX 4

/* An id of 0 is that of an event that was pending. */
static void add_refs(TextLine *l, Perfd__V1__EventRef *const *refs, size_t n) {
        for (size_t i = 0; i < n && i < NAMES_MAX; i++) {
                text_line_add(l, "%s%.100s", i > 0 ? ", " : "", refs[i]->name);
                if (refs[i]->id > 0)
                        text_line_add(l, " (id %u)", refs[i]->id);
        }
        if (n > NAMES_MAX)
                text_line_add(l, " and %zu more", n - NAMES_MAX);
}

static void add_rate(TextLine *l, const Perfd__V1__SetPeriodRequest *q) {
        if (q->frequency > 0)
                text_line_add(l, "%.100s, frequency %llu Hz", q->name, (unsigned long long)q->frequency);
        else
                text_line_add(l, "%.100s, period %llu", q->name, (unsigned long long)q->period);
}

static void add_filter(TextLine *l, const Perfd__V1__SetFilterRequest *q) {
        if (q->filter && *q->filter)
                text_line_add(l, "%.100s, filter '%.200s'", q->name, q->filter);
        else
                text_line_add(l, "%.100s, no filter", q->name);
}

/* A switch over what changes something. */
void request_outcome(const RequestContext *a, char *text, size_t size) {
        const Perfd__V1__ReloadReply *reloaded = a->response->reloaded;
        TextLine l = { .text = text, .size = size };

        text[0] = '\0';
        switch (a->request->body_case) {
        case PERFD__V1__REQUEST__BODY_ADD:
                add_refs(&l, a->response->added->events, a->response->added->n_events);
                break;
        case PERFD__V1__REQUEST__BODY_REMOVE:
        case PERFD__V1__REQUEST__BODY_ENABLE:
        case PERFD__V1__REQUEST__BODY_DISABLE:
                add_refs(&l, a->response->selected->events, a->response->selected->n_events);
                break;
        case PERFD__V1__REQUEST__BODY_SET_FILTER:
                add_filter(&l, a->request->set_filter);
                break;
        case PERFD__V1__REQUEST__BODY_SET_PERIOD:
                add_rate(&l, a->request->set_period);
                break;
        case PERFD__V1__REQUEST__BODY_APPLY:
        case PERFD__V1__REQUEST__BODY_RELOAD:
                text_line_add(&l, "added %u, removed %u, changed %u, kept %u, pending %u", reloaded->added, reloaded->removed,
                    reloaded->changed, reloaded->kept, reloaded->pending);
                if (reloaded->ring_size > 0)
                        text_line_add(&l, ", rings of %llu KiB", (unsigned long long)(reloaded->ring_size / 1024));
                break;
        default:
                text_line_add(&l, "done");
        }
}

void request_events(const RequestContext *a, char *text, size_t size) {
        const Perfd__V1__Response *response = a->response;
        Perfd__V1__EventRef *const *refs = NULL;
        TextLine l = { .text = text, .size = size };
        size_t n = 0;

        text[0] = '\0';
        if (response->body_case == PERFD__V1__RESPONSE__BODY_ADDED) {
                refs = response->added->events;
                n = response->added->n_events;
        } else if (response->body_case == PERFD__V1__RESPONSE__BODY_SELECTED) {
                refs = response->selected->events;
                n = response->selected->n_events;
        } else if (a->request->body_case == PERFD__V1__REQUEST__BODY_SET_FILTER)
                text_line_add(&l, "%s", a->request->set_filter->name);
        else if (a->request->body_case == PERFD__V1__REQUEST__BODY_SET_PERIOD)
                text_line_add(&l, "%s", a->request->set_period->name);
        for (size_t i = 0; i < n; i++)
                text_line_add(&l, "%s%s", i > 0 ? ", " : "", refs[i]->name);
}
