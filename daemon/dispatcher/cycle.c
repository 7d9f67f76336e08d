/*
 * One cycle of the dispatcher: take batches, order them, release what is due, flush, and execute commands. The order of these
 * steps guarantees that streams are complete:
 * - The mailbox is read before each batch, so that what main posted before the batch was pushed, such as descriptors of events,
 *   is known when the batch is used.
 * - A command that applies to everything pushed before it (a ledger, an end of a stream) is executed after the queues were
 *   emptied once more. If it is read in the middle of a cycle, it is executed in the next one.
 *
 * Cycles are run by the dispatcher's thread, or by a reader while that thread sleeps (reader/dispatch.c). Dispatching.lock
 * serializes them.
 */
#include "daemon/dispatcher/ask.h"
#include "daemon/dispatcher/cycle.h"

#define BATCHES_PER_CYCLE 64
/* ns: shorter ticks are too short to sleep until them, so subscribers are woken through the socket */
#define TOLD_TICK_MIN NSEC_PER_MSEC

static int dispatcher_notify_room(Dispatcher *d) {
        /* pairs with dispatcher_post_rest(), which sets the flag and then tries to post */
        atomic_thread_fence(memory_order_seq_cst);
        if (!atomic_load_explicit(&d->wants_room, memory_order_relaxed))
                return 0;
        atomic_store_explicit(&d->wants_room, false, memory_order_relaxed); /* main sets it again after the notice */
        return dispatcher_notify(d, DISPATCHER_HAS_ROOM, NULL, NULL);
}

/* Posts `done`; or, if main no longer waits, notifies it. */
static int dispatcher_answer(Dispatcher *d, DispatcherCommand *command) {
        DispatcherAsk *ask = command->ask;

        if (!ask) {
                sem_post(command->done);
                return 0;
        }
        command->ask = NULL;
        return dispatcher_ask_answer(ask) ? 0 : dispatcher_notify(d, DISPATCHER_ANSWERS, NULL, NULL);
}

/*
 * A stalled reader may continue at any time, and may then need more batches than it has before it can respond. So what it pushes
 * is still taken. Otherwise it would wait for its batches for ever, and main for its response.
 */
static void dispatcher_leave_pipe(Dispatcher *d, uint32_t slot, bool is_stalled) {
        d->live[slot] = d->live[slot] && is_stalled;
        pipe_progress_answered(&d->progress[slot]);
        d->watermarks[slot] = DISPATCHER_NOT_WAITED_FOR;
        dispatcher_set_behind(d, slot, is_stalled);
}

/* Executes a command and frees it. */
static int dispatcher_execute(Dispatcher *d, DispatcherCommand *command) {
        int r = 0;

        switch (command->kind) {
        case DISPATCHER_SUBSCRIBE:
                r = dispatcher_subscribe(d, command->subscriber);
                command->subscriber = NULL;
                break;
        case DISPATCHER_BEGIN:
                r = dispatcher_begin(d, command->id);
                break;
        case DISPATCHER_DESCRIBE:
                r = dispatcher_describe(d, command);
                break;
        case DISPATCHER_LEARN:
                r = dispatcher_learn(d, command->scan);
                break;
        case DISPATCHER_CUT:
                dispatcher_cut(d, command->id, command->cut);
                break;
        case DISPATCHER_REMOVED:
                dispatcher_commands_insert(&d->removals, command);
                return 0; /* kept until its time */
        case DISPATCHER_REPORT:
                r = dispatcher_report(d, command->cut, command->report);
                r = r < 0 ? r : dispatcher_answer(d, command);
                break;
        case DISPATCHER_SHED:
                r = dispatcher_shed(d);
                break;
        case DISPATCHER_CLOSE:
                r = dispatcher_close(d, command);
                break;
        case DISPATCHER_CLOSE_ALL:
                r = dispatcher_close_all(d);
                break;
        case DISPATCHER_PIPE_ON:
                d->live[command->slot] = true;
                d->watermarks[command->slot] = command->at;
                r = dispatcher_answer(d, command);
                break;
        case DISPATCHER_PIPE_OFF: /* everything that it pushed has been taken */
                dispatcher_leave_pipe(d, command->slot, false);
                r = dispatcher_answer(d, command);
                break;
        case DISPATCHER_PIPE_STALLED:
                dispatcher_leave_pipe(d, command->slot, true);
                break;
        case DISPATCHER_PIPE_CUT: /* everything that it pushed before has been taken */
                dispatcher_set_behind(d, command->slot, false);
                break;
        case DISPATCHER_PING:
                r = dispatcher_answer(d, command);
                break;
        case DISPATCHER_QUIT:
                d->quit = true;
                break;
        }
        dispatcher_command_free(command);
        return r;
}

static size_t dispatcher_pop(Dispatcher *d, Batch **batches, size_t max) {
        size_t n = 0, before;

        do { /* one batch of each pipe in turn, so that one CPU cannot delay the others */
                before = n;
                for (uint32_t i = 0; i < d->n_pipes && n < max; i++) {
                        Batch *b = d->live[i] ? queue_pop(d->pipes[i].full) : NULL;

                        if (b)
                                batches[n++] = b;
                }
        } while (n > before && n < max);
        return n;
}

