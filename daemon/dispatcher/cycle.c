/*
 * One cycle of the dispatcher: take batches, order them, release what is due, flush, and execute commands. The order of these steps
 * is what makes streams complete:
 * - The mailbox is read before each batch, so that what main posted before that batch was pushed (descriptors of events, above all)
 *   is known when the batch is used.
 * - A command that has to follow what was pushed before it (a ledger, an end) is executed after the queues were emptied once more.
 *   One that is read in the middle of a cycle is executed in the next one.
 *
 * Cycles are run by the dispatcher's thread, or by a reader while that thread sleeps (reader/dispatch.c). Dispatching.lock
 * makes them one at a time.
 */
#include "daemon/dispatcher/ask.h"
#include "daemon/dispatcher/cycle.h"

#define BATCHES_PER_CYCLE 64
#define TOLD_TICK_MIN NSEC_PER_MSEC /* to sleep until one is not exact enough for shorter ones, which are rung for */

static int dispatcher_say_room(Dispatcher *d) {
        atomic_thread_fence(memory_order_seq_cst); /* the other side: dispatcher_post_rest(), which stores it and looks for room */
        if (!atomic_load_explicit(&d->wants_room, memory_order_relaxed))
                return 0;
        atomic_store_explicit(&d->wants_room, false, memory_order_relaxed); /* main sets it when it has heard */
        return dispatcher_say(d, DISPATCHER_HAS_ROOM, NULL, NULL);
}

/* Who waits for it goes on, or has left. */
static int dispatcher_answer(Dispatcher *d, DispatcherCommand *mail) {
        DispatcherAsk *ask = mail->ask;

        if (!ask) {
                sem_post(mail->done);
                return 0;
        }
        mail->ask = NULL;
        return dispatcher_ask_answer(ask) ? 0 : dispatcher_say(d, DISPATCHER_ANSWERS, NULL, NULL);
}

/*
 * A stalled reader may go on at any time, and can then need more batches than it has before it answers: what it pushes is taken
 * all the same, or it would wait for its batches, and main for its answer, for ever.
 */
static void dispatcher_leave_pipe(Dispatcher *d, uint32_t slot, bool is_stalled) {
        d->live[slot] = d->live[slot] && is_stalled;
        hearing_answered(&d->progress[slot]);
        d->watermarks[slot] = DISPATCHER_NOT_WAITED_FOR;
        dispatcher_set_behind(d, slot, is_stalled);
}

/* The mail is used up. */
static int dispatcher_execute(Dispatcher *d, DispatcherCommand *mail) {
        int r = 0;

        switch (mail->kind) {
        case DISPATCHER_SUBSCRIBE:
                r = dispatcher_subscribe(d, mail->subscriber);
                mail->subscriber = NULL;
                break;
        case DISPATCHER_BEGIN:
                r = dispatcher_begin(d, mail->id);
                break;
        case DISPATCHER_DESCRIBE:
                r = dispatcher_describe(d, mail);
                break;
        case DISPATCHER_LEARN:
                r = dispatcher_learn(d, mail->scan);
                break;
        case DISPATCHER_CUT:
                dispatcher_cut(d, mail->id, mail->cut);
                break;
        case DISPATCHER_REMOVED:
                dispatcher_mails_insert(&d->removals, mail);
                return 0; /* it stays until its time */
        case DISPATCHER_REPORT:
                r = dispatcher_report(d, mail->cut, mail->report);
                r = r < 0 ? r : dispatcher_answer(d, mail);
                break;
        case DISPATCHER_SHED:
                r = dispatcher_shed(d);
                break;
        case DISPATCHER_CLOSE:
                r = dispatcher_close(d, mail);
                break;
        case DISPATCHER_CLOSE_ALL:
                r = dispatcher_close_all(d);
                break;
        case DISPATCHER_PIPE_ON:
                d->live[mail->slot] = true;
                d->watermarks[mail->slot] = mail->at;
                r = dispatcher_answer(d, mail);
                break;
        case DISPATCHER_PIPE_OFF: /* all that it pushed has been taken */
                dispatcher_leave_pipe(d, mail->slot, false);
                r = dispatcher_answer(d, mail);
                break;
        case DISPATCHER_PIPE_STALLED:
                dispatcher_leave_pipe(d, mail->slot, true);
                break;
        case DISPATCHER_PIPE_CUT: /* all that it pushed before has been taken */
                dispatcher_set_behind(d, mail->slot, false);
                break;
        case DISPATCHER_SPEAK:
                r = dispatcher_answer(d, mail);
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

        do { /* in turns, so that one CPU cannot keep the others out */
                before = n;
                for (uint32_t i = 0; i < d->n_pipes && n < max; i++) {
                        Batch *b = d->live[i] ? queue_pop(d->pipes[i].full) : NULL;

                        if (b)
                                batches[n++] = b;
                }
        } while (n > before && n < max);
        return n;
}

/* All that are there now: those that come first at once, the others are kept in the order in which they came. */
static int dispatcher_read_mails(Dispatcher *d) {
        size_t n = queue_count(&d->mailbox.mails);
        bool any = n > 0;
        int r = 0;

        for (; n > 0 && r >= 0; n--) {
                DispatcherCommand *mail = mailbox_pop(&d->mailbox);

                if (mail->kind >= DISPATCHER_BEGIN)
                        dispatcher_mails_append(&d->following, mail);
                else
                        r = dispatcher_execute(d, mail);
        }
        return any && r >= 0 ? dispatcher_say_room(d) : r;
}

/* Before a batch: what main posted before that was pushed. Mails are followed when nothing is half done. */
static int dispatcher_prepare(Dispatcher *d) {
        int r;

        if (queue_is_empty(&d->mailbox.mails))
                return 0;
        r = dispatcher_flush(d);
        return r < 0 ? r : dispatcher_read_mails(d);
}

static int dispatcher_take_batches(Dispatcher *d, Batch **batches, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                int prepared = r < 0 ? r : dispatcher_prepare(d), taken = dispatcher_take_batch(d, batches[i]);

                r = prepared < 0 ? prepared : taken;
        }
        return r;
}

