/*
 * The ends of streams, and what the dispatcher knows for the ledger. A closing stream goes on until the merge has
 * released everything up to the cut at which it ends, and at which its closing ledger was taken; then its last packet says
 * how the numbers stand, its own row included.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* in_merge: entries that wait there for it. */
static void subscriber_row(const Subscriber *s, uint64_t in_merge, SubscriberRow *ret) {
        *ret = (SubscriberRow){ .id = s->id, .matched = s->matched - s->filtered, .sent = s->outbox.sent_items,
                                .queued = s->outbox.queued_items + in_merge, .late = s->late, .order = s->order };
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

static int subscriber_close(Dispatcher *d, Subscriber *s, const DispatcherCommand *mail) {
        if (s->closing)
                return 0;
        s->closing_ledger = malloc(mail->n_bytes ? mail->n_bytes : 1);
        if (!s->closing_ledger)
                return error_origin(-ENOMEM);
        memcpy(s->closing_ledger, mail->bytes, mail->n_bytes);
        s->n_closing_ledger = mail->n_bytes;
        s->closing = true;
        s->close_at = mail->at;
        s->close_reason = mail->reason;
        d->n_closing++;
        return 0;
}

int dispatcher_close(Dispatcher *d, const DispatcherCommand *mail) {
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        if (s->id == mail->id)
                                return subscriber_close(d, s, mail);
        return 0; /* it is gone */
}

int dispatcher_close_all(Dispatcher *d) {
        int r = 0;

        d->is_closing_all = true;
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                        next = s->next; /* it may be gone */
                        if (s->is_draining)
                                r = subscriber_send(d, s);
                }
        return r;
}

void subscriber_row_fill(const SubscriberRow *from, Perfd__V1__SubscriberLedger *ret, Perfd__V1__Count *counts,
                         Perfd__V1__Count **dropped) {
        static const char *const orders[] = { [STREAM_BY_TIME] = "time", [STREAM_BY_CPU] = "cpu" };

        for (unsigned i = 0; i < N_SUBSCRIBER_DROPS; i++) {
                counts[i] = (Perfd__V1__Count)PERFD__V1__COUNT__INIT;
                counts[i].reason = (char *)(i < _GAP_REASON_MAX ? gap_reason_name((GapReason)i) : "late");
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
}

/* The closing ledger with the subscriber's own row, which nobody can know before everything else is in its outbox. */
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
        row.sent += s->outbox.queued_items; /* they leave before this packet does, or it never does */
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

/* What of its own has to go for the last packet goes before that is written, because it says how much went. */
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
        d->n_closing--;
        return subscriber_send(d, s);
}

/* Removals of its events before the end are told before the end. */
static bool waits_for_removal(const Dispatcher *d, const Subscriber *s) {
        for (const DispatcherCommand *mail = d->removals.first; mail && mail->at <= s->close_at; mail = mail->next)
                if (mail->number == s->number)
                        return true;
        return false;
}

/* Whether something of before its end, be it of others, is still in the merge. */
static bool is_in_merge(const Dispatcher *d, const Subscriber *s) {
        for (size_t i = 0; i < d->merge.n; i++)
                if (d->merge.batches[i]->cut < s->until)
                        return true;
        return false;
}

/* What others have there may have a time that is still to come. */
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

/* After a flush: nothing of theirs is in an open packet. What was before the cut has been taken: CLOSE follows that. */
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
