/*
 * The loop of `watch`. It never ends by itself: whatever says enough (signal, count, time, a reader of our output that goes
 * away) asks the daemon to stop, and what comes until the end packet is printed too, because only then the closing ledger can
 * be compared with what came, and says what was lost.
 */
#include "client/perfctl/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/item-print.h"
#include "client/perfctl/json.h"
#include "client/perfctl/ledger-rows.h"
#include "client/perfctl/signals.h"
#include "client/perfctl/watch-loss.h"

typedef struct Watch {
        Perfctl *p;
        const WatchOptions *options;
        ItemText text;
        uint64_t printed;
        uint64_t deadline; /* CLOCK_MONOTONIC, 0: none */
        WatchLoss loss;
        bool stopping;
        bool ended;
        int code;          /* of the end */
} Watch;

static uint64_t now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Nothing more is printed: it was enough, or nobody reads it. */
static bool is_full(const Watch *w) {
        return (w->options->count > 0 && w->printed == w->options->count) || w->p->out.error;
}

static void on_start(void *userdata, const perfd_start *s) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        w->text.time.wall_offset = s->wall_offset;
        if (!w->p->json)
                return;
        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "start");
        JSON_STRING(&j, "clock", s->clock);
        json_put_name(&j, "wall_offset");
        json_put_signed(&j, s->wall_offset);
        JSON_STRING(&j, "host", s->host);
        JSON_STRING(&j, "kernel", s->kernel);
        JSON_NUMBER(&j, "cpus", s->n_cpus);
        JSON_STRING(&j, "order", s->order == PERFD_ORDER_TIME ? "time" : "cpu");
        JSON_NUMBER(&j, "queue_bytes", s->queue_bytes);
        json_end(&j, '}');
        json_end_line(&j);
}

static void on_event(void *userdata, const perfd_event *event) {
        item_text_add_event(&((Watch *)userdata)->text, event->name);
}

static void on_item(void *userdata, const perfd_item *item) {
        Watch *w = userdata;

        if (is_full(w))
                return;
        if (perfd_item_record(item) == PERFD_LOST || perfd_item_record(item) == PERFD_LOST_SAMPLES)
                w->loss.ring += perfd_item_lost(item);
        if (w->p->json)
                item_print_json(&w->p->out, item, w->options->raw);
        else
                item_print_text(&w->text, item);
        w->printed++;
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        Watch *w = userdata;

        if (is_full(w))
                return;
        w->loss.dropped += gap->items;
        if (w->p->json)
                gap_print_json(&w->p->out, gap);
        else
                gap_print_text(&w->text, gap);
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        if (!w->p->json || is_full(w))
                return;
        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "removed");
        JSON_STRING(&j, "event", name);
        JSON_NUMBER(&j, "id", id);
        json_end(&j, '}');
        json_end_line(&j);
}

static void print_end_json(Watch *w, const perfd_end *end) {
        Json j = json_of(&w->p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "end");
        JSON_STRING(&j, "reason", end->reason);
        JSON_NUMBER(&j, "printed", w->printed);
        JSON_NUMBER(&j, "received", end->received);
        JSON_NUMBER(&j, "missed", end->missed);
        json_put_name(&j, "lost");
        json_begin(&j, '{');
        for (size_t i = 0; i < end->n_lost; i++)
                JSON_NUMBER(&j, end->lost[i].reason, end->lost[i].count);
        json_end(&j, '}');
        JSON_BOOL(&j, "loss_exact", perfd_result_is_loss_exact(end->ledger));
        JSON_BOOL(&j, "balanced", perfd_result_is_balanced(end->ledger));
        json_end(&j, '}');
        json_end_line(&j);
        ledger_print_json(&w->p->out, end->ledger);
}

/* On stderr: the lines of the stream are stdout's alone. */
static void print_end_text(const Watch *w, const perfd_end *end) {
        static Output err;
        uint64_t lost;
        char *text = watch_loss_text(end, &lost);

        output_init(&err, STDERR_FILENO);
        output_print(&err, "%s%" PRIu64 " items, ", w->p->json || w->p->out.error ? "" : "\n", w->printed);
        if (lost > 0)
                output_print(&err, "%s%" PRIu64 " lost: %s%s", perfd_result_is_loss_exact(end->ledger) ? "" : "at least ", lost,
                             text, watch_loss_is_of_stream(end) ? "" : " (of some events, since they were added)");
        else
                output_put_string(&err, "nothing lost");
        output_print(&err, "; %s\n", end->reason);
        if (!w->p->json && !w->p->out.error && (lost > 0 || w->options->has_tables)) {
                output_put_char(&err, '\n');
                ledger_print_tables(&err, true, end->ledger);
        }
        output_flush(&err);
        free(text);
}

/* What gaps stand for. */
static uint64_t dropped_in_gaps(const perfd_subscriber_ledger *own) {
        uint64_t n = 0;

        for (size_t i = 0; i < own->n_dropped; i++)
                if (strcmp(own->dropped[i].reason, "outbox") == 0 || strcmp(own->dropped[i].reason, "memory") == 0)
                        n += own->dropped[i].count;
        return n;
}

