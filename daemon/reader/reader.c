/*
 * The loop of a reader: sleep until the ring's watermark, a command or the next tick; drain; execute commands; push; wake the
 * dispatcher once.
 *
 * How long it sleeps is decided in reader/pace.c. With only a watermark (perf_event_open(2), wakeup_watermark), the tail of a burst
 * would stay in the ring for ever. Without an enabled event there is no timeout.
 */
#include "daemon/reader/cycle.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/decode/record-base.h"
#include "daemon/kernel/event/open.h"

#define MAILBOX_SIZE 64
#define BACKUP_STARVED (250 * NSEC_PER_USEC)
#define READER_NICE -19 /* without SCHED_FIFO: the programs that fill the ring are those that keep its reader from the CPU */

int reader_init(Reader *r, size_t pool) {
        size_t n_batches = pool / (BATCH_ARENA + BATCH_ENTRIES * sizeof(BatchEntry));
        int error;

        if (n_batches < 2)
                n_batches = 2;
        r->n_pool = n_batches;
        r->mailbox = MAILBOX_NULL;
        r->full = r->free = QUEUE_NULL;
        r->lock = (OwnerLock){ .word = 0 };
        r->is_backup = r->is_moved = r->is_watched = false;
        r->asks = 0;
        r->has_stopped = r->has_said = false;
        r->overdue_at = UINT64_MAX;
        r->backup_state = BACKUP_NONE;
        r->backup = THREAD_NULL;
        r->said_at = r->backup_cpu_time = 0;
        atomic_init(&r->cpu_clock, CLOCK_THREAD_CPUTIME_ID); /* until its thread runs: of the calling thread */
        r->snapshot = NULL;
        r->batch = NULL;
        r->spare = NULL;
        record_begin_base(&r->in_place);
        r->in_place.cpu = r->cpu;
        r->command = NULL;
        r->holds = false;
        r->watermark = 0;
        r->comm_tid = UINT32_MAX;
        reader_set_default_pace(r);
        r->slice_began = r->paused = 0;
        r->next_read = UINT64_MAX;
        r->read_pass = 0;
        r->not_notified = 0;
        r->has_rung = false;
        r->cycle_due = UINT64_MAX;
        r->next_look = 0;
        r->has_read_early = false;
        r->is_asked = false;
        r->reports_until = 0;
        r->view = RING_VIEW_NULL;
        if ((error = mailbox_init(&r->mailbox, MAILBOX_SIZE)) < 0 ||
            (error = queue_init(&r->full, n_batches + READER_MORE_BATCHES)) < 0 ||
            (error = queue_init(&r->free, n_batches + READER_MORE_BATCHES)) < 0)
                return error;
        r->spare = calloc(n_batches + READER_MORE_BATCHES, sizeof(*r->spare));
        r->n_spare = r->n_more = 0;
        if (!r->spare)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n_batches; i++) {
                Batch *b = batch_new(r->slot);

                if (!b)
                        return error_origin(-ENOMEM);
                queue_push(&r->free, b); /* always fits: the queue has a slot for each batch */
        }
        error = reader_init_backlog(r);
        return error < 0 ? error : sample_layout_init_type(&r->side_layout, SAMPLE_TYPE_BASE);
}

void reader_renew(Reader *r) {
        r->snapshot = snapshot_unref(r->snapshot);
        r->holds = false; /* has_stopped stays set, so that no backup is started for a closed ring */
        r->asks = 0;
        r->overdue_at = UINT64_MAX;
        r->is_watched = false;
        r->watermark = 0;
        reader_set_default_pace(r);
        r->next_read = UINT64_MAX;
        r->has_read_early = false;
        r->comm_tid = UINT32_MAX;
        r->backlog.scanned = UINT64_MAX; /* larger than any head: starts again */
}

static ReaderCommand *reader_command_free(ReaderCommand *command) {
        if (!command)
                return NULL;
        snapshot_unref(command->snapshot);
        cut_scope_unref(command->scope);
        read_budget_unref(command->budget);
        free(command);
        return NULL;
}

