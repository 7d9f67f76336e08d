/*
 * Ends streams, and reports what the dispatcher contributes to the ledger. A closing stream continues until the merge has
 * released everything up to the cut at which the stream ends. Its closing ledger was taken at this cut. The last packet then
 * contains that ledger, completed by the subscriber's own row.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* in_merge: entries for this subscriber that are still in the merge. */
static void subscriber_row(const Subscriber *s, uint64_t in_merge, SubscriberRow *ret) {
        *ret = (SubscriberRow){ .id = s->id, .matched = s->matched - s->filtered, .sent = s->outbox.sent_items,
                                .queued = s->outbox.queued_items + in_merge, .late = s->late, .order = s->order,
                                .latency = s->latency, .is_relayed = s->is_relayed };
        memcpy(ret->peer, s->peer, sizeof(ret->peer));
        memcpy(ret->dropped, s->outbox.dropped_items, sizeof(ret->dropped));
        ret->balanced = ret->matched == ret->sent + ret->queued + outbox_dropped(&s->outbox) + ret->late;
}

int dispatcher_report(Dispatcher *d, uint64_t cut, DispatcherReport *report) {
        size_t n = 0, i = 0;

        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        n++;
        *report = (DispatcherReport){ .n_subscribers = n };
        report->subscribers = calloc(n + 1, sizeof(*report->subscribers));
        if (!report->subscribers || dispatcher_report_late(d, cut, report) < 0)
                return error_origin(-ENOMEM);
        dispatcher_count_pending(d);
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        subscriber_row(s, s->ended ? 0 : s->channel->pending - s->foreign, &report->subscribers[i++]);
        return 0;
}

static int subscriber_close(Dispatcher *d, Subscriber *s, const DispatcherCommand *command) {
        if (s->closing)
                return 0;
        s->closing_ledger = malloc(command->n_bytes ? command->n_bytes : 1);
        if (!s->closing_ledger)
                return error_origin(-ENOMEM);
        memcpy(s->closing_ledger, command->bytes, command->n_bytes);
        s->n_closing_ledger = command->n_bytes;
        s->closing = true;
        s->close_at = command->at;
        s->close_reason = command->reason;
        d->n_closing++;
        return 0;
}

int dispatcher_close(Dispatcher *d, const DispatcherCommand *command) {
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        if (s->id == command->id)
                                return subscriber_close(d, s, command);
        return 0; /* the subscriber is freed */
}

int dispatcher_close_all(Dispatcher *d) {
        int r = 0;

        d->is_closing_all = true;
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                        next = s->next; /* subscriber_drop() may free it */
                        if (s->ring && s->ring->pool)
                                s->ring->pool->outlives = true;
                        if (s->is_draining)
                                r = subscriber_send(d, s);
                }
        return r;
}

void subscriber_row_fill(const SubscriberRow *from, Perfd__V1__SubscriberLedger *ret, Perfd__V1__Count *counts,
                         Perfd__V1__Count **dropped) {
        static const char *const orders[] = { [STREAM_BY_TIME] = "time", [STREAM_BY_CPU] = "cpu" };

        for (unsigned i = 0; i < N_SUBSCRIBER_DROPS; i++) {
                const char *of_gap = i < _GAP_REASON_MAX ? gap_reason_name((GapReason)i, from->is_relayed) : NULL;

                counts[i] = (Perfd__V1__Count)PERFD__V1__COUNT__INIT;
                counts[i].reason = (char *)(of_gap ? of_gap : "late");
                counts[i].count = i < _GAP_REASON_MAX ? from->dropped[i] : from->late;
                dropped[i] = &counts[i];
        }
        *ret = (Perfd__V1__SubscriberLedger)PERFD__V1__SUBSCRIBER_LEDGER__INIT;
        ret->id = from->id;
        ret->peer = (char *)from->peer;
        ret->matched = from->matched;
        ret->sent = from->sent;
        ret->queued = from->queued;
        ret->n_dropped = N_SUBSCRIBER_DROPS;
        ret->dropped = dropped;
        ret->balanced = from->balanced;
        ret->order = (char *)orders[from->order];
        ret->latency = from->latency;
}

