/*
 * The loop of a reader: sleep until the ring's watermark, a mail or the flush time; drain; execute commands; push; wake
 * the dispatcher once.
 *
 * The decision to doubt is the flush time: a watermark alone would leave the tail of a burst in the ring for ever, and
 * a fixed timer would wake an idle host. So the poll has a timeout while some event is enabled: short after records
 * came, doubled with each empty drain, up to IDLE_WAIT with a timer slack of the same size, so that an idle CPU is not
 * woken for it but only a busy one. Without an enabled event there is no timeout at all. Who subscribes with a latency sets
 * an end to the doubling: nothing wakes a reader for the first record after quiet, because a ring's watermark is as it was
 * made, and a wakeup for each record costs the traced program more than all else.
 *
 * Timeouts are not spans but ticks, multiples of the flush time on the monotonic clock: the readers of busy CPUs wake
 * together, so that the merge has what it needs of all of them at once and the dispatcher wakes once for it. A CPU for
 * which the merge waits, with nothing to say itself, ticks along as long as that lasts, which costs half of being asked
 * each time.
 */
#include "daemon/reader/cycle.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/base/log.h"
#include "daemon/decode/record-base.h"
#include "daemon/kernel/event/open.h"

#define IDLE_WAIT (128 * NSEC_PER_MSEC)
#define SLACK_FROM (16 * NSEC_PER_MSEC)
#define DEFAULT_SLACK (50 * NSEC_PER_USEC)
#define MAILS 64
#define BACKUP_STARVED (250 * NSEC_PER_USEC)
#define READER_NICE -19 /* without SCHED_FIFO: what fills the ring is what keeps its reader from the CPU */

static void reader_set_default_pace(Reader *r) {
        r->wait = r->tick = r->along_tick = r->flush;
        r->idle_wait = IDLE_WAIT;
        r->is_slack = false;
}

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
        atomic_init(&r->cpu_clock, CLOCK_THREAD_CPUTIME_ID); /* until its thread runs: of whoever looks */
        r->snapshot = NULL;
        r->batch = NULL;
        r->spare = NULL;
        record_begin_base(&r->in_place);
        r->in_place.cpu = r->cpu;
        r->mail = NULL;
        r->holds = false;
        r->watermark = 0;
        r->comm_tid = UINT32_MAX;
        reader_set_default_pace(r);
        r->next_read = UINT64_MAX;
        r->not_notified = 0;
        r->has_rung = false;
        r->cycle_due = UINT64_MAX;
        r->next_look = 0;
        r->has_read_early = false;
        r->is_asked = false;
        r->reports_until = 0;
        r->view = RING_VIEW_NULL;
        if ((error = mailbox_init(&r->mailbox, MAILS)) < 0 ||
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
                queue_push(&r->free, b); /* as many slots as batches: it is never full */
        }
        error = reader_init_backlog(r);
        return error < 0 ? error : sample_layout_init_type(&r->side_layout, SAMPLE_TYPE_BASE);
}

void reader_renew(Reader *r) {
        r->snapshot = snapshot_unref(r->snapshot);
        r->holds = false; /* has_stopped stays: whoever asks it meanwhile starts no backup for a ring that is closed */
        r->asks = 0;
        r->overdue_at = UINT64_MAX;
        r->is_watched = false;
        r->watermark = 0;
        reader_set_default_pace(r);
        r->next_read = UINT64_MAX;
        r->has_read_early = false;
        r->comm_tid = UINT32_MAX;
        r->backlog.scanned = UINT64_MAX; /* beyond any head: it begins anew */
}

