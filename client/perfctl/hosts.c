/* The parent of what runs for each host: it starts them, reads what they print, and ends with the worst of their statuses. */
#include "client/perfctl/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/perfctl/host-output.h"
#include "client/perfctl/quantity.h"
#include "client/perfctl/signals.h"
#include "client/perfctl/terminal.h"

#define MARGIN 2 /* columns between a host's name and its line: a blank and a mark */
#define LINE_MIN 40
#define READ_SIZE ((size_t)64 << 10)

/* The last line may have no end: of what was killed. */
static void close_pipe(Hosts *s, Host *h, int which) {
        if (h->fds[which] < 0)
                return;
        (void)close(h->fds[which]);
        h->fds[which] = -1;
        if (h->lines[which].n > 0)
                host_take_bytes(s, h, which, "\n", 1);
}

/* False: there is nothing more now. */
static bool read_pipe(Hosts *s, Host *h, int which) {
        char bytes[READ_SIZE];
        ssize_t n = h->fds[which] < 0 ? 0 : read(h->fds[which], bytes, sizeof(bytes));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                close_pipe(s, h, which);
                return false;
        }
        host_take_bytes(s, h, which, bytes, (size_t)n);
        return true;
}

/* Whoever it has left behind, such as a master of ssh's connections, may hold its pipes for longer. */
static void end_host(Hosts *s, Host *h, int status) {
        for (int which = 0; which < PIPES; which++) {
                while (read_pipe(s, h, which))
                        ;
                close_pipe(s, h, which);
        }
        h->pid = 0;
        h->status = WIFEXITED(status) ? WEXITSTATUS(status) : PERFCTL_FAILED;
        if (WIFSIGNALED(status))
                fprintf(stderr, "%s: ended by signal %d\n", h->name, WTERMSIG(status));
        s->queues[h - s->list].has_ended = true;
}

static void reap(Hosts *s) {
        for (size_t i = 0; i < s->n; i++) {
                int status;

                if (s->list[i].pid > 0 && waitpid(s->list[i].pid, &status, WNOHANG) == s->list[i].pid)
                        end_host(s, &s->list[i], status);
        }
}

static _Noreturn void run_child(const Hosts *s, Host *h, int (*run)(Perfctl *p), const int *out, const int *err) {
        int null = open("/dev/null", O_RDONLY);
        Perfctl *p = s->p;

        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0 || dup2(err[1], STDERR_FILENO) < 0)
                _exit(PERFCTL_FAILED);
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        (void)signal(SIGCHLD, SIG_DFL);
        (void)close(null); /* the others close at an exec(3), as of ssh, or with this process */
        for (size_t i = 0; i < s->n; i++)
                for (int which = 0; which < PIPES; which++)
                        if (s->list[i].fds[which] >= 0)
                                (void)close(s->list[i].fds[which]);
        if (p->human)
                terminal_set_width(s->line > s->width + MARGIN + LINE_MIN ? s->line - s->width - MARGIN : LINE_MIN);
        p->host = h->name;
        p->is_of_several = true;
        perfctl_choose_host(p);
        exit(s->end(p, run(p)));
}

static int start(Hosts *s, Host *h, int (*run)(Perfctl *p)) {
        int out[2], err[2];

        output_flush(&s->p->out);
        fflush(stderr);
        if (pipe2(out, O_CLOEXEC) < 0)
                return perfctl_fail(s->p, PERFCTL_FAILED, "pipe: %s", strerror(errno));
        if (pipe2(err, O_CLOEXEC) < 0) {
                int saved = errno;

                (void)close(out[0]);
                (void)close(out[1]);
                return perfctl_fail(s->p, PERFCTL_FAILED, "pipe: %s", strerror(saved));
        }
        h->fds[PIPE_OUT] = out[0];
        h->fds[PIPE_ERR] = err[0];
        h->pid = fork();
        if (h->pid == 0)
                run_child(s, h, run, out, err);
        (void)close(out[1]);
        (void)close(err[1]);
        if (h->pid < 0) {
                h->pid = 0;
                return perfctl_fail(s->p, PERFCTL_FAILED, "fork: %s", strerror(errno));
        }
        (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
        (void)fcntl(err[0], F_SETFL, O_NONBLOCK);
        return 0;
}

/* Once: a second signal ends them in the middle of everything. */
static void tell_to_end(Hosts *s) {
        if (s->is_told)
                return;
        s->is_told = true;
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].pid > 0)
                        (void)kill(s->list[i].pid, SIGTERM);
}

