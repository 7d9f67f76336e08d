/*
 * The loop of the dispatcher. The order of things in one turn is what makes streams whole: batches are popped first,
 * then mails are read, then the batches are used, so that a mail which main posted before it published a snapshot is
 * always known before the first batch of that snapshot; and what has to follow (a ledger, an end) is done after the
 * queues were emptied once more, so that it follows all that was pushed before it was posted.
 */
#include "daemon/dispatcher.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

#define BATCHES_PER_TURN 64
#define EVENTS_PER_TURN 64
#define MAILS 4096
#define DISPATCHER_NICE -15 /* behind the readers: their rings are smaller than its queues */

static int on_mailbox(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Dispatcher *d = userdata;

        mailbox_quiet(&d->mailbox);
        return 0; /* the next turn reads the mails */
}

int dispatcher_init(Dispatcher *d, Lane *lanes, uint32_t n_lanes, size_t max_subscribers) {
        int r;

        d->lanes = lanes;
        d->n_lanes = n_lanes;
        d->mailbox = d->words = MAILBOX_NULL;
        d->doorbell = DOORBELL_NULL;
        d->merge = MERGE_NULL;
        if ((r = mailbox_init(&d->mailbox, MAILS)) < 0 ||
            (r = mailbox_init(&d->words, 2 * max_subscribers + 2)) < 0 || (r = doorbell_init(&d->doorbell)) < 0)
                return r;
        d->watermarks = calloc(d->n_lanes, sizeof(*d->watermarks));
        d->asked = calloc(d->n_lanes, sizeof(*d->asked));
        d->asked_at = calloc(d->n_lanes, sizeof(*d->asked_at));
        d->seen = calloc(d->n_lanes, sizeof(*d->seen));
        d->live = calloc(d->n_lanes, sizeof(*d->live));
        if (!d->watermarks || !d->asked || !d->asked_at || !d->seen || !d->live)
                return -ENOMEM;
        for (uint32_t i = 0; i < d->n_lanes; i++)
                d->live[i] = true;
        r = dispatcher_init_tasks(d);
        if (r >= 0)
                r = sd_event_new(&d->event);
        if (r >= 0)
                r = doorbell_watch(&d->doorbell, sd_event_get_fd(d->event));
        if (r >= 0)
                r = sd_event_add_io(d->event, NULL, d->mailbox.fd, EPOLLIN, on_mailbox, d);
        return r < 0 ? r : 0;
}

void dispatcher_set_lane(Dispatcher *d, uint32_t slot, bool live, bool waited_for) {
        d->live[slot] = live;
        d->watermarks[slot] = waited_for ? 0 : DISPATCHER_NOT_WAITED_FOR;
}

/* A change of many events for many subscriptions is more than MAILS; the dispatcher waits for nobody, and so main may for it. */
void dispatcher_post(Dispatcher *d, DispatcherMail *mail) {
        while (!mailbox_post(&d->mailbox, mail))
                sched_yield();
}

void dispatcher_mail_free(DispatcherMail *mail) {
        if (!mail)
                return;
        subscriber_free(mail->subscriber);
        task_scan_free(mail->scan);
        free(mail->bytes);
        free(mail);
}

void dispatcher_report_deinit(DispatcherReport *r) {
        free(r->subscribers);
        free(r->late);
        *r = (DispatcherReport){ .n_subscribers = 0 };
}

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
                d->live[mail->slot] = d->asked[mail->slot] = false;
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