void reader_deinit(Reader *r) {
        Batch *b;
        ReaderCommand *command;

        while (r->full.slots && (b = queue_pop(&r->full)))
                batch_free(b);
        while (r->free.slots && (b = queue_pop(&r->free)))
                batch_free(b);
        while (r->n_spare > 0)
                batch_free(r->spare[--r->n_spare]);
        free(r->spare);
        r->spare = NULL;
        while (r->mailbox.messages.slots && (command = mailbox_pop(&r->mailbox)))
                reader_command_free(command);
        r->command = reader_command_free(r->command);
        r->batch = batch_free(r->batch);
        r->snapshot = snapshot_unref(r->snapshot);
        free(r->backlog.least);
        r->backlog.least = NULL;
        queue_deinit(&r->full);
        queue_deinit(&r->free);
        mailbox_deinit(&r->mailbox);
        ring_close(&r->ring);
        ring_close(&r->retiring);
}

void reader_post(Reader *r, ReaderCommand *command) {
        bool posted = mailbox_post(&r->mailbox, command);

        assert(posted); /* main waits for each acknowledgement, so the mailbox is never full */
}

static void reader_wake_main(const Reader *r) {
        ssize_t n = write(r->acknowledge_fd, &(uint64_t){ 1 }, sizeof(uint64_t));

        assert(n == sizeof(uint64_t) || errno == EAGAIN);
}

static void reader_acknowledge(Reader *r, uint64_t sequence) {
        atomic_store_explicit(&r->acknowledged, sequence, memory_order_release);
        reader_wake_main(r);
}

static void reader_adopt(Reader *r, Snapshot *snapshot) {
        (void)reader_push_batch(r); /* the masks in it are of the old snapshot */
        snapshot_unref(r->snapshot);
        r->snapshot = snapshot;
        reader_set_pace(r);
        r->next_read = 0; /* to be determined */
}

/* Called when all that was read before the cut has been pushed. */
static void reader_end_cut(Reader *r, uint64_t number) {
        if (number > 0)
                r->cut = number;
}

/* In two passes, as open_switch_all(), and in slices. READER_E_STARVED: it goes on where it was. */
static int reader_switch(Reader *r, ReaderCommand *command) {
        reader_begin_slices(r);
        while (command->n_switched < 2 * command->n_fds && *command->ret_error == 0) {
                int error;

                *command->ret_error = open_switch(command->fds[command->n_switched++ % command->n_fds], command->on);
                error = reader_end_slice(r);
                if (error != 0)
                        return error;
        }
        return 0;
}

/*
 * Executes one command. It applies to everything behind the present position of the ring, up to which the caller has drained.
 * READER_E_STARVED: not executed yet.
 */
static int reader_do(Reader *r, ReaderCommand *command) {
        int error;

        switch (command->kind) {
        case READER_SET_SNAPSHOT:
                error = command->turned ? reader_find_boundary(r, command->snapshot, command->turned) : 0;
                error = error == 0 ? reader_read_disabled(r, command->snapshot) : error;
                if (error == 0 && command->cut > 0)
                        error = reader_cut(r, command->scope);
                if (error != 0)
                        return error;
                reader_adopt(r, command->snapshot);
                reader_end_cut(r, command->cut);
                command->snapshot = NULL;
                break;
        case READER_SWITCH:
        case READER_CUTOVER:
                error = reader_switch(r, command);
                if (error != 0)
                        return error;
                if (command->kind == READER_CUTOVER && *command->ret_error == 0)
                        *command->ret_error = reader_hand_over(r);
                if (!command->on && command->n_fds > 0)
                        reader_wait_guard(r); /* records of occurrences in progress are read while their streams are known */
                break;
        case READER_CUT:
                error = reader_cut(r, command->scope);
                if (error != 0)
                        return error;
                (void)reader_push_batch(r); /* READER_E_STARVED: it had no entries */
                reader_end_cut(r, command->cut);
                atomic_store_explicit(&r->cpu_time, reader_cpu_time(r), memory_order_relaxed);
                break;
        case READER_RING:
                *command->ret_error = reader_begin_ring(r, command->ring, command->on);
                break;
        case READER_RETIRE:
                error = reader_retire(r);
                if (error != 0)
                        return error;
                break;
        case READER_STOP:
                (void)reader_push_batch(r);
                r->has_stopped = true;
                break;
        }
        return 0;
}