static bool is_running(const Hosts *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].pid > 0 || s->queues[i].first)
                        return true;
        return false;
}

static int wait_for(const Hosts *s, struct pollfd *fds, uint64_t wait) {
        const struct timespec time = { .tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000) };
        size_t n = 0;

        fds[n++] = (struct pollfd){ .fd = signals_fd(), .events = POLLIN };
        for (size_t i = 0; i < s->n; i++)
                for (int which = 0; which < PIPES; which++) {
                        bool is_full = which == PIPE_OUT && s->queues[i].bytes >= HOST_QUEUE_MAX;

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
                        tell_to_end(s);
                r = is_running(s) ? wait_for(s, fds, wait) : 0;
                signals = signals_take();
                s->is_told |= signals.is_for_all;
                if (signals.end)
                        tell_to_end(s);
                for (size_t i = 0; i < s->n && r == 0; i++)
                        for (int which = 0; which < PIPES; which++)
                                if (fds[1 + PIPES * i + (size_t)which].revents)
                                        (void)read_pipe(s, &s->list[i], which);
                reap(s);
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

static int run_all(Hosts *s, int (*run)(Perfctl *p)) {
        int r = 0;

        s->is_told = false;
        for (size_t i = 0; i < s->n; i++) {
                s->list[i] = (Host){ .name = s->p->hosts.items[i], .fds = { -1, -1 } };
                host_queue_init(&s->queues[i]);
        }
        for (size_t i = 0; i < s->n && r == 0; i++)
                r = start(s, &s->list[i], run);
        if (r == 0)
                r = loop(s);
        tell_to_end(s); /* those of a start that failed */
        for (size_t i = 0; i < s->n; i++) {
                for (int which = 0; which < PIPES; which++) {
                        close_pipe(s, &s->list[i], which);
                        free(s->list[i].lines[which].bytes);
                }
                free(s->list[i].item.bytes);
                host_queue_deinit(&s->queues[i]);
        }
        return r == 0 ? worst(s) : r;
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

static const char *option_of(const Perfctl *p, const char *name) {
        for (const Option *o = p->verb->options; o->name; o++)
                if (strcmp(o->name, name) == 0)
                        return perfctl_get(p, name);
        return NULL;
}

/* What would be each process's own. */
static int check(const Hosts *s) {
        const Perfctl *p = s->p;

        if (s->form == HOSTS_ONE)
                return perfctl_fail(p, PERFCTL_USAGE, "this is for one host: --host is given %zu times", s->n);
        for (size_t i = 0; i < p->n_arguments; i++)
                if (strcmp(p->arguments[i], "-") == 0)
                        return perfctl_fail(p, PERFCTL_USAGE, "the standard input cannot be read for several hosts: name a file");
        if (option_of(p, "live"))
                return perfctl_fail(p, PERFCTL_USAGE, "--live is for one host, whose table it redraws: use --interval TIME");
        if (option_of(p, "output"))
                return perfctl_fail(p, PERFCTL_USAGE, "--output is for one host: use the shell's `> %s`", option_of(p, "output"));
        return 0;
}

int hosts_run(Perfctl *p, int (*end)(Perfctl *p, int code)) {
        Hosts s = { .p = p, .n = p->hosts.n, .form = p->verb->hosts, .hold = HOST_HOLD, .end = end };
        int r = check(&s);

        if (r != 0)
                return r;
        if (option_of(p, "hold") && !quantity_parse_time(option_of(p, "hold"), &s.hold))
                return perfctl_fail(p, PERFCTL_USAGE, "--hold: '%s' is not a time such as 500ms, 10s, 2m", option_of(p, "hold"));
        s.list = must_have(calloc(s.n, sizeof(*s.list)));
        s.queues = must_have(calloc(s.n, sizeof(*s.queues)));
        s.width = strlen("HOST");
        s.line = terminal_width(STDOUT_FILENO);
        for (size_t i = 0; i < s.n; i++)
                s.width = strlen(p->hosts.items[i]) > s.width ? strlen(p->hosts.items[i]) : s.width;
        r = signals_catch(p, true);
        if (r == 0 && p->verb->tries_first)
                r = try_first(&s);
        if (r == 0)
                r = run_all(&s, p->verb->run);
        free(s.list);
        free(s.queues);
        return r;
}
