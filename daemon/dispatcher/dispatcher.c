/*
 * The dispatcher's thread: what it polls, and its timeout. It holds Dispatching.lock except while it sleeps, when readers may run
 * its cycles (dispatcher/cycle.c).
 */
#include "daemon/dispatcher/ask.h"
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

#define EVENTS_PER_CYCLE 64
#define MAILBOX_SIZE 4096
#define POST_MOST NSEC_PER_SEC /* the longest time that dispatcher_post() waits for room in the mailbox */
#define DISPATCHER_NICE -15 /* a lower priority than that of readers, because ring buffers hold less than its queues */

static int on_mailbox(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Dispatcher *d = userdata;

        mailbox_quiet(&d->mailbox);
        return 0; /* the next cycle reads the commands */
}

int dispatcher_init(Dispatcher *d, BatchPipe *pipes, uint32_t n_pipes, size_t max_subscribers) {
        int r;

        d->pipes = pipes;
        d->n_pipes = n_pipes;
        d->mailbox = d->notices = MAILBOX_NULL;
        d->dispatching = DISPATCHING_NULL;
        d->next_wakeup = UINT64_MAX;
        atomic_init(&d->dispatching.tick, READER_TICK);
        atomic_init(&d->dispatching.looks_at, UINT64_MAX);
        d->told_tick_max = READER_TICK;
        d->dispatching.work = dispatcher_assist;
        d->dispatching.userdata = d;
        d->dispatching.is_shared = d->n_cpus == 0; /* with configured CPUs, no reader may run its cycles */
        d->merge = MERGE_NULL;
        queue_account_set_limit(&d->queues, SIZE_MAX); /* main sets the limit later */
        if ((r = mailbox_init(&d->mailbox, MAILBOX_SIZE)) < 0 ||
            (r = mailbox_init(&d->notices, 2 * max_subscribers + 6)) < 0 || (r = doorbell_init(&d->dispatching.bell)) < 0)
                return r;
        d->watermarks = calloc(d->n_pipes, sizeof(*d->watermarks));
        d->progress = calloc(d->n_pipes, sizeof(*d->progress));
        d->live = calloc(d->n_pipes, sizeof(*d->live));
        if (!d->watermarks || !d->progress || !d->live)
                return error_origin(-ENOMEM);
        for (uint32_t i = 0; i < d->n_pipes; i++)
                d->live[i] = true;
        r = dispatcher_init_tasks(d);
        if (r >= 0)
                r = error_origin(sd_event_new(&d->event));
        if (r >= 0)
                r = doorbell_watch(&d->dispatching.bell, sd_event_get_fd(d->event));
        if (r >= 0)
                r = error_origin(sd_event_add_io(d->event, NULL, d->mailbox.fd, EPOLLIN, on_mailbox, d));
        return r < 0 ? r : dispatcher_init_wall(d);
}

void dispatcher_set_pipe(Dispatcher *d, uint32_t slot, bool live, bool waited_for) {
        d->live[slot] = live;
        d->watermarks[slot] = waited_for ? 0 : DISPATCHER_NOT_WAITED_FOR;
}

static void dispatcher_post_kept(Dispatcher *d) {
        while (d->unposted.first) {
                /* read before the post: afterwards the dispatcher may free the command */
                DispatcherCommand *next = d->unposted.first->next;

                if (!mailbox_post(&d->mailbox, d->unposted.first))
                        return;
                d->unposted.first = next;
        }
}