void reader_deinit(Reader *r) {
        Batch *b;
        ReaderCommand *mail;

        while (r->full.slots && (b = queue_pop(&r->full)))
                batch_free(b);
        while (r->free.slots && (b = queue_pop(&r->free)))
                batch_free(b);
        while (r->n_spare > 0)
                batch_free(r->spare[--r->n_spare]);
        free(r->spare);
        r->spare = NULL;
        while (r->mailbox.mails.slots && (mail = mailbox_pop(&r->mailbox))) {
                snapshot_unref(mail->snapshot);
                free(mail);
        }
        if (r->mail)
                snapshot_unref(r->mail->snapshot);
        free(r->mail);
        r->mail = NULL;
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

void reader_post(Reader *r, ReaderCommand *mail) {
        bool posted = mailbox_post(&r->mailbox, mail);

        assert(posted); /* main waits for each acknowledgement: MAILS are never on the way */
}

static void reader_wake_main(const Reader *r) {
        ssize_t n = write(r->acknowledge_fd, &(uint64_t){ 1 }, sizeof(uint64_t));

        assert(n == sizeof(uint64_t) || errno == EAGAIN);
}

static void reader_acknowledge(Reader *r, uint64_t sequence) {
        atomic_store_explicit(&r->acknowledged, sequence, memory_order_release);
        reader_wake_main(r);
}

/* By who waits for what comes into this ring; or, going along, into any. */
static void reader_set_pace(Reader *r) {
        nsec_t asked = r->snapshot->cpus[r->slot].latency, of_any = r->snapshot->latency;

        r->tick = asked && asked < r->flush ? asked : r->flush;
        r->along_tick = of_any && of_any < r->tick ? of_any : r->tick;
        r->idle_wait = asked && asked < IDLE_WAIT ? asked : IDLE_WAIT;
        r->wait = r->tick;
}

static void reader_adopt(Reader *r, Snapshot *snapshot) {
        (void)reader_push_batch(r); /* the masks in it belong to the old one */
        snapshot_unref(r->snapshot);
        r->snapshot = snapshot;
        reader_set_pace(r);
        r->next_read = 0; /* to be found out */
}

/* What was read before it has left. */
static void reader_end_cut(Reader *r, uint64_t number) {
        if (number > 0)
                r->cut = number;
}

/*
 * Follows one mail; what it says holds for everything behind the present place of the ring, up to which the caller has
 * drained. READER_E_STARVED: not yet done.
 */
static int reader_execute(Reader *r, ReaderCommand *mail) {
        int error;

        switch (mail->kind) {
        case READER_SET_SNAPSHOT:
                error = mail->turned ? reader_find_boundary(r, mail->snapshot, mail->turned) : 0;
                if (error == 0 && mail->cut > 0)
                        error = reader_cut(r);
                if (error != 0)
                        return error;
                reader_adopt(r, mail->snapshot);
                reader_end_cut(r, mail->cut);
                mail->snapshot = NULL;
                break;
        case READER_SWITCH:
        case READER_CUTOVER:
                if (mail->n_fds > 0 && *mail->ret_error == 0)
                        *mail->ret_error = open_switch_all(mail->fds, mail->n_fds, mail->on);
                if (mail->kind == READER_CUTOVER && *mail->ret_error == 0)
                        *mail->ret_error = reader_hand_over(r);
                if (!mail->on && mail->n_fds > 0)
                        reader_wait_guard(r); /* what they were in the middle of is read while they are known */
                break;
        case READER_CUT:
                error = reader_cut(r);
                if (error != 0)
                        return error;
                (void)reader_push_batch(r); /* READER_E_STARVED: there was nothing in it */
                reader_end_cut(r, mail->cut);
                atomic_store_explicit(&r->cpu_time, reader_cpu_time(r), memory_order_relaxed);
                break;
        case READER_RING:
                *mail->ret_error = reader_begin_ring(r, mail->ring, mail->on);
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
        reader_acknowledge(r, mail->sequence);
        return 0;
}

/* Negative: fatal. */
static int reader_execute_commands(Reader *r) {
        while (!r->has_stopped && (r->mail || (r->mail = mailbox_pop(&r->mailbox)))) {
                int error = reader_execute(r, r->mail);

                if (error != 0)
                        return error;
                free(r->mail);
                r->mail = NULL;
        }
        return 0;
}

static void reader_set_wait(Reader *r, nsec_t wait) {
        bool is_slack = wait >= SLACK_FROM && r->idle_wait == IDLE_WAIT && reader_next_cycle(r) == UINT64_MAX; /* which is to come in time */

        r->wait = wait;
        if (is_slack == r->is_slack || atomic_load_explicit(&r->is_backup, memory_order_relaxed)) /* the slack of another thread */
                return;
        (void)prctl(PR_SET_TIMERSLACK, is_slack ? IDLE_WAIT : DEFAULT_SLACK); /* only a saving */
        r->is_slack = is_slack;
}

/*
 * After a drain. Who was woken for something else before its time has not looked in vain; nor has who finds nothing at its
 * time because what came since the last tick was read before.
 */
static nsec_t reader_choose_wait(Reader *r, bool along, bool had_records) {
        bool is_early = clock_now(CLOCK_MONOTONIC) < r->next_look, came = had_records || r->has_read_early;

        r->has_read_early = is_early && came;
        if (along)
                return r->along_tick;
        if (is_early && !had_records)
                return r->wait;
        if (came)
                return r->tick;
        return 2 * r->wait < r->idle_wait ? 2 * r->wait : r->idle_wait;
}

static bool reader_is_read_due(const Reader *r) {
        if (r->next_read == UINT64_MAX)
                return false;
        return r->clock == CLOCK_REALTIME || clock_now(r->clock) >= r->next_read; /* that clock may be set back */
}

/* Somebody waits for what this CPU says, records or not. */
static bool reader_goes_along(const Reader *r) {
        nsec_t until = atomic_load_explicit(&r->reports_until, memory_order_relaxed);

        return until > 0 && r->snapshot->active && clock_now(CLOCK_MONOTONIC) < until;
}

/* The next tick. Who found nothing looks apart from those of others, at which they see whether its CPU is idle. */
static nsec_t reader_next_tick(const Reader *r, nsec_t now) {
        nsec_t phase = r->wait > r->tick ? r->tick / 2 : 0;

        return now + r->wait - (now - phase) % r->wait;
}

/* Until then, or the next read of counts. */
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
 * UINT64_MAX: there is nothing to wake for. Where the next tick is near it wakes before that for the dispatcher's cycle whose timer it owns, once:
 * for what waits because another CPU was busy for a moment. If that takes longer it can wait for the tick.
 */
static nsec_t reader_timeout(const Reader *r, nsec_t now, bool starved) {
        nsec_t cycle = reader_next_cycle(r);
        nsec_t wait = r->snapshot->active && !starved ? reader_next_look(r, now) : UINT64_MAX;
        bool is_between = now < r->next_look;

        if (cycle == UINT64_MAX || (wait <= r->tick && is_between))
                return wait;
        cycle = cycle > now ? cycle - now : 0;
        return cycle < wait ? cycle : wait;
}

/*
 * Whether to sleep on. The kernel wakes each time that half a ring was written, whatever was read of it meanwhile: of a flood
 * that is in the middle of any tick, and what is there then can wait for its end. Not what an event wakes for by itself.
 */
static bool reader_is_woken_early(const Reader *r, const struct pollfd *mailbox, const struct pollfd *carrier) {
        return mailbox->revents == 0 && carrier->revents == POLLIN && r->wait <= r->tick && !r->snapshot->wakes &&
               !r->retiring.page && ring_head(&r->ring) - r->ring.tail < r->ring.size / READER_EARLY_SHARE;
}

/* Without the lock, which it has again when it returns. False: this backup is not needed any more, and has no lock. */
static bool reader_sleep(Reader *r, bool starved, bool as_backup) {
        struct pollfd fds[] = { { .fd = as_backup ? -1 : r->mailbox.fd, .events = POLLIN },
                                { .fd = starved ? -1 : r->carrier_fd, .events = POLLIN } };
        nsec_t now = clock_now(CLOCK_MONOTONIC), wait = reader_timeout(r, now, starved), due;
        bool is_back = false;

        if (as_backup && starved)
                wait = BACKUP_STARVED; /* what the mailbox's fd says, as that batches are back, is for the reader itself */
        else if (as_backup && wait > r->tick)
                wait = r->tick;
        due = wait == UINT64_MAX ? UINT64_MAX : now + wait;
        if (!starved) /* else what it was to bring at that tick is still to come */
                r->next_look = reader_next_tick(r, now);
        ring_view_set_quiet(&r->view, !starved && (!r->batch || r->batch->n_entries == 0));
        heartbeat_sleep(&r->heartbeat);
        if (!as_backup)
                reader_watch(r, due);
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
        if (fds[0].revents)
                mailbox_quiet(&r->mailbox);
        return true;
}

int reader_read(Reader *r, bool *ret_is_starved) {
        uint64_t before = counter_get(&r->counters.records);
        bool along;
        int error;

        r->asks |= mailbox_take_asks(&r->mailbox);
        r->is_asked = r->asks & READER_ASK_WATERMARK;
        error = reader_drain(r);
        if (error == 0 && reader_may_execute(r))
                error = reader_execute_commands(r);
        if (error == 0 && reader_is_read_due(r))
                error = reader_read_intervals(r, &r->next_read);
        along = reader_goes_along(r);
        if (error == 0 && ((r->batch && r->batch->n_entries > 0) || (r->asks & READER_ASK_WATERMARK) || along))
                error = reader_push_batch(r);
        if (error < 0)
                return error;
        if (error == 0)
                r->asks = 0;
        *ret_is_starved = error == READER_E_STARVED;
        error = reader_hand_off(r, error == 0 && !r->has_stopped); /* also when it starves: what was pushed has to come back */
        if (error == 0 && !r->has_stopped)
                reader_set_wait(r, reader_choose_wait(r, along, counter_get(&r->counters.records) != before));
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

/* Said once: it is the same for all. */
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
        if (atomic_load_explicit(&r->is_abandoned, memory_order_relaxed)) /* pairs with reader_abandon(); it orders nothing */
                for (;;)
                        pause(); /* the process is about to end */
        log_print(LOG_CRIT, MESSAGE_THREAD_FAILED,
                  "reader of CPU %u cannot continue; perfd exits to be restarted: %s", r->cpu, error_text(error));
        abort(); /* a host half watched, and a ledger that does not say so, would be worse */
}

static int reader_run(void *userdata) {
        Reader *r = userdata;
        int error;

        reader_set_priority(r);
        owner_lock_acquire(&r->lock);
        r->has_stopped = false; /* as it may be since its CPU was here the last time */
        atomic_store_explicit(&r->cpu_clock, thread_clock(&r->thread), memory_order_relaxed); /* alone: a number that says whose */
        if (r->guard == 0)
                ring_view_open(&r->view, &r->ring);
        error = reader_loop(r, false);
        if (error < 0)
                reader_abort(r, error);
        (void)ring_view_close(&r->view); /* main lets the dispatcher forget the pipe before the ring goes */
        atomic_store_explicit(&r->is_at_end, true, memory_order_release); /* pairs with reader_is_at_end() */
        reader_wake_main(r); /* it was told to stop, perhaps long ago, and its backup has acknowledged that */
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
        atomic_store_explicit(&r->is_abandoned, true, memory_order_relaxed); /* pairs with reader_abort(); it orders nothing */
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

        owner_lock_acquire(&r->lock); /* nobody starts another one, and the thread itself is gone */
        owner_lock_leave(&r->lock);
        (void)thread_join(&r->backup);
        owner_lock_acquire(&r->lock); /* the stall monitor may still look at it */
        r->backup_state = BACKUP_NONE;
        owner_lock_leave(&r->lock);
        return result;
}
