/*
 * Ends a subscriber for any cause: frees it, and notifies main exactly once. Also asks main for a closing ledger, if the stream
 * ends regularly.
 */
#include "daemon/dispatcher/cycle.h"

#include <malloc.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/base/peer-socket.h"

#define TRIM_FROM ((size_t)1 << 20) /* bytes in its outbox from which malloc_trim(3) is worth its cost */

Subscriber *subscriber_free(Subscriber *s) {
        if (!s)
                return NULL;
        sd_event_source_disable_unref(s->source);
        frame_reader_deinit(&s->in);
        outbox_deinit(&s->outbox);
        shared_ring_free(s->ring);
        for (size_t i = 0; i < s->n_packets; i++)
                packet_unref(s->packets[i]);
        free(s->packets);
        free(s->handshake);
        free(s->closing_ledger);
        process_condition_free(s->condition);
        peer_socket_close(s->fd);
        free(s);
        return NULL;
}

void subscriber_forget_edges(Dispatcher *d, const Subscriber *s) {
        d->n_edges -= (s->from > 0) + (s->until != UINT64_MAX);
}

/* Logs what was sent to it, and what was dropped, by reason. */
static void log_end(const Subscriber *s, const char *why) {
        const uint64_t dropped = outbox_dropped(&s->outbox), lost = dropped + s->late;
        const LogCause before = log_charge(s->cause);
        char losses[128] = "";

        if (lost > 0)
                (void)snprintf(losses, sizeof(losses), ", %llu lost (%s %llu, %s %llu, late %llu)", (unsigned long long)lost,
                               gap_reason_name(GAP_OUTBOX, s->is_relayed), (unsigned long long)s->outbox.dropped_items[GAP_OUTBOX],
                               gap_reason_name(GAP_MEMORY, s->is_relayed), (unsigned long long)s->outbox.dropped_items[GAP_MEMORY],
                               (unsigned long long)s->late);
        log_print_with(why || lost > 0 ? LOG_NOTICE : LOG_INFO, MESSAGE_SUBSCRIPTION_ENDED,
                       LOG_FIELDS({ "SUBSCRIBER", LOG_NUMBER(s->id) }, { "REASON", why ? "dropped" : s->close_reason },
                                  { "SENT", LOG_NUMBER(s->outbox.sent_items) }, { "LOST", LOG_NUMBER(lost) },
                                  { "LOST_OUTBOX", LOG_NUMBER(s->outbox.dropped_items[GAP_OUTBOX]) },
                                  { "LOST_MEMORY", LOG_NUMBER(s->outbox.dropped_items[GAP_MEMORY]) },
                                  { "LOST_LATE", LOG_NUMBER(s->late) }),
                       "subscriber %llu (%s) %s: %s; %llu items sent%s", (unsigned long long)s->id, s->peer,
                       why ? "dropped" : "ended", why ? why : s->close_reason, (unsigned long long)s->outbox.sent_items, losses);
        (void)log_charge(before);
}

void subscriber_drop(Dispatcher *d, Subscriber *s, const char *why) {
        size_t most = s->outbox.most_bytes;

        for (Subscriber **p = &s->channel->subscribers; *p; p = &(*p)->next)
                if (*p == s) {
                        *p = s->next;
                        break;
                }
        channel_choose_pool(s->channel);
        dispatcher_note_unflushed(d, s->channel); /* it may have been the channel's last subscriber */
        if (s->channel->open && s->channel->open->is_reserved && subscriber_gets(s, *s->channel->side))
                s->channel->open = packet_unref(s->channel->open); /* the open packet is in the memory of this subscriber */
        if (s->closing && !s->ended)
                d->n_closing--;
        if (!s->ended)
                subscriber_forget_edges(d, s);
        log_end(s, why);
        outbox_deinit(&s->outbox); /* before the notice: main then frees the account */
        if (s->ring && !d->is_closing_all)
                shared_ring_discard(s->ring);
        s->ring = shared_ring_free(s->ring); /* before the notice too: main then has its memory for others */
        if (dispatcher_notify(d, DISPATCHER_GONE, s, NULL) < 0)
                abort(); /* main would keep the subscription for ever; a restart is better */
        subscriber_free(s);
        packet_pool_trim(&d->packets); /* the remaining subscribers may need less */
        if (most >= TRIM_FROM)
                /* free(3) returns memory to the system only from the end of the heap, where packets rarely are */
                (void)malloc_trim(0);
}

int subscriber_ask_close(Dispatcher *d, Subscriber *s, const char *reason) {
        if (s->close_asked || s->closing)
                return 0;
        s->close_asked = true;
        return dispatcher_notify(d, DISPATCHER_WANTS_CLOSE, s, reason);
}
