/*
 * The parent of what runs for each host: it starts them, reads what they print, starts one again whose stream was lost, and ends with
 * the worst of their statuses.
 */
#include "client/perfctl/hosts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/hosts/process.h"
#include "client/perfctl/hosts/reconnect.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/signals.h"
#include "client/perfctl/base/terminal.h"

static void reap(Hosts *s) {
        for (size_t i = 0; i < s->n; i++) {
                int status;

                if (s->list[i].pid > 0 && waitpid(s->list[i].pid, &status, WNOHANG) == s->list[i].pid)
                        host_end(s, &s->list[i], status);
        }
}

/* Once: a second signal ends them in the middle of everything. they_know: those that run got the same signal. */
static void tell_to_end(Hosts *s, bool they_know) {
        if (s->is_told)
                return;
        s->is_told = true;
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].pid > 0 && !they_know)
                        (void)kill(s->list[i].pid, SIGTERM);
                else if (s->list[i].pid == 0 && s->list[i].again > 0)
                        host_give_up(s, &s->list[i]);
}

static bool is_running(const Hosts *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].pid > 0 || s->list[i].again > 0 || s->queues[i].first)
                        return true;
        return false;
}

static int wait_for(const Hosts *s, struct pollfd *fds, uint64_t wait) {
        const struct timespec time = { .tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000) };
        size_t n = 0;

        fds[n++] = (struct pollfd){ .fd = signals_fd(), .events = POLLIN };
        for (size_t i = 0; i < s->n; i++)
                for (int which = 0; which < PIPES; which++) {
                        bool is_full = which == PIPE_OUT && host_queue_is_full(s->queues, s->n, i);

                        fds[n++] = (struct pollfd){ .fd = is_full ? -1 : s->list[i].fds[which], .events = POLLIN };
                }
        if (ppoll(fds, n, wait == UINT64_MAX ? NULL : &time, NULL) < 0 && errno != EINTR)
                return perfctl_fail(s->p, PERFCTL_FAILED, "poll: %s", strerror(errno));
        return 0;
}

static int loop(Hosts *s) {
        struct pollfd *fds = must_have(calloc(1 + PIPES * s->n, sizeof(*fds)));
        int r = 0;

        while (r == 0 && is_running(s)) {
                uint64_t wait = hosts_give(s);
                Signals signals;

                output_flush(&s->p->out);
                if (s->p->out.error) /* nobody reads it: each of them ends as it does when nobody reads what it prints */
                        tell_to_end(s, false);
                r = is_running(s) ? wait_for(s, fds, hosts_until_retry(s, wait)) : 0;
                signals = signals_take();
                if (signals.end)
                        tell_to_end(s, signals.is_for_all);
                for (size_t i = 0; i < s->n && r == 0; i++)
                        for (int which = 0; which < PIPES; which++)
                                if (fds[1 + PIPES * i + (size_t)which].revents)
                                        (void)host_read(s, &s->list[i], which);
                reap(s);
                r = r == 0 && !s->is_told ? hosts_retry(s) : r;
        }
        free(fds);
        return r;
}

/* The worst of them: a wrong use, which is so on all, a failure, a host that cannot be reached, samples that are missing. */
static int worst(const Hosts *s) {
        static const int order[] = { PERFCTL_USAGE, PERFCTL_FAILED, PERFCTL_UNREACHABLE, PERFCTL_LOST };

        for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
                for (size_t i = 0; i < s->n; i++)
                        if (s->list[i].status == order[k])
                                return order[k];
        return PERFCTL_OK;
}

static bool has_option(const Perfctl *p, const char *name) {
        for (const Option *o = p->verb->options; o->name; o++)
                if (strcmp(o->name, name) == 0)
                        return true;
        return false;
}

static const char *option_of(const Perfctl *p, const char *name) {
        return has_option(p, name) ? perfctl_get(p, name) : NULL;
}

/* Of what is read until it ends, a row for each host. */
static void print_ledger(Hosts *s) {
        const char **names = must_have(calloc(s->n, sizeof(*names)));
        const HostSum **sums = must_have(calloc(s->n, sizeof(*sums)));
        int *statuses = must_have(calloc(s->n, sizeof(*statuses)));

        for (size_t i = 0; i < s->n; i++) {
                names[i] = s->list[i].name;
                sums[i] = &s->list[i].sum;
                statuses[i] = s->list[i].status;
        }
        host_ledger_print(s->p, s->form == HOSTS_MERGED ? "printed" : "counted", names, sums, statuses, s->n);
        free(names);
        free(sums);
        free(statuses);
}

/* Samples that were sent; those of `stat`, which are none, have lines of their own. */
static bool has_ledger(const Hosts *s) {
        if (s->form == HOSTS_EACH || !has_option(s->p, "ledger"))
                return false;
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].has_streamed)
                        return true;
        return false;
}