/* The closing ledger with the subscriber's own row, which is final only when everything else is in its outbox. */
static Packet *subscriber_last_packet(const Subscriber *s) {
        Perfd__V1__Ledger *ledger = perfd__v1__ledger__unpack(NULL, s->n_closing_ledger, s->closing_ledger);
        Perfd__V1__SubscriberLedger row = PERFD__V1__SUBSCRIBER_LEDGER__INIT, *rows[] = { &row };
        Perfd__V1__Count counts[N_SUBSCRIBER_DROPS], *dropped[N_SUBSCRIBER_DROPS];
        Perfd__V1__StreamEnd end = PERFD__V1__STREAM_END__INIT;
        Perfd__V1__Packet message = PERFD__V1__PACKET__INIT;
        SubscriberRow numbers;
        Packet *p = NULL;
        uint8_t *bytes;
        size_t n;

        if (!ledger)
                return NULL;
        subscriber_row(s, 0, &numbers);
        subscriber_row_fill(&numbers, &row, counts, dropped);
        /* they precede this packet in the outbox: if they are not sent, this packet is not sent either */
        row.sent += s->outbox.queued_items;
        row.queued -= s->outbox.queued_items;
        ledger->n_subscribers = 1;
        ledger->subscribers = rows;
        end.reason = (char *)s->close_reason;
        end.ledger = ledger;
        message.end = &end;
        n = perfd__v1__packet__get_packed_size(&message);
        bytes = malloc(n);
        if (bytes && (p = packet_new(n))) {
                perfd__v1__packet__pack(&message, bytes);
                packet_append_field(p, bytes, n);
                packet_seal(p);
        }
        free(bytes);
        ledger->n_subscribers = 0;
        ledger->subscribers = NULL;
        perfd__v1__ledger__free_unpacked(ledger, NULL);
        return p;
}

/* Makes room for the last packet before it is written, because it contains the number of packets that were dropped. */
static int subscriber_make_last_packet(Dispatcher *d, Subscriber *s, Packet **ret) {
        uint64_t dropped;

        do {
                Packet *p = subscriber_last_packet(s);
                int r;

                if (!p)
                        return error_origin(-ENOMEM);
                dropped = outbox_dropped(&s->outbox);
                r = dispatcher_make_room(d, s, p);
                if (r == 0)
                        r = outbox_make_room(&s->outbox, p);
                packet_unref(*ret);
                *ret = p;
                if (r != 0)
                        return r;
        } while (outbox_dropped(&s->outbox) != dropped);
        return 0;
}

static int subscriber_end(Dispatcher *d, Subscriber *s) {
        Packet *p = NULL;
        int r = subscriber_make_last_packet(d, s, &p);

        if (r == 0)
                r = outbox_push(&s->outbox, p);
        packet_unref(p);
        if (r == OUTBOX_E_OVERFLOW) {
                subscriber_drop(d, s, "it does not read the end of its stream");
                return 0;
        }
        if (r < 0)
                return r;
        free(TAKE_PTR(s->closing_ledger));
        subscriber_forget_edges(d, s);
        s->ended = true;
        channel_choose_pool(s->channel);
        d->n_closing--;
        return subscriber_send(d, s);
}

/* Removals of events that happened before the stream ended are sent before its last packet. */
static bool waits_for_removal(const Dispatcher *d, const Subscriber *s) {
        for (const DispatcherCommand *command = d->removals.first; command && command->at <= s->close_at; command = command->next)
                if (command->number == s->number)
                        return true;
        return false;
}

/* True if the merge still has an entry from before the stream's end, for this or another subscriber. */
static bool is_in_merge(const Dispatcher *d, const Subscriber *s) {
        for (size_t i = 0; i < d->merge.n; i++)
                if (d->merge.batches[i]->cut < s->until)
                        return true;
        return false;
}

/*
 * False while the stream has entries in the merge. Entries of other subscribers may have a time in the future, and are not waited
 * for.
 */
static bool is_at_end(Dispatcher *d, const Subscriber *s) {
        if (s->order == STREAM_BY_CPU)
                return true;
        if (waits_for_removal(d, s))
                return false;
        if (!is_in_merge(d, s))
                return true;
        if (dispatcher_min_watermark(d) < s->close_at)
                return false;
        dispatcher_count_pending(d);
        return s->channel->pending == s->foreign;
}

/*
 * Called after a flush, when no open packet has items of these streams. CLOSE is executed after all batches from before the cut
 * have been taken.
 */
int dispatcher_end_closing(Dispatcher *d) {
        int r = 0;

        for (Channel *c = d->channels; c && r >= 0; c = c->next)
                for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                        next = s->next;
                        if (s->closing && !s->ended && is_at_end(d, s))
                                r = subscriber_end(d, s);
                }
        return r;
}
