/*
 * One turn of the dispatcher. The order of things in it is what makes streams whole: batches are popped first,
 * then mails are read, then the batches are used, so that a mail which main posted before it published a snapshot is
 * always known before the first batch of that snapshot; and what has to follow (a ledger, an end) is done after the
 * queues were emptied once more, so that it follows all that was pushed before it was posted.
 *
 * It is the dispatcher's thread that takes turns, or a reader while that thread sleeps (reader-dispatch.c): one at a time.
 */
#include "daemon/dispatcher.h"

#define BATCHES_PER_TURN 64
#define TOLD_TICK_MIN NSEC_PER_MSEC /* to sleep until one is not exact enough for shorter ones, which are rung for */

/* The mail is used up. */
static int dispatcher_follow(Dispatcher *d, DispatcherMail *mail) {
        int r = 0;

        switch (mail->order) {
        case DISPATCHER_SUBSCRIBE:
                r = dispatcher_subscribe(d, mail->subscriber);
                mail->subscriber = NULL;
                break;
        case DISPATCHER_BEGIN:
                r = dispatcher_begin(d, mail->id);
                break;
        case DISPATCHER_DESCRIBE:
                r = dispatcher_describe(d, mail->bit, mail->bytes, mail->n_bytes);
                break;
        case DISPATCHER_LEARN:
                r = dispatcher_learn(d, mail->scan);
                break;
        case DISPATCHER_REMOVED:
                dispatcher_remove(d, mail);
                return 0; /* it stays until its time */
        case DISPATCHER_REPORT:
                r = dispatcher_report(d, mail->report);
                sem_post(mail->done);
                break;
        case DISPATCHER_CLOSE:
                r = dispatcher_close(d, mail);
                break;
        case DISPATCHER_LANE_ON:
                d->live[mail->slot] = true;
                d->watermarks[mail->slot] = mail->at;
                sem_post(mail->done);
                break;
        case DISPATCHER_LANE_OFF: /* all that it pushed has been taken */
                d->live[mail->slot] = d->hearings[mail->slot].is_asked = false;
                d->watermarks[mail->slot] = DISPATCHER_NOT_WAITED_FOR;
                sem_post(mail->done);
                break;
        case DISPATCHER_QUIT:
                d->quit = true;
                break;
        }
        dispatcher_mail_free(mail);
        return r;
}

static size_t dispatcher_pop(Dispatcher *d, Batch **batches, size_t max) {
        size_t n = 0, before;

        do { /* in turns, so that one CPU can not keep the others out */
                before = n;
                for (uint32_t i = 0; i < d->n_lanes && n < max; i++) {
                        Batch *b = d->live[i] ? queue_pop(d->lanes[i].full) : NULL;

                        if (b)
                                batches[n++] = b;
                }
        } while (n > before && n < max);
        return n;
}

static int dispatcher_take_batches(Dispatcher *d, Batch **batches, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                int taken = dispatcher_take_batch(d, batches[i]);

                r = r < 0 ? r : taken;
        }
        return r;
}

int dispatcher_empty_queues(Dispatcher *d) {
        Batch *batches[BATCHES_PER_TURN];
        size_t n, most = 0;
        int r = 0;

        for (uint32_t i = 0; i < d->n_lanes; i++)
                most += d->live[i] ? d->lanes[i].full->mask + 1 : 0;
        for (size_t turns = 0; r >= 0 && turns <= most / BATCHES_PER_TURN; turns++) {
                n = dispatcher_pop(d, batches, BATCHES_PER_TURN);
                if (n == 0)
                        break;
                r = dispatcher_take_batches(d, batches, n);
        }
        return r;
}

/* Those that come first at once; those that follow are left in `following`. */
static int dispatcher_read_mails(Dispatcher *d, DispatcherMail **following, size_t max, size_t *ret_n) {
        DispatcherMail *mail;
        size_t n = 0;

        while (n < max && (mail = mailbox_pop(&d->mailbox))) {
                int r;

                if (mail->order >= DISPATCHER_BEGIN) {
                        following[n++] = mail;
                        continue;
                }
                r = dispatcher_follow(d, mail);
                if (r < 0)
                        return r;
        }
        *ret_n = n;
        return 0;
}

static void dispatcher_begin_turn(Dispatcher *d) {
        nsec_t tick = atomic_load_explicit(&d->tick, memory_order_relaxed), now;

        d->in_turn = true;
        d->tick_told = (SharedTick){ .is_due = true }; /* nobody can wait */
        if (tick < TOLD_TICK_MIN)
                return;
        now = clock_now(CLOCK_MONOTONIC);
        d->tick_told = (SharedTick){ .next = now - now % tick + tick, .length = tick };
}

int dispatcher_turn(Dispatcher *d, bool is_elsewhere) {
        Batch *batches[BATCHES_PER_TURN];
        DispatcherMail *following[8];
        size_t n_batches, n_following = 0;
        int r;

        dispatcher_begin_turn(d);
        n_batches = dispatcher_pop(d, batches, BATCHES_PER_TURN);
        r = dispatcher_read_mails(d, following, 8, &n_following);
        if (r >= 0)
                r = dispatcher_take_batches(d, batches, n_batches);
        if (r >= 0 && n_following > 0)
                r = dispatcher_empty_queues(d);
        if (!is_elsewhere)
                dispatcher_look_here(d);
        dispatcher_look_around(d);
        if (r >= 0)
                r = dispatcher_release(d);
        if (r >= 0)
                r = dispatcher_flush(d); /* what a report counts is in the merge or in an outbox, not between them */
        if (r >= 0)
                r = dispatcher_prune_tasks(d);
        for (size_t i = 0; i < n_following; i++) {
                if (r >= 0)
                        r = dispatcher_follow(d, following[i]);
                else
                        dispatcher_mail_free(following[i]);
        }
        if (n_following > 0)
                dispatcher_look_around(d); /* for what waits since then */
        if (r >= 0 && d->removals)
                r = dispatcher_tell_removals(d);
        if (r >= 0 && d->n_closing > 0)
                r = dispatcher_end_closing(d);
        return r >= 0 ? dispatcher_end_turn(d) : r;
}

bool dispatcher_has_work(const Dispatcher *d) {
        if (!queue_is_empty(&d->mailbox.mails))
                return true;
        for (uint32_t i = 0; i < d->n_lanes; i++)
                if (d->live[i] && !queue_is_empty(d->lanes[i].full))
                        return true;
        return false;
}

int dispatcher_work_elsewhere(void *userdata, nsec_t *ret_wait) {
        Dispatcher *d = userdata;
        ThreadKind before = thread_kind;
        int r;

        *ret_wait = UINT64_MAX;
        if (!queue_is_empty(&d->mailbox.mails))
                return 0;
        thread_become(THREAD_DISPATCHER);
        d->here = d->n_lanes;
        r = dispatcher_turn(d, true);
        if (r >= 0)
                *ret_wait = dispatcher_has_work(d) ? 0 : dispatcher_ask(d);
        thread_become(before);
        return r;
}