static int run_all(Hosts *s, int (*run)(Perfctl *p)) {
        int r = 0;

        s->is_told = false;
        s->run = run;
        for (size_t i = 0; i < s->n; i++) {
                s->list[i] = (Host){ .name = s->p->hosts.items[i], .fds = { -1, -1 } };
                host_queue_init(&s->queues[i]);
        }
        for (size_t i = 0; i < s->n && r == 0; i++)
                r = host_start(s, &s->list[i]);
        if (r == 0)
                r = loop(s);
        tell_to_end(s, false); /* those of a start that failed */
        if (r == 0 && s->p->out.error == 0 && has_ledger(s))
                print_ledger(s);
        r = r == 0 ? worst(s) : r;
        for (size_t i = 0; i < s->n; i++) {
                for (int which = 0; which < PIPES; which++)
                        host_close(s, &s->list[i], which);
                host_deinit(&s->list[i]);
                host_queue_deinit(&s->queues[i]);
        }
        return r;
}

/* Of what changes more than an event: on all hosts or on none. */
static int try_first(Hosts *s) {
        const Verb *verb = s->p->verb;
        int r;

        s->is_hidden = true;
        r = run_all(s, verb->tries_first);
        s->is_hidden = false;
        return r == 0 ? 0 : perfctl_fail(s->p, r, "nothing is changed on any host");
}

/* What would be each process's own. */
static int check(const Hosts *s) {
        const Perfctl *p = s->p;

        if (p->verb == &verb_fleet)
                return perfctl_fail(p, PERFCTL_USAGE, "fleet takes one --host: a glob of the names under which hosts publish, such as 'web*', "
                                    "'web[12]', or '*' for all");
        if (s->form == HOSTS_ONE)
                return perfctl_fail(p, PERFCTL_USAGE, "this is for one host: --host is given %zu times", s->n);
        for (size_t i = 0; i < p->n_arguments; i++)
                if (strcmp(p->arguments[i], "-") == 0)
                        return perfctl_fail(p, PERFCTL_USAGE, "the standard input cannot be read for several hosts: name a file");
        if (p->command)
                return perfctl_fail(p, PERFCTL_USAGE, "the command behind -- would run on this machine, once for each host: name one host");
        if (option_of(p, "live"))
                return perfctl_fail(p, PERFCTL_USAGE, "--live is for one host, whose table it redraws: use --interval TIME");
        if (option_of(p, "output") && s->form != HOSTS_MERGED)
                return perfctl_fail(p, PERFCTL_USAGE, "--output is for one host: use the shell's `> %s`", option_of(p, "output"));
        return 0;
}

static int parse_time(const Hosts *s, const char *option, const char *also, uint64_t *ret) {
        const char *text = option_of(s->p, option);

        if (text && !quantity_parse_time(text, ret))
                return perfctl_fail(s->p, PERFCTL_USAGE, "--%s: '%s' is not a time such as 500ms, 10s, 2m%s%s", option, text, also,
                                    quantity_lack_of_time(text));
        return 0;
}

/* --for and --count are looked at by each process: what is wrong with them is said there. */
static int parse_options(Hosts *s) {
        const char *reconnect = option_of(s->p, "reconnect"), *duration = option_of(s->p, "for"), *count = option_of(s->p, "count");
        int r = parse_time(s, "hold", "", &s->hold);

        s->reconnects = has_option(s->p, "reconnect") && !(reconnect && strcmp(reconnect, "never") == 0);
        s->reconnect = UINT64_MAX;
        if (r == 0 && s->reconnects)
                r = parse_time(s, "reconnect", ", nor the word never", &s->reconnect);
        s->may_lose = option_of(s->p, "allow-loss");
        if (duration && !quantity_parse_time(duration, &s->duration))
                s->duration = 0;
        if (count && !quantity_parse_number(count, &s->count))
                s->count = 0;
        return r;
}

bool hosts_are_meant(const Perfctl *p) {
        return p->verb && !p->help && (p->hosts.n > 1 || (p->hosts.n == 1 && option_of(p, "reconnect")));
}

/* One file, of what this process prints. */
static int open_output(Perfctl *p, int *ret_fd) {
        int r = command_open_output(p, ret_fd);

        if (*ret_fd >= 0)
                perfctl_set(p, "output", NULL);
        return r;
}

int hosts_run(Perfctl *p, int (*end)(Perfctl *p, int code)) {
        Hosts s = { .p = p, .n = p->hosts.n, .form = p->verb->hosts, .hold = HOST_HOLD, .end = end };
        int fd = -1, r = check(&s);

        if (r == 0)
                r = parse_options(&s);
        if (r != 0)
                return r;
        s.list = must_have(calloc(s.n, sizeof(*s.list)));
        s.queues = must_have(calloc(s.n, sizeof(*s.queues)));
        s.width = strlen("HOST");
        for (size_t i = 0; i < s.n; i++)
                s.width = strlen(p->hosts.items[i]) > s.width ? strlen(p->hosts.items[i]) : s.width;
        s.line = terminal_width(STDOUT_FILENO);
        if (s.form == HOSTS_MERGED)
                r = open_output(p, &fd);
        if (r == 0)
                r = signals_catch(p, true);
        if (r == 0 && p->verb->tries_first)
                r = try_first(&s);
        if (r == 0)
                r = run_all(&s, p->verb->run);
        command_close_output(p, fd);
        free(s.list);
        free(s.queues);
        return r;
}