/* The daemon's numbers against our own. */
static int compare(const Perfctl *p, const perfd_end *end) {
        if (!end->own)
                return perfctl_fail(p, PERFCTL_FAILED, "the closing ledger has no row of this subscriber");
        if (end->own->sent != end->received)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "%" PRIu64 " items came, but the daemon says that it sent %" PRIu64
                                    ": a bug of perfd", end->received, end->own->sent);
        if (dropped_in_gaps(end->own) != end->missed)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "gaps speak of %" PRIu64 " items, but the daemon says that it dropped %" PRIu64
                                    ": a bug of perfd", end->missed, dropped_in_gaps(end->own));
        return PERFCTL_OK;
}

/* What ended as it was asked to: whether all was there. */
static int judge_losses(const Watch *w, const perfd_end *end) {
        return end->n_lost == 0 || w->options->may_lose ? PERFCTL_OK : PERFCTL_LOST;
}

/* JSON has all of it in its own lines. But nobody may be looking at these when it says that something is missing. */
static void on_end(void *userdata, const perfd_end *end) {
        Watch *w = userdata;
        int ledger, numbers;

        w->ended = true;
        if (w->p->json)
                print_end_json(w, end);
        output_flush(&w->p->out);
        if (end->n_lost > 0 || (!w->p->json && !w->p->out.error))
                print_end_text(w, end);
        ledger = ledger_judge(w->p, end->ledger);
        numbers = compare(w->p, end);
        w->code = ledger != PERFCTL_OK ? ledger : numbers != PERFCTL_OK ? numbers : judge_losses(w, end);
        if (!w->stopping || strcmp(end->reason, "stopped") != 0)
                w->code = perfctl_fail(w->p, PERFCTL_FAILED, "the daemon ended the stream: %s", end->reason);
}

/* ppoll(2) until the library or we have something to do by ourselves. */
static int wait_for(struct pollfd *fds, nfds_t n, Watch *w) {
        uint64_t due = perfd_client_due(w->p->client), t = now(), ns, next = watch_loss_tell(&w->loss, w->p, t);

        if (!w->stopping && w->deadline > 0 && w->deadline < due)
                due = w->deadline;
        if (next < due)
                due = next;
        ns = due > t ? due - t : 0;
        return ppoll(fds, n, due == UINT64_MAX ? NULL : &(struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
                                                                           .tv_nsec = (long)(ns % 1000000000) }, NULL);
}

/*
 * Until something happens. What was printed leaves before we wait, and not while more is there to be read: a pipe gets
 * large writes from a fast stream and each line at once from a slow one.
 */
static int await(Watch *w, bool *ret_signalled) {
        struct pollfd fds[] = {
                { .fd = perfd_client_fd(w->p->client), .events = perfd_client_events(w->p->client) },
                { .fd = signals_fd(), .events = POLLIN },
                { .fd = w->p->out.error ? -1 : w->p->out.fd }, /* tells when its reader is gone, even if there is nothing to print */
        };
        int n = w->p->out.n > 0 ? poll(fds, 2, 0) : 0;

        if (n == 0) {
                output_flush(&w->p->out);
                n = wait_for(fds, 3, w);
        }
        if (n < 0 && errno != EINTR)
                return perfctl_fail(w->p, PERFCTL_FAILED, "poll: %s", strerror(errno));
        if (n > 0 && fds[2].revents & (POLLERR | POLLHUP))
                w->p->out.error = EPIPE;
        *ret_signalled = n > 0 && fds[1].revents != 0;
        return 0;
}

static int loop(Watch *w) {
        bool enough = false, signalled = false;
        int r;

        for (;;) {
                r = await(w, &signalled);
                if (r != 0)
                        return r;
                if (w->p->out.error && w->p->out.error != EPIPE)
                        return PERFCTL_OK; /* main says it */
                r = perfd_client_process(w->p->client);
                if (r == PERFD_E_ENDED)
                        return w->code;
                if (r != 0) {
                        output_flush(&w->p->out);
                        watch_loss_tell_all(&w->loss, w->p);
                        return perfctl_fail_client(w->p, NULL);
                }
                (void)watch_loss_tell(&w->loss, w->p, now());
                enough = signalled || is_full(w) || (w->deadline > 0 && now() >= w->deadline);
                if (!enough || w->stopping)
                        continue;
                w->stopping = true;
                (void)signals_take();
                if (perfd_stream_stop(w->p->client) != 0)
                        return perfctl_fail_client(w->p, NULL);
        }
}

/* no-color.org; a terminal that says that it can do nothing. */
static bool wants_colours(void) {
        const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

        return !(no && *no) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

int watch_run(Perfctl *p, const WatchOptions *options) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Watch w = { .p = p, .options = options,
                    .text = { .out = &p->out, .time.form = options->time, .raw = options->raw, .columns = options->columns, .is_padded = p->human,
                              .has_colours = p->human && wants_colours(), .has_kernels = options->subscription.n_fields > 0 } };
        perfd_client *keeper = NULL; /* of events that are added for the time of the watch */
        int r = signals_catch(p, false);

        if (r != 0)
                return r;
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        r = watch_subscribe(p, &(WatchSubscription){ &options->subscription, &callbacks, &w }, &keeper);
        if (r == 0 && options->duration > 0)
                w.deadline = now() + options->duration;
        if (r == 0)
                r = loop(&w);
        perfd_client_free(keeper);
        return r;
}
