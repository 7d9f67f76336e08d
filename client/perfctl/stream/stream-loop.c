/*
 * A stream never ends by itself: whatever says enough (signal, count, time, a reader of our output that goes away) asks the daemon
 * to stop, and what comes until the end packet is taken too, because only then the closing ledger can be compared with what came,
 * and says what was lost.
 */
#include "client/perfctl/stream/stream-loop.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/ledger/rows.h"
#include "client/perfctl/base/signals.h"
#include "client/perfctl/base/terminal.h"
#include "client/perfctl/base/text.h"

#define LOOK_EACH 64                    /* items */
#define LOOK_NSEC UINT64_C(10000000)    /* where each item is given its time */
#define GRACE_NSEC UINT64_C(1000000000) /* for what came before the first signal */

void put_stream_start(Json *j, const perfd_start *s, bool is_of_several) {
        json_begin(j, '{');
        JSON_STRING(j, "kind", "start");
        JSON_STRING(j, "clock", s->clock);
        json_put_name(j, "wall_offset");
        json_put_signed(j, s->wall_offset);
        json_put_name(j, is_of_several ? "hostname" : "host"); /* `host` is what each line of several begins with */
        json_put_string(j, s->host);
        JSON_STRING(j, "kernel", s->kernel);
        JSON_NUMBER(j, "cpus", s->n_cpus);
        JSON_STRING(j, "order", s->order == PERFD_ORDER_TIME ? "time" : "cpu");
        JSON_NUMBER(j, "queue_bytes", s->queue_bytes);
        json_end(j, '}');
        json_end_line(j);
}

void put_wall_reading(Json *j, const perfd_wall_reading *r) {
        json_begin(j, '{');
        JSON_STRING(j, "kind", "wall");
        JSON_NUMBER(j, "time", r->time);
        JSON_NUMBER(j, "wall", r->wall);
        JSON_NUMBER(j, "error", r->error);
        if (r->since > 0)
                JSON_NUMBER(j, "since", r->since);
        if (r->host_error > 0)
                JSON_NUMBER(j, "host_error", r->host_error);
        JSON_BOOL(j, "synchronized", r->synchronized);
        json_end(j, '}');
        json_end_line(j);
}

void put_stream_end(Json *j, const char *counted, uint64_t n, const perfd_end *end) {
        json_begin(j, '{');
        JSON_STRING(j, "kind", "end");
        JSON_STRING(j, "reason", end->reason);
        json_put_name(j, counted);
        json_put_number(j, n);
        JSON_NUMBER(j, "received", end->received);
        JSON_NUMBER(j, "missed", end->missed);
        json_put_name(j, "lost");
        json_begin(j, '{');
        for (size_t i = 0; i < end->n_lost; i++)
                (json_put_name(j, end->lost[i].reason), json_put_number(j, end->lost[i].count));
        json_end(j, '}');
        JSON_BOOL(j, "loss_exact", perfd_result_is_loss_exact(end->ledger));
        JSON_BOOL(j, "balanced", perfd_result_is_balanced(end->ledger));
        json_end(j, '}');
        json_end_line(j);
        ledger_print_json(j->out, end->ledger);
}

/* what: the plural of what was printed. On stderr: the lines of the stream are stdout's alone. */
static void print_end(const StreamLoop *l, const perfd_end *end, uint64_t n, const char *what) {
        static Output err;
        bool is_text = !l->p->json && !l->p->out.error;
        const char *unwritten = ledger_explain_unwritten(end->lost, end->n_lost);
        uint64_t lost;
        char *text = watch_loss_text(end, &lost);

        output_init(&err, STDERR_FILENO);
        output_print(&err, "%s%" PRIu64 " %.*s, ", is_text ? "\n" : "", n, (int)(strlen(what) - (n == 1)), what);
        if (lost > 0) {
                output_print(&err, "%s%" PRIu64 " lost: ", perfd_result_is_loss_exact(end->ledger) ? "" : "at least ", lost);
                text_put_string(&err, text);
                output_put_string(&err, watch_loss_is_of_stream(end) ? "" : " (of some events, since they were added)");
        } else
                output_put_string(&err, "nothing lost");
        output_put_string(&err, "; ");
        text_put_string(&err, end->reason);
        output_put_char(&err, '\n');
        if (unwritten)
                output_print(&err, "%s%s\n", unwritten, l->may_lose ? "" : ": --allow-loss ends with 0 all the same");
        if (is_text && (lost > 0 || l->has_tables)) {
                output_put_char(&err, '\n');
                ledger_print_tables(&err, true, terminal_width(STDERR_FILENO), end->ledger);
        }
        output_flush(&err);
        free(text);
}

