/* What the dispatcher tells main, which has room for all that can be on its way. */
#include "daemon/dispatcher/cycle.h"

#include <stdlib.h>

/* `s` NULL: of none. */
static int dispatcher_post_word(Dispatcher *d, DispatcherNotice said) {
        DispatcherNotice *word = malloc(sizeof(*word));
        bool posted;

        if (!word)
                return error_origin(-ENOMEM);
        *word = said;
        posted = mailbox_post(&d->words, word);
        assert(posted); /* two words for each subscriber at most, and main bounds these; one of queues; one of batch pipes */
        return 0;
}

int dispatcher_say(Dispatcher *d, DispatcherNoticeKind kind, const Subscriber *s, const char *reason) {
        return dispatcher_post_word(d, (DispatcherNotice){ .kind = kind, .id = s ? s->id : 0, .number = s ? s->number : 0,
                                                         .reason = reason });
}

int dispatcher_say_silent(Dispatcher *d, uint32_t slot, nsec_t asked_at) {
        return dispatcher_post_word(d, (DispatcherNotice){ .kind = DISPATCHER_PIPE_SILENT, .slot = slot, .at = asked_at });
}
