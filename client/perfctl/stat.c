/*
 * Two connections: one whose end takes the counters away, however we end, and the stream. CPUs read at the multiples of
 * the interval, so a report is what has the same number; it is printed when all CPUs have spoken, or a moment later.
 */
#include "client/perfctl/stat.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/signals.h"

#define PATIENCE 200000000       /* ns that a report waits for the last CPU, or half of the interval */
#define TOTAL_INTERVAL 100000000 /* of reads whose sum alone is printed */
#define LAST_WORDS 2000000000    /* ns that we wait for the reads behind a command's end */

typedef struct Stat {
        Perfctl *p;
        const StatOptions *options;
        perfd_client *control;
        StatCounters counters;
        Command command;
        uint64_t interval;
        bool was_told; /* by a signal to end */

        /* of the stream's clock, ns */
        clockid_t clock;
        uint64_t began;    /* the counters did, or the command */
        uint64_t reported; /* up to here */
        uint64_t stopped;  /* the command did; 0: not yet */

        uint64_t tick;     /* of the report that is on its way, times the interval its time; 0: none */
        uint64_t n_items;  /* of it */
        uint64_t deadline; /* CLOCK_MONOTONIC: then it is printed without the rest */
        uint64_t give_up;  /* the same: then nothing more will come; 0: not yet */
        uint64_t n_reports;
        bool is_enough;
        bool stopping;
        int code;
} Stat;

