/*
 * Two connections: one whose end takes the counters away, however we end, and the stream. What is counted ends where the counters are
 * disabled, not where we hear of it: then each CPU says what it has counted, and the stream is asked to stop behind that.
 */
#include "client/perfctl/stat/stat.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/gap.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/hosts/retry.h"
#include "client/perfctl/base/signals.h"
#include "client/perfctl/stat/reports.h"
#include "client/perfctl/stream/stream-loop.h"
#include "client/perfctl/events/task-ends.h"

typedef struct Stat {
        Perfctl *p;
        const StatOptions *options;
        perfd_client *control;
        StatCounters counters;
        StatReports reports;
        Command command;
        TaskEnds tasks; /* of --pid and --tid */
        DaemonClock clock; /* of the stream */
        HostWall host_wall; /* for Perfctl.gap */
        uint64_t stopped; /* of that, ns: what was counted has ended, and is reported; 0: not yet */
        bool has_ended;   /* by itself, and not because we do not go on: at `stopped` */
        bool was_told;    /* by a signal to end */
        bool is_short;    /* another client has removed what was to be counted */
        bool is_late;     /* the command was told, because its time is over */
        bool is_enough;
        bool stopping;
        bool is_keeper_lost; /* the connection that holds the events, of another host */
        bool is_lost;        /* the stream broke off: what was read until then is counted */
        int64_t wall_offset; /* of the stream, by the latest reading */
        uint64_t latest;     /* of its clock, ns: the last item or reading that came; 0: none yet */
        int code;
} Stat;

/* ---- what comes -------------------------------------------------------------------------------------------------- */

static void on_start(void *userdata, const perfd_start *start) {
        Stat *s = userdata;

        s->wall_offset = start->wall_offset;
        host_note(s->p, NOTE_START, "%s", start->host);
        stat_put_gap(s->p, host_wall_now(&s->host_wall, start->wall_offset));
}

static void on_wall(void *userdata, const perfd_wall_reading *reading) {
        Stat *s = userdata;

        s->wall_offset = (int64_t)(reading->wall - reading->time);
        s->latest = reading->time > s->latest ? reading->time : s->latest;
}

static void on_event(void *userdata, const perfd_event *event) {
        Stat *s = userdata;

        stat_counters_take_event(&s->counters, event);
}

static void on_item(void *userdata, const perfd_item *item) {
        Stat *s = userdata;

        s->latest = perfd_item_time(item) > s->latest ? perfd_item_time(item) : s->latest;
        if (!s->is_enough || s->reports.is_ending)
                stat_reports_take(&s->reports, item, clock_read(CLOCK_MONOTONIC));
        s->is_enough = s->is_enough || (s->options->count > 0 && s->reports.n_made == s->options->count);
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
        stat_counters_set_removed(&s->counters, e, s->reports.began, daemon_clock_now(&s->clock));
        s->is_short = true;
        (void)perfctl_fail(s->p, PERFCTL_OK, "%s was removed by another client", s->counters.list[e->first].event);
}