/* What it takes is measured, also when it is to be tried again. */
static int reader_execute(Reader *r, ReaderCommand *command) {
        nsec_t began;
        int error;

        if (!command->budget)
                return reader_do(r, command);
        began = clock_now(CLOCK_THREAD_CPUTIME_ID);
        error = reader_do(r, command);
        read_account_charge_request(&command->budget->accounts[r->slot], clock_now(CLOCK_MONOTONIC),
                                    clock_now(CLOCK_THREAD_CPUTIME_ID) - began);
        return error;
}

/* Negative: fatal. */
static int reader_execute_commands(Reader *r) {
        while (!r->has_stopped && (r->command || (r->command = mailbox_pop(&r->mailbox)))) {
                int error = reader_execute(r, r->command);

                if (error != 0)
                        return error;
                reader_acknowledge(r, r->command->sequence);
                r->command = reader_command_free(r->command);
        }
        return 0;
}

static bool reader_is_read_due(const Reader *r) {
        if (r->next_read == UINT64_MAX)
                return false;
        return r->clock == CLOCK_REALTIME || clock_now(r->clock) >= r->next_read; /* CLOCK_REALTIME may be set back */
}

/* True if the dispatcher waits for this reader's watermark at each tick, with or without records. */
static bool reader_has_to_report(const Reader *r) {
        nsec_t until = atomic_load_explicit(&r->reports_until, memory_order_relaxed);

        return until > 0 && r->snapshot->active && clock_now(CLOCK_MONOTONIC) < until;
}

/* The next tick, or the next read of counts if it is earlier. */
static nsec_t reader_next_look(const Reader *r, nsec_t now) {
        nsec_t wait = reader_next_tick(r, now) - now;
        nsec_t then, due;

        if (r->next_read == UINT64_MAX)
                return wait;
        then = clock_now(r->clock);
        due = r->next_read > then ? r->next_read - then : 0;
        return due < wait ? due : wait;
}

/*
 * The timeout in ns; UINT64_MAX: there is nothing to wake for. can_look: at its ring, then. If this reader owns the dispatcher's timer and the next tick is
 * near, it wakes once before the tick for that cycle, which handles what waits only because another CPU was busy for a moment. If
 * that takes longer, it can wait for the tick.
 */
static nsec_t reader_timeout(const Reader *r, nsec_t now, bool can_look) {
        nsec_t cycle = reader_next_cycle(r);
        nsec_t wait = r->snapshot->active && can_look ? reader_next_look(r, now) : UINT64_MAX;
        bool is_between = now < r->next_look;

        if (cycle == UINT64_MAX || (wait <= r->tick_min && is_between))
                return wait;
        cycle = cycle > now ? cycle - now : 0;
        return cycle < wait ? cycle : wait;
}

/*
 * True if it may continue to sleep. The kernel wakes it each time that half of a ring has been written, whatever was read
 * meanwhile: during a flood in the middle of any tick, and what is in the ring then can wait for the tick's end. Not if an event
 * requests wakeups of its own.
 */
static bool reader_is_woken_early(const Reader *r, const struct pollfd *mailbox, const struct pollfd *carrier) {
        return mailbox->revents == 0 && carrier->revents == POLLIN && !r->is_in_vain && !r->snapshot->wakes &&
               !r->retiring.page && ring_head(&r->ring) - r->ring.tail < r->ring.size / READER_EARLY_SHARE;
}