static bool is_of_gaps(const char *reason) {
        return strcmp(reason, "outbox") == 0 || strcmp(reason, "relay_queue") == 0 || strcmp(reason, "memory") == 0;
}

/* What gaps stand for. */
static uint64_t dropped_in_gaps(const perfd_subscriber_ledger *own) {
        uint64_t n = 0;

        for (size_t i = 0; i < own->n_dropped; i++)
                if (is_of_gaps(own->dropped[i].reason))
                        n += own->dropped[i].count;
        return n;
}

/* The daemon's numbers against our own. */
static int compare(const Perfctl *p, const perfd_end *end) {
        if (!end->own)
                return perfctl_fail(p, PERFCTL_FAILED, "the closing ledger has no row of this subscriber");
        if (end->own->sent != end->received)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "%" PRIu64 " items were received, but the daemon reports that it sent %" PRIu64
                                    ": this is a bug in perfd", end->received, end->own->sent);
        if (dropped_in_gaps(end->own) != end->missed)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "gaps report %" PRIu64 " items, but the daemon reports that it dropped %" PRIu64
                                    ": this is a bug in perfd", end->missed, dropped_in_gaps(end->own));
        return PERFCTL_OK;
}

/* What ended as it was asked to: whether all was there. */
static int judge_losses(const StreamLoop *l, const perfd_end *end) {
        if (l->n_unread > 0)
                (void)perfctl_fail(l->p, PERFCTL_OK, "%" PRIu64 " items that had come before the signal were not read any more: they were more than a "
                                   "second's work", l->n_unread);
        return (end->n_lost == 0 && l->n_unread == 0) || l->may_lose ? PERFCTL_OK : PERFCTL_LOST;
}