static void on_end(void *userdata, const perfd_end *end) {
        Stat *s = userdata;

        host_note_end(s->p, end);
        if (!s->stopping)
                s->code = perfctl_fail(s->p, PERFCTL_FAILED, "the daemon ended the stream: %s", end->reason);
        else if (s->stopped > 0)
                stat_reports_make_last(&s->reports, s->has_ended ? s->stopped : 0);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* ns until all is counted that was asked for; 0: it is; UINT64_MAX: that is not a matter of time. */
static uint64_t time_left(const Stat *s) {
        uint64_t end = s->reports.began + s->options->duration, now = daemon_clock_now(&s->clock);

        if (s->options->duration == 0 || s->is_enough || s->is_late)
                return UINT64_MAX;
        return end > now ? end - now : 0;
}

static int timeout_ms(const Stat *s) {
        uint64_t deadline = stat_reports_deadline(&s->reports), now = clock_read(CLOCK_MONOTONIC), left = time_left(s), ns;

        if (s->stopping || (deadline == UINT64_MAX && left == UINT64_MAX))
                return -1;
        ns = deadline == UINT64_MAX ? UINT64_MAX : deadline > now ? deadline - now : 0;
        if (left < ns)
                ns = left;
        return ns < 1000000000000 ? (int)((ns + 999999) / 1000000) : 1000000; /* it is asked again */
}

static int await(Stat *s, Signals *ret) {
        struct pollfd fds[] = {
                { .fd = perfd_client_fd(s->p->client), .events = perfd_client_events(s->p->client) },
                { .fd = signals_fd(), .events = POLLIN },
                { .fd = s->p->out.fd }, /* tells when its reader is gone */
                { .fd = s->tasks.fd, .events = POLLIN },
                { .fd = s->control && s->p->host && !s->stopping ? perfd_client_fd(s->control) : -1, .events = POLLIN },
        };
        int n;

        output_flush(&s->p->out);
        n = s->p->out.error ? 0 : poll(fds, sizeof(fds) / sizeof(*fds), timeout_ms(s));
        if (n < 0 && errno != EINTR)
                return perfctl_fail(s->p, PERFCTL_FAILED, "poll: %s", strerror(errno));
        if (n > 0 && fds[2].revents & (POLLERR | POLLHUP))
                s->p->out.error = EPIPE;
        s->is_keeper_lost = n > 0 && fds[4].revents != 0; /* nothing else ever comes there */
        *ret = signals_take();
        return 0;
}

static void on_stopped(Stat *s, bool has_ended) {
        if (s->is_enough)
                return;
        s->stopped = daemon_clock_now(&s->clock);
        s->has_ended = has_ended;
        s->is_enough = true;
        stat_reports_end(&s->reports);
}

/* What a command does until it has ended belongs to it too. */
static void end_command(Stat *s) {
        if (s->command.pid > 0 && !s->command.ended)
                (void)kill(s->command.pid, SIGTERM);
}

static void on_signals(Stat *s, Signals signals) {
        if (signals.child) {
                command_look(&s->command);
                if (s->command.ended)
                        on_stopped(s, true);
        }
        if (!signals.end)
                return;
        s->was_told = true;
        end_command(s);
        if (s->command.pid == 0)
                on_stopped(s, false);
}

static void on_time(Stat *s) {
        stat_reports_make_late(&s->reports, clock_read(CLOCK_MONOTONIC));
        if (time_left(s) > 0)
                return;
        s->is_late = s->options->command;
        if (s->is_late)
                end_command(s);
        else
                on_stopped(s, false);
}

/* Once it is enough. */
static int stop(Stat *s) {
        int r = s->stopped > 0 ? stat_counters_disable(s->p, s->control, &s->counters) : 0;

        s->stopping = true;
        if (r == 0 && perfd_stream_stop(s->p->client) != 0)
                r = perfctl_fail_client(s->p, NULL);
        return r;
}

/* What comes of it until then is what has been read; a command goes without what observed it. */
static int lose(Stat *s, int code) {
        s->is_lost = !s->options->command && s->latest > s->reports.began && (s->options->interval == 0 || s->reports.n_made > 0);
        s->stopped = s->latest;
        return code;
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
                if (task_ends_take(&s->tasks))
                        on_stopped(s, true);
                r = s->counters.n_events > 0 ? perfd_client_process(s->p->client) : 0; /* else there is no stream */
                if (r == PERFD_E_ENDED)
                        return s->stopping ? s->code : lose(s, s->code);
                if (r != 0)
                        return lose(s, perfctl_fail_client(s->p, NULL));
                if (s->is_keeper_lost) {
                        host_note(s->p, NOTE_PASSING, "%s", STREAM_KEEPER_LOST);
                        return lose(s, perfctl_fail(s->p, PERFCTL_FAILED, "%s", STREAM_KEEPER_LOST));
                }
                on_time(s);
                if (s->is_short && !s->options->command && !stat_counters_any_left(&s->counters))
                        on_stopped(s, true);
                if (!s->is_enough || s->stopping)
                        continue;
                if (s->counters.n_events == 0) {
                        stat_reports_make_last(&s->reports, s->stopped);
                        return PERFCTL_OK;
                }
                r = stop(s);
                if (r != 0)
                        return r;
        }
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static int add(Stat *s) {
        StatAsked asked = s->options->asked;
        uint32_t pid = (uint32_t)s->command.pid;

        asked.interval = s->reports.every;
        asked.is_limited = s->options->command || s->options->duration > 0;
        if (s->options->command && !s->options->is_beside) {
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
        callbacks.start = on_start;
        callbacks.wall = on_wall;
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

/* A signal is heard of in a moment, as this is short. */
static void wait_for_reads(const Stat *s) {
        uint64_t ns = stat_reports_wait(&s->reports, daemon_clock_now(&s->clock));
        struct timespec left = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

/* The subscription stands before the counters begin, and the command begins after them: so nothing is missed. */
static int start(Stat *s) {
        char **command = s->options->command;
        int r = command ? 0 : task_ends_open(s->p, &s->tasks); /* a command says alone for how long */

        if (r == 0 && command)
                r = command_start(s->p, &s->command, command);
        if (r == 0)
                r = add(s);
        if (r == 0 && s->counters.n_events > 0)
                r = connect_stream(s);
        if (r == 0 && s->counters.n_events > 0)
                r = subscribe(s);
        if (r != 0)
                return r;
        if (s->options->interval > 0 && !s->p->gap.why)
                stat_print_heading(s->p, &s->options->style);
        if (s->options->is_beside)
                wait_for_reads(s); /* these counters begin at once, and not at an exec */
        if (s->counters.n_events > 0)
                r = stat_counters_enable(s->p, s->control, &s->counters);
        if (!s->options->is_beside)
                wait_for_reads(s);
        stat_reports_begin(&s->reports, daemon_clock_now(&s->clock));
        return r == 0 && command ? command_go(s->p, &s->command, command) : r;
}

/* Since when nothing is in any line, and how many lines there are. */
static void tell_hosts(const Stat *s, int r) {
        uint64_t latest = s->options->interval > 0 && s->reports.has_begun ? s->reports.reported : s->latest;
        const perfd_error *e = s->p->client ? perfd_client_error(s->p->client) : NULL;

        if (r != 0 && e && host_error_may_pass(e))
                host_note(s->p, NOTE_PASSING, "%s", e->message);
        if (s->latest > 0)
                host_note(s->p, NOTE_WALL, "%" PRIu64, latest + (uint64_t)s->wall_offset);
        host_note(s->p, NOTE_SUM, "%" PRIu64 " %" PRIu64 " 0", s->reports.n_made, s->reports.n_made);
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

/* How long it was counted; where intervals are reported, these are. */
static uint64_t time_of(const Stat *s) {
        if (s->options->has_total)
                return s->reports.reported - s->reports.began;
        return (s->stopped > 0 ? s->stopped : daemon_clock_now(&s->clock)) - s->reports.began;
}

/* ret_code: of the command. */
static int run_once(Stat *s, StatRuns *runs, int *ret_code) {
        StatTimes times;
        int r;

        stat_reports_init(&s->reports, s->p, &s->options->style, &s->counters, s->options->interval);
        s->reports.is_of_command = s->options->command;
        r = start(s);
        if (r == 0)
                r = loop(s);
        tell_hosts(s, r);
        r = end_run(s, r);
        if (s->options->has_total)
                stat_counters_take_whole(&s->counters);
        times = (StatTimes){ time_of(s), s->command.user, s->command.sys };
        if (s->command.ended && !s->is_late)
                *ret_code = command_code(&s->command);
        if (r == 0 && s->is_short)
                *ret_code = stat_counters_any_left(&s->counters) ? PERFCTL_FAILED :
                                                                   perfctl_fail(s->p, PERFCTL_FAILED, "none of its events is left");
        if ((r == 0 || s->is_lost) && !stat_runs_add(runs, &s->counters, &times))
                r = perfctl_fail(s->p, PERFCTL_FAILED,
                                 "the events differ from those of the previous run: of a glob, or of a cgroup");
        command_deinit(&s->command);
        task_ends_close(&s->tasks);
        stat_counters_deinit(&s->counters);
        return r;
}

void stat_put_gap(Perfctl *p, uint64_t to) {
        if (!p->json && perfctl_get(p, "field-separator"))
                p->gap.why = NULL; /* it is said on stderr */
        host_gap_put_line(p, to);
}

int stat_run(Perfctl *p, const StatOptions *options) {
        Stat s = { .p = p };
        StatRuns runs = { .elapsed = { .n = 0 } };
        bool is_over = false;
        int code = 0, r = signals_catch(p, options->command != NULL);

        if (r == 0)
                r = daemon_clock_find(p, &s.clock);
        for (uint64_t i = 0; i < options->n_runs && r == 0 && !is_over && !p->out.error; i++) {
                s = (Stat){ .p = p, .options = options, .command = COMMAND_NULL, .tasks = TASK_ENDS_NULL, .clock = s.clock };
                if (p->gap.why)
                        s.host_wall = host_wall_ask(p);
                r = run_once(&s, &runs, &code);
                is_over = s.was_told || s.is_short;
        }
        if ((r == 0 || s.is_lost) && (options->interval == 0 || options->has_total) && !p->out.error) {
                stat_runs_finish(&runs);
                stat_print_total(p, &runs, options);
        }
        stat_runs_deinit(&runs);
        return r == 0 ? code : r;
}
