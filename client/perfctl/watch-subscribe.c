/*
 * A running event may be called as a user likes, with commas too. So the names are asked for as they were written, and only if
 * one of them is none they are taken for what other tools call an event.
 */
#include <string.h>

#include "client/perfctl/event-words.h"
#include "client/perfctl/watch.h"

static int subscribe(Perfctl *p, const EventWords *words, const perfd_subscription *subscription,
                     const perfd_callbacks *callbacks, void *userdata) {
        perfd_subscription s = *subscription;

        s.events = (const char *const *)words->names;
        s.n_events = words->n;
        return perfd_subscribe(p->client, &s, callbacks, userdata);
}

int watch_subscribe(Perfctl *p, const perfd_subscription *subscription, const perfd_callbacks *callbacks, void *userdata) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL, others = EVENT_WORDS_NULL;
        int r;

        event_words_take_all(&words, p);
        r = subscribe(p, &words, subscription, callbacks, userdata);
        if (r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0) {
                r = event_words_add_all(&others, p);
                if (r == 0)
                        r = event_words_find(&others, p, EVENT_WHERE_RUNNING);
                if (r != 0)
                        return r;
                r = subscribe(p, &others, subscription, callbacks, userdata);
        }
        return r == 0 ? PERFCTL_OK : perfctl_fail_client(p, subscription->where);
}
