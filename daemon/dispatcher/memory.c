/*
 * Charges queues to accounts: one for each uid, and one for all. When a queue grows while an account is used up, and it is one of
 * the large queues, it drops packets by its own overflow policy, as at its own limit. If it is small, the largest queues drop
 * some instead, by their policies. So slow subscribers bear the loss, and not one that only has a short burst.
 *
 * Finding the largest queue visits all subscribers. This is not done for each packet: a queue of at least half of the average
 * size counts as large, and what the largest queue drops is room for many packets.
 */
#include "daemon/dispatcher/cycle.h"

#include <malloc.h>

#define SHED_LEAST ((size_t)1 << 20)  /* bytes to drop from the largest queue at once */
#define TRIM_LEAST ((uint64_t)4 << 20) /* bytes freed in small pieces after which malloc_trim(3) is worth its cost */
#define GROWTH_STEP ((size_t)4 << 20) /* bytes of growth after which main is notified again */

static size_t lesser(size_t a, size_t b) {
        return a < b ? a : b;
}

/*
 * The number of bytes that it could drop, approximately. A stream's last packet states what was dropped; once it is queued,
 * nothing before it is dropped any more.
 */
static size_t sheddable(const Subscriber *s) {
        return s->ended ? 0 : lesser(s->outbox.charged, s->outbox.queued_bytes);
}

static bool is_charged_to(const Dispatcher *d, const Subscriber *s, const QueueAccount *a) {
        return a == &d->queues || a == s->account;
}

/* The subscriber with the most bytes to drop, if there are any; else NULL. */
static Subscriber *dispatcher_largest(const Dispatcher *d, const QueueAccount *a, bool has_to_go) {
        Subscriber *largest = NULL;
        size_t most = 0;

        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next) {
                        size_t n = has_to_go ? s->outbox.charged : sheddable(s);

                        if (n > most && is_charged_to(d, s, a)) {
                                largest = s;
                                most = n;
                        }
                }
        return largest;
}

static bool pays_itself(const QueueAccount *a, const Subscriber *s) {
        return 2 * s->outbox.charged >= queue_account_used(a) / (a->n_queues ? a->n_queues : 1);
}

/* Drops by the subscriber's policy, which may be to end the stream. Returns the number of bytes, or negative. */
static ssize_t subscriber_shed(Dispatcher *d, Subscriber *s, size_t bytes) {
        ssize_t n = outbox_shed(&s->outbox, bytes);
        int r = n > 0 && s->overflow == OVERFLOW_DISCONNECT ? subscriber_ask_close(d, s, "overflow") : 0;

        return r < 0 ? r : n;
}

/* Returns free memory to the system. */
static void give_back(Dispatcher *d) {
        packet_pool_trim(&d->packets);
        (void)malloc_trim(0);
        d->freed_bytes = 0;
}

int dispatcher_make_room(Dispatcher *d, const Subscriber *s, const Packet *p) {
        const size_t growth = outbox_growth(&s->outbox, p);

        for (size_t i = 0; growth > 0 && i < _OUTBOX_ACCOUNT_MAX; i++) {
                QueueAccount *a = s->outbox.accounts[i];

                while (a && queue_account_is_short(a, growth) && !pays_itself(a, s)) {
                        Subscriber *largest = dispatcher_largest(d, a, false);
                        ssize_t n = largest && largest != s ? subscriber_shed(d, largest, growth + SHED_LEAST) : 0;

                        if (n < 0)
                                return (int)n;
                        if (n == 0)
                                break;
                }
        }
        return 0;
}

/* An account that is above its limit; NULL: there is none. */
static QueueAccount *dispatcher_find_short(Dispatcher *d) {
        if (queue_account_is_short(&d->queues, 0))
                return &d->queues;
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        if (s->outbox.charged > 0 && s->account && queue_account_is_short(s->account, 0))
                                return s->account;
        return NULL;
}

int dispatcher_shed(Dispatcher *d) {
        bool any = false;
        QueueAccount *a;

        while ((a = dispatcher_find_short(d))) {
                Subscriber *s = dispatcher_largest(d, a, false);
                ssize_t n = s ? subscriber_shed(d, s, queue_account_used(a) - queue_account_limit(a)) : 0;

                if (n < 0)
                        return (int)n;
                if (n == 0) {
                        s = dispatcher_largest(d, a, true);
                        if (!s)
                                break; /* cannot happen: each charge belongs to a subscriber */
                        subscriber_drop(d, s, "perfd has no more memory for what it has not read");
                }
                any = true;
        }
        if (any)
                give_back(d);
        return 0;
}

/* When packets of many sizes are allocated and freed, free(3) can retain as much memory as is in use, or more. */
void dispatcher_note_freed(Dispatcher *d, uint64_t bytes) {
        d->freed_bytes += bytes;
        if (d->freed_bytes > TRIM_LEAST && d->freed_bytes > queue_account_used(&d->queues) / 4)
                give_back(d);
}

int dispatcher_tell_growth(Dispatcher *d) {
        const size_t used = queue_account_used(&d->queues);

        if (d->queues_mark > used + 2 * GROWTH_STEP)
                d->queues_mark = used + GROWTH_STEP;
        if (used < d->queues_mark)
                return 0;
        /* pairs with the fence in streams_on_notices(), which clears the flag and then reads the queues */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_exchange_explicit(&d->queues_told, true, memory_order_relaxed))
                return 0;
        d->queues_mark = used + GROWTH_STEP;
        return dispatcher_notify(d, DISPATCHER_QUEUES_GREW, NULL, NULL);
}