static uint64_t now_of(clockid_t clock) {
        struct timespec ts;

        clock_gettime(clock, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int find_clock(Stat *s) {
        static const struct {
                const char *name;
                clockid_t id;
        } clocks[] = {
                { "monotonic", CLOCK_MONOTONIC },
                { "monotonic-raw", CLOCK_MONOTONIC_RAW },
                { "boottime", CLOCK_BOOTTIME },
                { "realtime", CLOCK_REALTIME },
        };
        __attribute__((cleanup(perfd_result_freep))) perfd_result *status = NULL;

        if (perfd_status(s->p->client, &status) != 0)
                return perfctl_fail_client(s->p, NULL);
        for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
                if (strcmp(clocks[i].name, perfd_result_status(status)->clock) == 0) {
                        s->clock = clocks[i].id;
                        return 0;
                }
        return perfctl_fail(s->p, PERFCTL_FAILED, "the daemon's clock '%s' is not known here",
                            perfd_result_status(status)->clock);
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

static void report(Stat *s) {
        uint64_t end = s->tick * s->interval, begin = s->reported > 0 ? s->reported : s->began;

        if (s->options->interval > 0 && end > begin) {
                stat_print(s->p, &s->options->style, &s->counters, end - s->began, end - begin);
                stat_counters_reset(&s->counters);
        }
        s->reported = end;
        s->n_reports++;
        s->is_enough = s->is_enough || (s->stopped > 0 && end > s->stopped) ||
                       (s->options->count > 0 && s->n_reports == s->options->count);
        s->tick = s->n_items = 0;
}

static void on_event(void *userdata, const perfd_event *event) {
        Stat *s = userdata;

        stat_counters_take_event(&s->counters, event);
}

static void on_item(void *userdata, const perfd_item *item) {
        Stat *s = userdata;
        uint64_t tick = perfd_item_time(item) / s->interval;

        if (s->is_enough)
                return;
        if (s->tick > 0 && tick > s->tick)
                report(s);
        if (s->is_enough || !stat_counters_take_item(&s->counters, item))
                return;
        if (s->tick == 0 &&
            tick * s->interval > s->reported) { /* else of a report that is printed: part of the next one */
                s->tick = tick;
                s->deadline = now_of(CLOCK_MONOTONIC) + (s->interval / 2 < PATIENCE ? s->interval / 2 : PATIENCE);
        }
        s->n_items += tick == s->tick;
        if (s->tick > 0 && s->n_items == stat_counters_expected(&s->counters))
                report(s);
}

/* What is missing of a sum comes with the next one. */
static void on_gap(void *userdata, const perfd_gap *gap) {
        Stat *s = userdata;

        (void)perfctl_fail(s->p, PERFCTL_OK, "%" PRIu64 " reads were dropped: what they counted is in later lines",
                           gap->items);
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        Stat *s = userdata;
        StatEvent *e = stat_counters_find(&s->counters, id);

        if (!e || s->stopping)
                return;
        e->n_expected = 0;
        (void)perfctl_fail(s->p, PERFCTL_OK, "%s was removed by another client", s->counters.list[e->first].event);
}

static void on_end(void *userdata, const perfd_end *end) {
        Stat *s = userdata;

        if (!s->stopping)
                s->code = perfctl_fail(s->p, PERFCTL_FAILED, "the daemon ended the stream: %s", end->reason);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static int timeout_ms(const Stat *s) {
        uint64_t until = s->tick > 0 ? s->deadline : UINT64_MAX, now = now_of(CLOCK_MONOTONIC);

        if (s->give_up > 0 && s->give_up < until)
                until = s->give_up;
        if (until == UINT64_MAX || s->stopping)
                return -1;
        if (until <= now)
                return 0;
        return until - now < 1000000000000 ? (int)((until - now + 999999) / 1000000) : 1000000; /* it is asked again */
}

static int await(Stat *s, Signals *ret) {
        struct pollfd fds[] = {
                { .fd = perfd_client_fd(s->p->client), .events = perfd_client_events(s->p->client) },
                { .fd = signals_fd(), .events = POLLIN },
                { .fd = s->p->out.fd }, /* tells when its reader is gone */
        };
        int n;

        output_flush(&s->p->out);
        n = s->p->out.error ? 0 : poll(fds, 3, timeout_ms(s));
        if (n < 0 && errno != EINTR)
                return perfctl_fail(s->p, PERFCTL_FAILED, "poll: %s", strerror(errno));
        if (n > 0 && fds[2].revents & (POLLERR | POLLHUP))
                s->p->out.error = EPIPE;
        *ret = signals_take();
        return 0;
}

/* The first reads behind the command's end have all of it; if none comes, what is there has to do. */
static void on_signals(Stat *s, Signals signals) {
        if (signals.child && s->stopped == 0) {
                command_look(&s->command);
                if (s->command.ended) {
                        s->stopped = now_of(s->clock);
                        s->is_enough = s->counters.n_events == 0;
                        s->give_up = now_of(CLOCK_MONOTONIC) + s->interval + LAST_WORDS;
                }
        }
        if (!signals.end)
                return;
        s->was_told = true;
        if (s->command.pid > 0 && !s->command.ended)
                (void)kill(s->command.pid, SIGTERM);
        else if (s->stopped == 0)
                s->is_enough = true;
}

static void on_deadline(Stat *s) {
        uint64_t now = now_of(CLOCK_MONOTONIC);

        if (s->tick > 0 && now >= s->deadline)
                report(s);
        if (s->give_up > 0 && now >= s->give_up)
                s->is_enough = true;
}

static int loop(Stat *s) {
        Signals signals = { .end = false };
        int r;

        for (;;) {
                r = await(s, &signals);
                if (r != 0)
                        return r;
                if (s->p->out.error)
                        return PERFCTL_OK; /* main says it, unless the reader just went away */
                on_signals(s, signals);
                r = s->counters.n_events > 0 ? perfd_client_process(s->p->client) : 0; /* else there is no stream */
                if (r == PERFD_E_ENDED)
                        return s->code;
                if (r != 0)
                        return perfctl_fail_client(s->p, NULL);
                on_deadline(s);
                if (!s->is_enough || s->stopping)
                        continue;
                if (s->counters.n_events == 0)
                        return PERFCTL_OK;
                s->stopping = true;
                if (perfd_stream_stop(s->p->client) != 0)
                        return perfctl_fail_client(s->p, NULL);
        }
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static int add(Stat *s) {
        StatAsked asked = s->options->asked;
        uint32_t pid = (uint32_t)s->command.pid;

        asked.interval = s->interval;
        if (s->options->command) {
                asked.from_exec = true;
                asked.target.pids = &pid;
                asked.target.n_pids = 1;
        }
        return stat_counters_add(s->p, &s->counters, &asked);
}

static int subscribe(Stat *s) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        const char **names = must_have(calloc(s->counters.n_events + 1, sizeof(*names)));
        int r;

        for (size_t i = 0; i < s->counters.n_events; i++)
                names[i] = s->counters.events[i].name;
        subscription.events = names;
        subscription.n_events = s->counters.n_events;
        subscription.order = PERFD_ORDER_CPU;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        r = perfd_subscribe(s->p->client, &subscription, &callbacks, s);
        free(names);
        return r == 0 ? 0 : perfctl_fail_client(s->p, NULL);
}

/* The connection that holds the events stays; the stream gets one of its own. */
static int connect_stream(Stat *s) {
        s->control = s->p->client;
        s->p->client = NULL;
        return perfctl_connect(s->p);
}

/* The subscription stands before the counters begin, and the command begins after them: so nothing is missed. */
static int start(Stat *s) {
        char **command = s->options->command;
        int r = command ? command_start(s->p, &s->command, command) : 0;

        if (r == 0)
                r = add(s);
        if (r == 0 && s->counters.n_events > 0)
                r = connect_stream(s);
        if (r == 0 && s->counters.n_events > 0)
                r = subscribe(s);
        if (r != 0)
                return r;
        if (s->options->interval > 0)
                stat_print_heading(s->p, &s->options->style);
        s->began = now_of(s->clock);
        if (s->counters.n_events > 0)
                r = stat_counters_enable(s->p, s->control, &s->counters);
        if (r != 0 || !command)
                return r;
        s->began = now_of(s->clock);
        return command_go(s->p, &s->command, command);
}

/* The connection that holds the events is that of the next run. */
static int end_run(Stat *s, int r) {
        if (s->control) {
                perfd_client_free(s->p->client);
                s->p->client = s->control;
                s->control = NULL;
        }
        return r == 0 && s->options->n_runs > 1 ? stat_counters_remove(s->p, &s->counters) : r;
}

/* ret_code: of the command. */
static int run_once(Stat *s, StatRuns *runs, int *ret_code) {
        StatTimes times;
        int r = start(s);

        if (r == 0)
                r = loop(s);
        r = end_run(s, r);
        times = (StatTimes){ (s->stopped > 0 ? s->stopped : now_of(s->clock)) - s->began, s->command.user, s->command.sys };
        if (s->command.ended)
                *ret_code = command_code(&s->command);
        if (r == 0 && !stat_runs_add(runs, &s->counters, &times))
                r = perfctl_fail(s->p, PERFCTL_FAILED,
                                 "the events differ from those of the previous run: of a glob, or of a cgroup");
        command_deinit(&s->command);
        stat_counters_deinit(&s->counters);
        return r;
}

int stat_run(Perfctl *p, const StatOptions *options) {
        Stat s = { .p = p };
        StatRuns runs = { .elapsed = { .n = 0 } };
        bool was_told = false;
        int code = 0, r = signals_catch(p, options->command != NULL);

        if (r == 0)
                r = find_clock(&s);
        for (uint64_t i = 0; i < options->n_runs && r == 0 && !was_told && !p->out.error; i++) {
                s = (Stat){ .p = p, .options = options, .command = COMMAND_NULL, .clock = s.clock,
                            .interval = options->interval > 0 ? options->interval : TOTAL_INTERVAL };
                r = run_once(&s, &runs, &code);
                was_told = s.was_told;
        }
        if (r == 0 && options->command && options->interval == 0 && !p->out.error) {
                stat_runs_finish(&runs);
                stat_print_total(p, &options->style, &runs, options->command);
        }
        stat_runs_deinit(&runs);
        return r == 0 ? code : r;
}