/* JSON has all of it in its own lines. But nobody may be looking at these when it says that something is missing. */
void stream_loop_end(StreamLoop *l, const perfd_end *end, uint64_t n, const char *what) {
        int ledger, numbers;

        output_flush(&l->p->out);
        if (end->n_lost > 0 || (!l->p->json && !l->p->out.error))
                print_end(l, end, n, what);
        ledger = ledger_judge(l->p, end->ledger);
        numbers = compare(l->p, end);
        l->code = ledger != PERFCTL_OK ? ledger : numbers != PERFCTL_OK ? numbers : judge_losses(l, end);
        if (l->is_keeper_lost)
                l->code = perfctl_fail(l->p, PERFCTL_FAILED, "%s", STREAM_KEEPER_LOST);
        else if (l->is_orphaned) {
                (void)removed_events_tell(&l->removed, l->p); /* since the daemon was asked */
                l->code = perfctl_fail(l->p, PERFCTL_FAILED, "none of its events is left");
        } else if (!l->stopping || strcmp(end->reason, "stopped") != 0)
                l->code = perfctl_fail(l->p, PERFCTL_FAILED, "the daemon ended the stream: %s", end->reason);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* ppoll(2) until the library or we have something to do by ourselves. */
static int wait_for(struct pollfd *fds, nfds_t n, StreamLoop *l) {
        uint64_t due = perfd_client_due(l->p->client), t = clock_read(CLOCK_MONOTONIC), ns;

        due = smaller(due, watch_loss_tell(&l->loss, l->p, t));
        due = smaller(due, l->next_tick);
        if (!l->stopping && l->deadline > 0)
                due = smaller(due, l->deadline);
        ns = due > t ? due - t : 0;
        return ppoll(fds, n, due == UINT64_MAX ? NULL : &(struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
                                                                           .tv_nsec = (long)(ns % 1000000000) }, NULL);
}

/* A command is asked to end: what it does until then belongs to it too. */
static void on_signals(StreamLoop *l, Signals signals) {
        if (signals.child)
                command_look(&l->command);
        if (signals.end && l->signalled == 0 && l->command.pid == 0)
                l->signalled = clock_read(CLOCK_MONOTONIC);
        if (signals.end && l->command.pid > 0 && !l->command.ended)
                (void)kill(l->command.pid, SIGTERM);
        l->is_told = l->is_told || l->command.ended || (signals.end && l->command.pid == 0);
}

/*
 * Until something happens. What was printed leaves before we wait, and not while more is there to be read: a pipe gets
 * large writes from a fast stream and each line at once from a slow one.
 */
static int await(StreamLoop *l) {
        struct pollfd fds[] = {
                { .fd = perfd_client_fd(l->p->client), .events = perfd_client_events(l->p->client) },
                { .fd = signals_fd(), .events = POLLIN },
                { .fd = l->p->out.error ? -1 : l->p->out.fd }, /* tells when its reader is gone, even if there is nothing to print */
                { .fd = l->tasks.fd, .events = POLLIN },
                { .fd = l->keeper && l->p->host && !l->is_keeper_lost ? perfd_client_fd(l->keeper) : -1, .events = POLLIN },
                { .fd = l->has_input && !l->stopping ? l->input : -1, .events = POLLIN },
        };
        int n = l->p->out.n > 0 ? poll(fds, 2, 0) : 0;

        if (n == 0) {
                output_flush(&l->p->out);
                n = wait_for(fds, sizeof(fds) / sizeof(*fds), l);
        }
        if (n < 0 && errno != EINTR)
                return perfctl_fail(l->p, PERFCTL_FAILED, "poll: %s", strerror(errno));
        if (n > 0 && fds[2].revents & (POLLERR | POLLHUP))
                l->p->out.error = EPIPE;
        if (n > 0 && fds[1].revents != 0)
                on_signals(l, signals_take());
        l->is_keeper_lost |= n > 0 && fds[4].revents != 0; /* nothing else ever comes there */
        l->is_told |= n > 0 && fds[5].revents & (POLLERR | POLLHUP | POLLNVAL); /* nobody is there any more who could end it */
        l->is_told = task_ends_take(&l->tasks) || l->is_told;
        return 0;
}

/* It was enough, or nobody reads it. */
static bool is_full(const StreamLoop *l) {
        return l->p->out.error || (l->is_full && l->is_full(l->userdata));
}

static void tick(StreamLoop *l) {
        l->next_tick = l->tick ? l->tick(l->userdata, clock_read(CLOCK_MONOTONIC)) : UINT64_MAX;
}

/* A command goes on without the events that observed it. */
static void look_for_events(StreamLoop *l) {
        if (l->stopping || !removed_events_tell(&l->removed, l->p))
                return;
        l->is_orphaned = l->command.pid == 0 && !removed_events_any_left(l->p, &l->words);
}

static bool is_enough(const StreamLoop *l) {
        return l->is_told || l->is_orphaned || l->is_keeper_lost || is_full(l) ||
               (l->deadline > 0 && clock_read(CLOCK_MONOTONIC) >= l->deadline);
}

/* A failure is that of the connection, which the next call that reads it says. */
static void look(StreamLoop *l) {
        struct pollfd signals = { .fd = signals_fd(), .events = POLLIN };

        if (poll(&signals, 1, 0) > 0)
                on_signals(l, signals_take());
        if (l->stopping || !is_enough(l))
                return;
        l->stopping = true;
        (void)perfd_stream_stop(l->p->client);
}

void stream_loop_look(StreamLoop *l) {
        if (l->n_looks++ % LOOK_EACH == 0)
                look(l);
}

/* A time of this machine on the stream's clock. */
static uint64_t stream_time(const StreamLoop *l, uint64_t monotonic) {
        return daemon_clock_now(&l->clock) + monotonic - clock_read(CLOCK_MONOTONIC);
}

/* Of a host that does not say it, all that comes is wanted. */
void stream_loop_ask_clock(StreamLoop *l) {
        HostWall wall;

        if (!l->p->host)
                return;
        wall = host_wall_ask(l->p);
        l->clock = wall.clock;
        l->has_clock = wall.is_known;
}

void stream_loop_set_clock(StreamLoop *l, const perfd_start *start) {
        if (!l->p->host)
                l->has_clock = daemon_clock_here(start->clock, &l->clock);
}

static void look_at_end(StreamLoop *l) {
        const uint64_t end = l->signalled > 0 && (l->deadline == 0 || l->signalled < l->deadline) ? l->signalled : l->deadline;

        if (!l->has_clock || end == l->until_of)
                return;
        l->until = stream_time(l, end);
        l->until_of = end;
}

bool stream_loop_takes(StreamLoop *l, const perfd_item *item) {
        const uint64_t now = clock_read(CLOCK_MONOTONIC);

        if (now >= l->next_look) {
                l->next_look = now + LOOK_NSEC;
                look(l);
                if (now >= l->next_tick)
                        tick(l);
                l->is_late = l->signalled > 0 && now > l->signalled + GRACE_NSEC;
        }
        look_at_end(l);
        if (l->until > 0 && perfd_item_time(item) > l->until)
                return false;
        l->n_unread += l->is_late && perfd_item_record(item) == PERFD_SAMPLE;
        return !l->is_late;
}

static int run(StreamLoop *l) {
        int r;

        for (;;) {
                tick(l);
                r = await(l);
                if (r != 0)
                        return r;
                if (l->p->out.error && l->p->out.error != EPIPE)
                        return PERFCTL_OK; /* main says it */
                r = perfd_client_process(l->p->client);
                if (r == PERFD_E_ENDED)
                        return l->code;
                if (r != 0) {
                        output_flush(&l->p->out);
                        watch_loss_tell_all(&l->loss, l->p);
                        return perfctl_fail_client(l->p, NULL);
                }
                (void)watch_loss_tell(&l->loss, l->p, clock_read(CLOCK_MONOTONIC));
                look_for_events(l);
                if (l->stopping || !is_enough(l))
                        continue;
                l->stopping = true;
                if (perfd_stream_stop(l->p->client) != 0)
                        return perfctl_fail_client(l->p, NULL);
        }
}

int stream_loop_run(StreamLoop *l, const perfd_subscription *subscription, const perfd_callbacks *callbacks,
                    int (*choose)(void *userdata, const EventWords *words, perfd_subscription *subscription)) {
        EventSubscription s = { .subscription = subscription, .callbacks = callbacks, .userdata = l->userdata, .choose = choose,
                                .ret_words = &l->words, .ret_typed = &l->typed, .ret_lacks_records = &l->lacks_records, .interval = l->interval,
                                .is_watched = l->is_watched };
        char **command = l->p->command;
        int r = signals_catch(l->p, command != NULL);

        l->command = COMMAND_NULL;
        l->tasks = TASK_ENDS_NULL;
        if (r == 0 && !command) /* which says alone for how long */
                r = task_ends_open(l->p, &l->tasks);
        if (r == 0 && command)
                r = command_start(l->p, &l->command, command);
        s.pid = command_is_beside(l->p) ? 0 : l->command.pid;
        if (r == 0)
                r = subscribe_to_events(l->p, &s, &l->keeper);
        if (r == 0 && l->duration > 0)
                l->deadline = clock_read(CLOCK_MONOTONIC) + l->duration;
        if (r == 0)
                r = command ? command_go(l->p, &l->command, command) : 0;
        if (r == 0)
                r = run(l);
        if (l->is_keeper_lost)
                host_note(l->p, NOTE_PASSING, "%s", STREAM_KEEPER_LOST);
        perfd_client_free(l->keeper);
        if (r == 0 && l->command.ended)
                r = command_code(&l->command);
        command_deinit(&l->command);
        task_ends_close(&l->tasks);
        removed_events_deinit(&l->removed);
        event_words_deinit(&l->words);
        typed_names_deinit(&l->typed);
        return r;
}
