/* What the dispatcher tells main: of streams that end, of queues that grow, of threads that it hears nothing of. */
#include "daemon/supervisor/streams/subscribe.h"

#include "daemon/base/checkpoint.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"
#include "daemon/supervisor/streams/close.h"

#define ENDS_AT_ONCE 64

static uint64_t oldest_subscriber(const Streams *s) {
        uint64_t oldest = UINT64_MAX;

        for (const SubscriberEntry *a = s->subscriptions->subscribers; a; a = a->next)
                if (a->id < oldest)
                        oldest = a->id;
        return oldest;
}

/* Those that want to end now end at one cut. */
int streams_on_notices(void *userdata) {
        Streams *s = userdata;
        StreamEnd ends[ENDS_AT_ONCE];
        DispatcherNotice *notice;
        size_t n_ends = 0;
        int r = 0;

        mailbox_quiet(&s->readers->dispatcher.notices);
        while (r >= 0 && (notice = mailbox_pop(&s->readers->dispatcher.notices))) {
                switch (notice->kind) {
                case DISPATCHER_WANTS_CLOSE:
                        ends[n_ends++] = (StreamEnd){ .id = notice->id, .reason = notice->reason };
                        break;
                case DISPATCHER_GONE:
                        r = streams_on_gone(s, notice->id, notice->number);
                        break;
                case DISPATCHER_QUEUES_GREW:
                        atomic_store_explicit(&s->readers->dispatcher.queues_told, false, memory_order_relaxed);
                        atomic_thread_fence(memory_order_seq_cst); /* before their sizes: dispatcher_tell_growth() */
                        r = subscriptions_update_memory(s->subscriptions);
                        break;
                case DISPATCHER_ANSWERS:
                        readers_on_dispatcher_answers(s->readers);
                        break;
                case DISPATCHER_HAS_ROOM:
                        s->readers->dispatcher.expects_room = false;
                        dispatcher_post_rest(&s->readers->dispatcher);
                        break;
                case DISPATCHER_PIPE_SILENT:
                        /* dispatcher_doubt_pipe() */
                        atomic_store_explicit(&s->readers->dispatcher.silent_told, false, memory_order_release);
                        if (notice->slot < s->readers->n_cpus) /* else it is main's own, which is here */
                                readers_doubt(s->readers, notice->slot, notice->at, "how far it is");
                        break;
                }
                free(notice);
                if (r >= 0 && (n_ends == ENDS_AT_ONCE ||
                               (n_ends > 0 && queue_is_empty(&s->readers->dispatcher.notices.messages)))) {
                        r = streams_close(s, ends, n_ends);
                        n_ends = 0;
                }
                if (r >= 0 && n_ends == 0)
                        r = checkpoint(NULL);
        }
        streams_count_given(s);
        ledger_forget_removed(s->ledger, oldest_subscriber(s));
        if (r >= 0 && s->subscriptions->owes_snapshot)
                r = readers_publish(s->readers);
        return r;
}