void dispatcher_post_rest(Dispatcher *d) {
        dispatcher_post_kept(d);
        if (!d->unposted.first || d->expects_room)
                return;
        d->expects_room = true;
        atomic_store_explicit(&d->wants_room, true, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in dispatcher_notify_room() */
        dispatcher_post_kept(d);
}

/*
 * A change of many events for many subscriptions can need more commands than the mailbox holds. The dispatcher never waits for
 * main, so main can wait for it without a deadlock; but not without a limit, because the dispatcher's thread may be stopped.
 */
void dispatcher_post(Dispatcher *d, DispatcherCommand *command) {
        nsec_t began = 0;

        dispatcher_post_kept(d);
        while (!d->unposted.first && !mailbox_post(&d->mailbox, command)) {
                if (began == 0)
                        began = clock_now(CLOCK_MONOTONIC);
                if (clock_now(CLOCK_MONOTONIC) - began < POST_MOST) {
                        sched_yield();
                        continue;
                }
                dispatcher_commands_append(&d->unposted, command);
                dispatcher_post_rest(d);
                return;
        }
        if (d->unposted.first)
                dispatcher_commands_append(&d->unposted, command);
}

/* Handles sockets and commands. r: the result of sd_event_prepare(). */
static int dispatcher_serve(Dispatcher *d, int r) {
        if (r == 0)
                r = error_origin(sd_event_wait(d->event, 0));
        for (int i = 0; r > 0 && i < EVENTS_PER_CYCLE; i++) {
                r = error_origin(sd_event_dispatch(d->event));
                if (r < 0)
                        break;
                r = error_origin(sd_event_prepare(d->event));
                if (r == 0)
                        r = error_origin(sd_event_wait(d->event, 0));
        }
        if (r > 0)
                /* sd_event_dispatch(3) has to follow a prepare that found a source pending */
                r = error_origin(sd_event_dispatch(d->event));
        return r < 0 ? r : 0;
}

/*
 * Sleeps until this thread has work, or until the timeout. True: a socket or the mailbox is ready. Readers may run cycles
 * meanwhile; the last of them is responsible for work that becomes due later (the timer owner). A reader that releases the timer
 * rings the doorbell. The owner is therefore checked after the doorbell is armed, so that no release is missed.
 */
static bool dispatcher_wait(Dispatcher *d, nsec_t timeout) {
        Dispatching *shared = &d->dispatching;
        bool is_ready;

        atomic_store_explicit(&shared->timer_owner, NULL, memory_order_relaxed);
        doorbell_arm(&shared->bell);
        if (timeout == 0)
                return doorbell_wait(&shared->bell, 0);
        do {
                if (dispatcher_has_work(d) || dispatcher_has_new_dormant(d) || !owner_lock_release(&shared->lock))
                        return doorbell_wait(&shared->bell, 0);
                is_ready = doorbell_wait(&shared->bell, timeout);
                owner_lock_acquire(&shared->lock);
                if (is_ready)
                        return true;
                timeout = UINT64_MAX;
                doorbell_arm(&shared->bell);
        } while (atomic_load_explicit(&shared->timer_owner, memory_order_relaxed));
        return doorbell_wait(&shared->bell, 0);
}

/* Polls the doorbell directly rather than through sd-event, which would need several system calls for each wakeup. */
static int dispatcher_sleep(Dispatcher *d, nsec_t timeout) {
        int r = sd_event_get_state(d->event) == SD_EVENT_INITIAL ? error_origin(sd_event_prepare(d->event)) : 0;
        bool is_ready;

        heartbeat_sleep(&d->heartbeat);
        is_ready = dispatcher_wait(d, r > 0 ? 0 : timeout);
        heartbeat_wake(&d->heartbeat);
        counter_add(&d->wakeups, 1);
        return r < 0 ? r : r > 0 || is_ready ? dispatcher_serve(d, r) : 0;
}

static int dispatcher_loop(Dispatcher *d) {
        int r = 0;

        while (r >= 0 && !d->quit) {
                r = dispatcher_run_cycle(d, false);
                if (r >= 0 && !d->quit)
                        r = dispatcher_sleep(d, dispatcher_next_cycle(d));
        }
        return r;
}

static int dispatcher_run(void *userdata) {
        Dispatcher *d = userdata;
        int r = thread_set_priority(d->priority, DISPATCHER_NICE);

        if (r == THREAD_E_LOWERED)
                log_print(LOG_NOTICE, MESSAGE_THREAD_PRIORITY,
                          "the dispatcher runs at a nice value of %d instead of SCHED_FIFO at %d", DISPATCHER_NICE,
                          d->priority.value);
        else if (r < 0)
                log_print(LOG_NOTICE, MESSAGE_THREAD_PRIORITY, "the dispatcher runs at normal priority: %s", error_text(r));
        r = dispatcher_loop(d);
        if (r < 0) {
                log_print(LOG_CRIT, MESSAGE_THREAD_FAILED,
                          "the dispatcher cannot continue; perfd exits to be restarted: %s", error_text(r));
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

bool dispatcher_join_within(Dispatcher *d, nsec_t most) {
        return thread_join_within(&d->thread, most);
}

void dispatcher_deinit(Dispatcher *d) {
        DispatcherCommand *command;
        void *notice;

        for (Channel *c = d->channels, *next; c; c = next) {
                next = c->next;
                for (Subscriber *s = c->subscribers, *after; s; s = after) {
                        after = s->next;
                        subscriber_free(s);
                }
                packet_unref(c->tasks);
                packet_unref(c->open);
                process_condition_free(c->condition);
                free(c);
        }
        while (d->mailbox.messages.slots && (command = mailbox_pop(&d->mailbox)))
                dispatcher_command_free(command);
        while (d->notices.messages.slots && (notice = mailbox_pop(&d->notices)))
                free(notice);
        while ((command = dispatcher_commands_pop(&d->unposted)) || (command = dispatcher_commands_pop(&d->commands)) ||
               (command = dispatcher_commands_pop(&d->removals)))
                dispatcher_command_free(command);
        for (size_t i = 0; i < d->merge.n; i++)
                batch_free(d->merge.batches[i]);
        merge_deinit(&d->merge);
        dispatcher_deinit_tasks(d);
        packet_pool_trim(&d->packets);
        mailbox_deinit(&d->mailbox);
        mailbox_deinit(&d->notices);
        doorbell_deinit(&d->dispatching.bell);
        d->event = sd_event_unref(d->event);
        dispatcher_deinit_wall(d);
        free(d->watermarks);
        free(d->live);
        free(d->progress);
        free(d->late);
        d->channels = NULL;
        d->watermarks = NULL;
        d->live = NULL;
        d->progress = NULL;
        d->late = NULL;
}
