/* Streams that other rules do not grant end. */
#include "daemon/supervisor/streams/access-change.h"

#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/streams/close.h"
#include "daemon/supervisor/subscriptions/grants.h"

/* Each once: the dispatcher takes a moment to end them. */
static int end_streams(Streams *s) {
        StreamEnd *ends = NULL;
        size_t n = 0;
        int r;

        for (SubscriberEntry *a = s->subscriptions->subscribers; a; a = a->next) {
                const Access access = a->is_ruled ? access_for(s->settings->access, &a->peer) : ACCESS_ALL;
                StreamEnd *more;

                if (a->is_ending || subscription_is_granted(s->subscriptions->by_number[a->number], &access))
                        continue;
                more = reallocarray(ends, n + 1, sizeof(*more));
                if (!more) {
                        free(ends);
                        return error_origin(-ENOMEM);
                }
                ends = more;
                ends[n++] = (StreamEnd){ .id = a->id, .reason = "not-granted" };
                a->is_ending = true;
                log_print(LOG_NOTICE, MESSAGE_ACCESS_ENDED,
                          "the stream of subscriber %llu ends: the access rules for uid %u have changed",
                          (unsigned long long)a->id, (unsigned)a->peer.uid);
        }
        r = n > 0 ? streams_close(s, ends, n) : 0;
        free(ends);
        return r;
}

int streams_change_access(Streams *s, Config *c) {
        Config *before = s->settings->access;

        s->settings->access = config_ref(c);
        config_unref(before);
        own_recheck(s->events);
        return end_streams(s);
}