/* Releases the lock, which it holds again when it returns. False, without the lock: this backup is no longer needed. */
static bool reader_sleep(Reader *r, bool starved, bool as_backup) {
        struct pollfd fds[] = { { .fd = as_backup ? -1 : r->mailbox.fd, .events = POLLIN },
                                { .fd = starved ? -1 : r->carrier_fd, .events = POLLIN } };
        const bool is_dormant = !starved && !as_backup && reader_can_be_dormant(r);
        nsec_t now = clock_now(CLOCK_MONOTONIC), wait = reader_timeout(r, now, !starved && !is_dormant), due;
        bool is_back = false;

        if (as_backup && starved)
                wait = BACKUP_STARVED; /* the mailbox's fd reports that batches are back, which only the reader itself handles */
        else if (as_backup && wait > r->tick_min)
                wait = r->tick_min;
        due = wait == UINT64_MAX ? UINT64_MAX : now + wait;
        if (!starved) /* otherwise the records due at that tick are still to come */
                r->next_look = reader_next_tick(r, now);
        ring_view_set_quiet(&r->view, !starved && (!r->batch || r->batch->n_entries == 0));
        if (is_dormant)
                reader_become_dormant(r);
        heartbeat_sleep(&r->heartbeat);
        if (!as_backup)
                reader_watch(r, due, r->snapshot->active && !starved);
        owner_lock_leave(&r->lock);
        if (!as_backup)
                reader_go_home(r);
        do {
                struct timespec ts = nsec_timespec(due - now);
                int n = ppoll(fds, 2, due == UINT64_MAX ? NULL : &ts, NULL);

                assert(n >= 0 || errno == EINTR);
                if (!reader_acquire_lock(r, as_backup, &is_back))
                        return false;
                counter_add(&r->counters.wakeups, 1);
                now = n > 0 && !is_back && reader_is_woken_early(r, &fds[0], &fds[1]) ? clock_now(CLOCK_MONOTONIC) : due;
                if (now < due)
                        owner_lock_leave(&r->lock);
        } while (now < due);
        heartbeat_wake(&r->heartbeat);
        ring_view_set_quiet(&r->view, false);
        if (is_dormant)
                atomic_store_explicit(&r->view.is_dormant, false, memory_order_relaxed);
        if (fds[0].revents)
                mailbox_quiet(&r->mailbox);
        return true;
}

int reader_read(Reader *r, bool *ret_is_starved) {
        uint64_t before = counter_get(&r->counters.records);
        bool is_reporting;
        int error;

        r->asks |= mailbox_take_asks(&r->mailbox);
        r->is_asked = r->asks & READER_ASK_WATERMARK;
        error = reader_drain(r);
        if (error == 0 && reader_may_execute(r))
                error = reader_execute_commands(r);
        if (error == 0 && reader_is_read_due(r))
                error = reader_read_intervals(r, &r->next_read);
        is_reporting = reader_has_to_report(r);
        if (error == 0 && ((r->batch && r->batch->n_entries > 0) || (r->asks & READER_ASK_WATERMARK) || is_reporting))
                error = reader_push_batch(r);
        if (error < 0)
                return error;
        if (error == 0)
                r->asks = 0;
        *ret_is_starved = error == READER_E_STARVED;
        error = reader_hand_off(r, error == 0 && !r->has_stopped); /* also without a free batch: only dispatching returns batches */
        if (error == 0 && !r->has_stopped)
                reader_choose_wait(r, is_reporting, counter_get(&r->counters.records) != before);
        return error;
}

int reader_loop(Reader *r, bool as_backup) {
        while (!r->has_stopped) {
                bool is_starved;
                int error = reader_read(r, &is_starved);

                if (error < 0)
                        return error;
                if (!r->has_stopped && !reader_sleep(r, is_starved, as_backup))
                        return 0;
        }
        reader_release_timer(r);
        if (as_backup)
                reader_let_end(r);
        owner_lock_leave(&r->lock);
        return 0;
}

