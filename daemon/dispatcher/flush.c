/* Sends packets to the subscribers of their channel: each is appended to the outbox, and sent at once if the outbox was empty. */
#include "daemon/dispatcher/cycle.h"

#include <stdlib.h>

int subscriber_push(Dispatcher *d, Subscriber *s, Packet *p) {
        const uint64_t freed = s->outbox.freed_bytes;
        int r;

        if (s->ended)
                return 0;
        r = dispatcher_make_room(d, s, p);
        if (r == 0)
                r = outbox_push(&s->outbox, p);
        if (r == 0 || r == OUTBOX_E_OVERFLOW) {
                int told = dispatcher_tell_growth(d);

                if (s->outbox.freed_bytes > freed)
                        dispatcher_note_freed(d, s->outbox.freed_bytes - freed);
                r = told < 0 ? told : r;
        }
        if (r < 0)
                return r;
        if (r == OUTBOX_E_OVERFLOW && s->overflow != OVERFLOW_DISCONNECT) {
                subscriber_drop(d, s, "it does not read descriptions that must not be dropped");
                return 0;
        }
        if (r == OUTBOX_E_OVERFLOW)
                r = subscriber_ask_close(d, s, "overflow"); /* what is dropped until main answers is in the last gap */
        return r < 0 ? r : subscriber_send(d, s);
}

static int channel_send_to(Dispatcher *d, Subscriber *s, Packet *p) {
        int r = p->buffers ? subscriber_send_ref(d, s, p) : 0;

        return r != 0 ? r : subscriber_push(d, s, p);
}

int channel_send(Dispatcher *d, Channel *c, Packet *p) {
        int r = 0;

        if (!p)
                return 0;
        if (p->is_reserved)
                return channel_send_reserved(d, c, p);
        packet_seal(p);
        for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                next = s->next; /* subscriber_push() may free it */
                if (p->n_items == 0 || subscriber_gets(s, *c->side))
                        r = channel_send_to(d, s, p);
        }
        if (p->n_refs > 1) {
                int settled = packet_settle(p, &d->packets);

                r = r < 0 ? r : settled;
        }
        packet_unref(p);
        return r;
}

int channel_flush(Dispatcher *d, Channel *c) {
        int r = channel_send(d, c, TAKE_PTR(c->tasks)), sent = channel_send(d, c, TAKE_PTR(c->open));

        return r < 0 ? r : sent;
}

/* Removes a channel whose last subscriber has left. */
static void dispatcher_remove_channel(Dispatcher *d, Channel *c) {
        ChannelGroup *group = &d->groups[c->order][BATCH_GROUP(c->number)];

        for (Channel **p = &d->to_wake; c->is_to_wake && *p; p = &(*p)->next_to_wake)
                if (*p == c) {
                        *p = c->next_to_wake;
                        break;
                }
        if (c->before)
                c->before->next = c->next;
        else
                d->channels = c->next;
        if (c->next)
                c->next->before = c->before;
        group->by_bit[c->number % BATCH_BITS] = NULL;
        group->bits &= ~BATCH_BIT(c->number);
        d->n_channels[c->order]--;
        d->n_channel_changes++;
        process_condition_free(c->condition);
        free(c);
}

/* A subscriber that leaves during the flush makes its channel unflushed again; it may be the current channel. */
int dispatcher_flush(Dispatcher *d) {
        int r = 0;

        while (d->unflushed && r >= 0) {
                Channel *c = d->unflushed;

                d->unflushed = c->next_unflushed;
                r = channel_flush(d, c);
                c->is_unflushed = false;
                if (!c->subscribers)
                        dispatcher_remove_channel(d, c);
        }
        packet_pool_end_cycle(&d->packets);
        return r;
}