int dispatcher_empty_queues(Dispatcher *d) {
        Batch *batches[BATCHES_PER_CYCLE];
        size_t n, most = 0;
        int r = 0;

        for (uint32_t i = 0; i < d->n_pipes; i++)
                most += d->live[i] ? d->pipes[i].full->mask + 1 : 0;
        for (size_t turns = 0; r >= 0 && turns <= most / BATCHES_PER_CYCLE; turns++) {
                n = dispatcher_pop(d, batches, BATCHES_PER_CYCLE);
                if (n == 0)
                        break;
                r = dispatcher_take_batches(d, batches, n);
        }
        return r;
}

static void dispatcher_begin_cycle(Dispatcher *d) {
        nsec_t tick = atomic_load_explicit(&d->tick, memory_order_relaxed), now;

        d->in_cycle = true;
        d->tick_told = (SharedTick){ .is_due = true }; /* nobody can wait */
        if (tick < TOLD_TICK_MIN)
                return;
        now = clock_now(CLOCK_MONOTONIC);
        d->tick_told = (SharedTick){ .next = now - now % tick + tick, .length = tick };
}

int dispatcher_run_cycle(Dispatcher *d, bool is_assist) {
        Batch *batches[BATCHES_PER_CYCLE];
        DispatcherMails following;
        DispatcherCommand *mail;
        size_t n_batches;
        bool was_told;
        int r;

        dispatcher_begin_cycle(d);
        n_batches = dispatcher_pop(d, batches, BATCHES_PER_CYCLE);
        r = dispatcher_read_mails(d);
        following = d->following;
        d->following = DISPATCHER_MAILS_NULL;
        if (r >= 0)
                r = dispatcher_take_batches(d, batches, n_batches);
        if (r >= 0 && following.first)
                r = dispatcher_empty_queues(d);
        if (!is_assist)
                dispatcher_look_here(d);
        dispatcher_look_around(d);
        if (r >= 0)
                r = dispatcher_release(d);
        if (r >= 0)
                r = dispatcher_flush(d); /* what a report counts is in the merge or in an outbox, not between them */
        if (r >= 0)
                r = dispatcher_prune_tasks(d);
        was_told = following.first;
        while ((mail = dispatcher_mails_pop(&following)))
                if (r >= 0)
                        r = dispatcher_execute(d, mail);
                else
                        dispatcher_mail_free(mail);
        if (was_told) {
                dispatcher_look_around(d); /* for what waits since then, */
                if (r >= 0)
                        r = dispatcher_release(d); /* behind all that has to be before it */
                if (r >= 0)
                        r = dispatcher_flush(d);
        }
        if (r >= 0 && d->removals.first)
                r = dispatcher_tell_removals(d);
        if (r >= 0 && d->n_closing > 0)
                r = dispatcher_end_closing(d);
        if (d->n_edges > 0)
                dispatcher_pass_beginnings(d);
        return r >= 0 ? dispatcher_end_cycle(d) : r;
}

bool dispatcher_has_work(const Dispatcher *d) {
        if (!queue_is_empty(&d->mailbox.mails) || d->following.first)
                return true;
        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (d->live[i] && !queue_is_empty(d->pipes[i].full))
                        return true;
        return false;
}

int dispatcher_assist(void *userdata, nsec_t *ret_wait) {
        Dispatcher *d = userdata;
        ThreadKind before = thread_kind;
        int r;

        *ret_wait = UINT64_MAX;
        if (!queue_is_empty(&d->mailbox.mails) || d->following.first)
                return 0; /* by the dispatcher, which they wake */
        thread_become(THREAD_DISPATCHER);
        d->here = d->n_pipes;
        r = dispatcher_run_cycle(d, true);
        if (r >= 0)
                *ret_wait = dispatcher_has_work(d) ? 0 : dispatcher_ask(d);
        thread_become(before);
        return r;
}
