/*
 * Notices of the dispatcher to main. The mailbox is large enough for all that can be pending, so posting fails only without
 * memory.
 */
#include "daemon/dispatcher/cycle.h"

#include <stdlib.h>

/* Posts a notice, which main frees. */
static int dispatcher_post_notice(Dispatcher *d, DispatcherNotice said) {
        DispatcherNotice *notice = malloc(sizeof(*notice));
        bool posted;

        if (!notice)
                return error_origin(-ENOMEM);
        *notice = said;
        posted = mailbox_post(&d->notices, notice);
        /* at most two notices for each subscriber, the number of which main limits, and one each of queues and of batch pipes */
        assert(posted);
        return 0;
}

int dispatcher_notify(Dispatcher *d, DispatcherNoticeKind kind, const Subscriber *s, const char *reason) {
        return dispatcher_post_notice(d, (DispatcherNotice){ .kind = kind, .id = s ? s->id : 0, .number = s ? s->number : 0,
                                                         .reason = reason });
}

int dispatcher_notify_silent(Dispatcher *d, uint32_t slot, nsec_t asked_at) {
        return dispatcher_post_notice(d, (DispatcherNotice){ .kind = DISPATCHER_PIPE_SILENT, .slot = slot, .at = asked_at });
}