/* Reads all commands: executes those that precede batches at once, and keeps the others in order. */
static int dispatcher_read_commands(Dispatcher *d) {
        size_t n = queue_count(&d->mailbox.messages);
        bool any = n > 0;
        int r = 0;

        for (; n > 0 && r >= 0; n--) {
                DispatcherCommand *command = mailbox_pop(&d->mailbox);

                if (command->kind >= DISPATCHER_BEGIN)
                        dispatcher_commands_append(&d->commands, command);
                else
                        r = dispatcher_execute(d, command);
        }
        return any && r >= 0 ? dispatcher_notify_room(d) : r;
}

/*
 * Called before each batch: what main posted before the batch was pushed is executed first. Not called in the middle of an
 * operation.
 */
static int dispatcher_prepare(Dispatcher *d) {
        int r;

        if (queue_is_empty(&d->mailbox.messages))
                return 0;
        r = dispatcher_flush(d);
        return r < 0 ? r : dispatcher_read_commands(d);
}

static int dispatcher_take_batches(Dispatcher *d, Batch **batches, size_t n) {
        int r = n > 0 ? dispatcher_hear_uids(d) : 0;

        if (n > 0)
                dispatcher_look_at_wall(d);
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

/* Publishes the shortest tick of all readers, for those that report at each tick, and returns it. */
static nsec_t dispatcher_find_tick(Dispatcher *d) {
        const nsec_t before = atomic_load_explicit(&d->dispatching.tick, memory_order_relaxed);
        nsec_t least = UINT64_MAX;

        for (uint32_t i = 0; i < d->n_pipes; i++) {
                const bool has_tick = d->live[i] && d->pipes[i].tick;
                nsec_t tick = has_tick ? atomic_load_explicit(d->pipes[i].tick, memory_order_relaxed) : UINT64_MAX;

                least = tick < least ? tick : least;
        }
        if (least == UINT64_MAX || least == before)
                return before;
        atomic_store_explicit(&d->dispatching.tick, least, memory_order_relaxed);
        return least;
}

static void dispatcher_begin_cycle(Dispatcher *d) {
        nsec_t tick = dispatcher_find_tick(d), now;

        d->in_cycle = true;
        d->tick_told = (SharedTick){ .is_due = true }; /* no subscriber may delay its wakeup */
        if (tick < TOLD_TICK_MIN || tick > d->told_tick_max)
                return;
        now = clock_now(CLOCK_MONOTONIC);
        d->tick_told = (SharedTick){ .next = now - now % tick + tick, .length = tick };
}

int dispatcher_run_cycle(Dispatcher *d, bool is_assist) {
        Batch *batches[BATCHES_PER_CYCLE];
        DispatcherCommandList commands;
        DispatcherCommand *command;
        size_t n_batches;
        bool was_told;
        int r;

        dispatcher_begin_cycle(d);
        n_batches = dispatcher_pop(d, batches, BATCHES_PER_CYCLE);
        r = dispatcher_read_commands(d);
        commands = d->commands;
        d->commands = DISPATCHER_COMMAND_LIST_NULL;
        if (r >= 0)
                r = dispatcher_take_batches(d, batches, n_batches);
        if (r >= 0 && commands.first)
                r = dispatcher_empty_queues(d);
        if (!is_assist)
                dispatcher_look_here(d);
        dispatcher_look_around(d);
        if (r >= 0)
                r = dispatcher_release(d);
        if (r >= 0 && d->is_wall_set)
                r = dispatcher_tell_wall(d);
        if (r >= 0)
                r = dispatcher_flush(d); /* a report counts what is in the merge or in an outbox; nothing is in between now */
        if (r >= 0)
                r = dispatcher_prune_tasks(d);
        was_told = commands.first;
        while ((command = dispatcher_commands_pop(&commands)))
                if (r >= 0)
                        r = dispatcher_execute(d, command);
                else
                        dispatcher_command_free(command);
        if (was_told) {
                dispatcher_look_around(d); /* for items that have arrived since, */
                if (r >= 0)
                        r = dispatcher_release(d); /* after everything that has to precede it */
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
        if (!queue_is_empty(&d->mailbox.messages) || d->commands.first)
                return true;
        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (d->live[i] && !queue_is_empty(d->pipes[i].full))
                        return true;
        return false;
}

nsec_t dispatcher_next_cycle(Dispatcher *d) {
        nsec_t asked = dispatcher_ask(d), dormant = dispatcher_look_for_dormant(d), wakeup = dispatcher_until_wakeup(d);
        nsec_t earlier = asked < dormant ? asked : dormant;

        return earlier < wakeup ? earlier : wakeup;
}

int dispatcher_assist(void *userdata, nsec_t *ret_wait) {
        Dispatcher *d = userdata;
        ThreadKind before = thread_kind;
        int r;

        *ret_wait = UINT64_MAX;
        if (!queue_is_empty(&d->mailbox.messages) || d->commands.first)
                return 0; /* work for the dispatcher, which readers wake */
        thread_become(THREAD_DISPATCHER);
        d->here = d->n_pipes;
        r = dispatcher_run_cycle(d, true);
        if (r >= 0)
                *ret_wait = dispatcher_has_work(d) ? 0 : dispatcher_next_cycle(d);
        thread_become(before);
        return r;
}
