/* Who subscribed to what, for the log: names, as many as fit, and the condition. */
#include "daemon/supervisor/streams/subscribe.h"

#include <stdio.h>

#include "daemon/base/duration.h"
#include "daemon/base/log.h"
#include "daemon/base/text-line.h"

#define NAMES_MAX 4

static void subscription_events(const Perfd__V1__SubscribeRequest *q, char *text, size_t size) {
        TextLine l = { .text = text, .size = size };

        text[0] = '\0';
        for (size_t i = 0; i < q->n_events; i++)
                text_line_add(&l, "%s%s", i > 0 ? ", " : "", q->events[i]);
        if (q->n_events == 0)
                text_line_add(&l, "*");
}

static void subscription_outline(const Perfd__V1__SubscribeRequest *q, char *text, size_t size) {
        char latency[DURATION_SIZE];
        TextLine l = { .text = text, .size = size };

        text[0] = '\0';
        for (size_t i = 0; i < q->n_events && i < NAMES_MAX; i++)
                text_line_add(&l, "%s%.100s", i > 0 ? ", " : "", q->events[i]);
        if (q->n_events > NAMES_MAX)
                text_line_add(&l, " and %zu more", q->n_events - NAMES_MAX);
        if (q->n_events == 0)
                text_line_add(&l, "all events");
        if (*q->where)
                text_line_add(&l, ", where '%.200s'", q->where);
        if (q->order == PERFD__V1__ORDER__ORDER_CPU)
                text_line_add(&l, ", by CPU");
        if (q->latency > 0)
                text_line_add(&l, ", latency %s", duration_text(q->latency, latency));
}

void log_subscribed(uint64_t id, const char *peer, const Perfd__V1__SubscribeRequest *q) {
        char outline[700], events[512];

        subscription_outline(q, outline, sizeof(outline));
        subscription_events(q, events, sizeof(events));
        log_print_with(LOG_INFO, MESSAGE_SUBSCRIBED,
                       LOG_FIELDS({ "SUBSCRIBER", LOG_NUMBER(id) }, { "EVENT", events },
                                  { "PREDICATE", *q->where ? q->where : NULL }),
                       "subscriber %llu: %s: %s", (unsigned long long)id, peer, outline);
}