/* Everything that was in the queues when this was called: as much as fits in them, because readers go on. */
static int dispatcher_empty_queues(Dispatcher *d) {
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

static int dispatcher_turn(Dispatcher *d) {
        Batch *batches[BATCHES_PER_TURN];
        DispatcherMail *following[8];
        size_t n_batches, n_following = 0;
        int r;

        d->in_turn = true;
        n_batches = dispatcher_pop(d, batches, BATCHES_PER_TURN);
        r = dispatcher_read_mails(d, following, 8, &n_following);
        if (r >= 0)
                r = dispatcher_take_batches(d, batches, n_batches);
        if (r >= 0 && n_following > 0)
                r = dispatcher_empty_queues(d);
        dispatcher_look(d);
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
        if (r >= 0 && d->removals)
                r = dispatcher_tell_removals(d);
        if (r >= 0 && d->n_closing > 0)
                r = dispatcher_end_closing(d);
        return r >= 0 ? dispatcher_end_turn(d) : r;
}

static bool dispatcher_has_work(const Dispatcher *d) {
        if (!queue_is_empty(&d->mailbox.mails))
                return true;
        for (uint32_t i = 0; i < d->n_lanes; i++)
                if (d->live[i] && !queue_is_empty(d->lanes[i].full))
                        return true;
        return false;
}

/* Sockets and mails, which are rare. r: what sd_event_prepare() has said. */
static int dispatcher_serve(Dispatcher *d, int r) {
        if (r == 0)
                r = sd_event_wait(d->event, 0);
        for (int i = 0; r > 0 && i < EVENTS_PER_TURN; i++) {
                r = sd_event_dispatch(d->event);
                if (r < 0)
                        break;
                r = sd_event_prepare(d->event);
                if (r == 0)
                        r = sd_event_wait(d->event, 0);
        }
        if (r > 0)
                r = sd_event_dispatch(d->event); /* sd-event wants what it has announced to be dispatched */
        return r < 0 ? r : 0;
}

/* Batches wake by the doorbell alone, past sd-event, which would make several system calls of it. */
static int dispatcher_sleep(Dispatcher *d, nsec_t timeout) {
        int r = sd_event_get_state(d->event) == SD_EVENT_INITIAL ? sd_event_prepare(d->event) : 0;
        bool is_ready;

        doorbell_arm(&d->doorbell);
        if (r > 0 || dispatcher_has_work(d))
                timeout = 0;
        heartbeat_sleep(&d->heartbeat);
        is_ready = doorbell_wait(&d->doorbell, timeout);
        heartbeat_wake(&d->heartbeat);
        counter_add(&d->wakeups, 1);
        return r < 0 ? r : r > 0 || is_ready ? dispatcher_serve(d, r) : 0;
}

static int dispatcher_loop(Dispatcher *d) {
        int r = 0;

        while (r >= 0 && !d->quit) {
                r = dispatcher_turn(d);
                if (r >= 0 && !d->quit)
                        r = dispatcher_sleep(d, dispatcher_ask(d));
        }
        return r;
}

static int dispatcher_run(void *userdata) {
        Dispatcher *d = userdata;
        int r = thread_set_priority(d->priority, DISPATCHER_NICE);

        if (r == THREAD_E_LOWERED)
                log_print(LOG_NOTICE, "the dispatcher runs at a nice value of %d instead of SCHED_FIFO at %d", DISPATCHER_NICE,
                          d->priority.value);
        else if (r < 0)
                log_print(LOG_NOTICE, "the dispatcher runs at normal priority: %s", strerror(-r));
        r = dispatcher_loop(d);
        if (r < 0) {
                log_print(LOG_CRIT, "the dispatcher can not go on, perfd ends to be restarted: %s", strerror(-r));
                abort();
        }
        return 0;
}

int dispatcher_start(Dispatcher *d) {
        return thread_start_on(&d->thread, THREAD_DISPATCHER, "dispatcher", d->cpus, d->n_cpus, dispatcher_run, d);
}

int dispatcher_join(Dispatcher *d) {
        return thread_join(&d->thread);
}

void dispatcher_deinit(Dispatcher *d) {
        DispatcherMail *mail;
        void *word;

        for (Channel *c = d->channels, *next; c; c = next) {
                next = c->next;
                for (Subscriber *s = c->subscribers, *after; s; s = after) {
                        after = s->next;
                        subscriber_free(s);
                }
                packet_unref(c->tasks);
                packet_unref(c->open);
                free(c);
        }
        while (d->mailbox.mails.slots && (mail = mailbox_pop(&d->mailbox)))
                dispatcher_mail_free(mail);
        while (d->words.mails.slots && (word = mailbox_pop(&d->words)))
                free(word);
        for (DispatcherMail *next; d->removals; d->removals = next) {
                next = d->removals->next;
                dispatcher_mail_free(d->removals);
        }
        for (size_t i = 0; i < d->merge.n; i++)
                batch_free(d->merge.batches[i]);
        merge_deinit(&d->merge);
        dispatcher_deinit_tasks(d);
        packet_pool_trim(&d->packets);
        mailbox_deinit(&d->mailbox);
        mailbox_deinit(&d->words);
        doorbell_deinit(&d->doorbell);
        d->event = sd_event_unref(d->event);
        free(d->watermarks);
        free(d->live);
        free(d->asked);
        free(d->asked_at);
        free(d->seen);
        free(d->late);
        d->channels = NULL;
        d->watermarks = NULL;
        d->live = NULL;
        d->asked = NULL;
        d->asked_at = NULL;
        d->seen = NULL;
        d->late = NULL;
}