/* Logged once, because it is the same for all readers. */
void reader_set_priority(const Reader *r) {
        static atomic_flag said = ATOMIC_FLAG_INIT;
        int error = thread_set_priority(r->priority, READER_NICE);

        if (error == 0 || atomic_flag_test_and_set(&said))
                return;
        if (error == THREAD_E_LOWERED)
                log_print(LOG_NOTICE, MESSAGE_THREAD_PRIORITY,
                          "readers run at a nice value of %d instead of SCHED_FIFO at %d, and may lose samples when "
                          "their CPUs are busy: LimitRTPRIO=%d in perfd's unit, or CAP_SYS_NICE, permits it", READER_NICE,
                          r->priority.value, r->priority.value);
        else
                log_print(LOG_NOTICE, MESSAGE_THREAD_PRIORITY,
                          "readers run at normal priority, and may lose samples when their CPUs are busy: %s",
                          error_text(error));
}

void reader_abort(const Reader *r, int error) {
        if (atomic_load_explicit(&r->is_abandoned, memory_order_relaxed)) /* pairs with reader_abandon(); no ordering is needed */
                for (;;)
                        pause(); /* the process is about to end */
        log_print(LOG_CRIT, MESSAGE_THREAD_FAILED,
                  "reader of CPU %u cannot continue; perfd exits to be restarted: %s", r->cpu, error_text(error));
        abort(); /* continuing would leave a CPU unobserved without any record of it in the ledger */
}

static int reader_run(void *userdata) {
        Reader *r = userdata;
        int error;

        reader_set_priority(r);
        owner_lock_acquire(&r->lock);
        r->has_stopped = false; /* a CPU that is back may have been stopped before */
        atomic_store_explicit(&r->cpu_clock, thread_clock(&r->thread), memory_order_relaxed); /* ordered with nothing */
        if (r->guard == 0)
                ring_view_open(&r->view, &r->ring);
        error = reader_loop(r, false);
        if (error < 0)
                reader_abort(r, error);
        (void)ring_view_close(&r->view); /* main makes the dispatcher stop using the pipe before the ring is unmapped */
        atomic_store_explicit(&r->is_at_end, true, memory_order_release); /* pairs with reader_is_at_end() */
        reader_wake_main(r); /* main may have told it to stop long ago, and its backup has acknowledged that */
        return 0;
}

int reader_start(Reader *r, Snapshot *snapshot) {
        char name[32];

        r->snapshot = snapshot;
        r->mailbox.overdue_fd = r->overdue_fd;
        atomic_init(&r->is_at_end, false);
        (void)snprintf(name, sizeof(name), "reader-%u", r->cpu);
        if (r->guard > 0)
                return thread_start_on(&r->thread, THREAD_READER, name, r->remote_cpus, r->n_remote_cpus, reader_run, r);
        return thread_start(&r->thread, THREAD_READER, name, (int)r->cpu, reader_run, r);
}

void reader_abandon(Reader *r) {
        atomic_store_explicit(&r->is_abandoned, true, memory_order_relaxed); /* pairs with reader_abort(); no ordering is needed */
}

bool reader_is_at_end(const Reader *r) {
        return atomic_load_explicit(&r->is_at_end, memory_order_acquire); /* pairs with reader_run() */
}

bool reader_join_within(Reader *r, nsec_t most) {
        if (!thread_join_within(&r->thread, most) || !thread_join_within(&r->backup, most))
                return false;
        (void)reader_join(r);
        return true;
}

int reader_join(Reader *r) {
        int result = thread_join(&r->thread);

        owner_lock_acquire(&r->lock); /* no other backup can be started, and the thread has ended */
        owner_lock_leave(&r->lock);
        (void)thread_join(&r->backup);
        owner_lock_acquire(&r->lock); /* the stall monitor may still use it */
        r->backup_state = BACKUP_NONE;
        owner_lock_leave(&r->lock);
        return result;
}
