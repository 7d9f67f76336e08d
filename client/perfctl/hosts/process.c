/* How a process of a host is started, read and ended. */
#include "client/perfctl/hosts/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/base/terminal.h"

#define MARGIN 2 /* columns between a host's name and its line: a blank and a mark */
#define LINE_MIN 40
#define READ_SIZE ((size_t)64 << 10)

/* The last line may have no end: of what was killed. */
void host_close(Hosts *s, Host *h, int which) {
        if (h->fds[which] < 0)
                return;
        (void)close(h->fds[which]);
        h->fds[which] = -1;
        if (h->lines[which].n > 0)
                host_take_bytes(s, h, which, "\n", 1);
}

bool host_read(Hosts *s, Host *h, int which) {
        char bytes[READ_SIZE];
        ssize_t n = h->fds[which] < 0 ? 0 : read(h->fds[which], bytes, sizeof(bytes));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                host_close(s, h, which);
                return false;
        }
        host_take_bytes(s, h, which, bytes, (size_t)n);
        return true;
}

/* Of one that was there before, what is left of --count and --for. */
static void limit_rest(const Hosts *s, const Host *h) {
        uint64_t now = clock_read(CLOCK_MONOTONIC), end = h->first_began + s->duration;
        char *text;

        if (h->has_streamed && s->count > 0) {
                must_have(asprintf(&text, "%" PRIu64, s->count - h->sum.printed) < 0 ? NULL : text);
                perfctl_set(s->p, "count", text);
        }
        if (h->has_streamed && s->duration > 0) {
                must_have(asprintf(&text, "%" PRIu64 "ms", end > now ? (end - now) / 1000000 + 1 : 1) < 0 ? NULL : text);
                perfctl_set(s->p, "for", text);
        }
}

/* What the parent has to know, behind what perfctl does with this host alone. */
static int run_alone(const Hosts *s) {
        Perfctl *p = s->p;
        int r = s->run(p);
        const perfd_error *e = p->client ? perfd_client_error(p->client) : NULL;

        if (s->form != HOSTS_EACH && r != PERFCTL_OK && e && host_error_may_pass(e))
                host_note(p, NOTE_PASSING, "%s", e->message);
        return r;
}

static _Noreturn void run_child(const Hosts *s, Host *h, const int *out, const int *err) {
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
        p->out.fd = STDOUT_FILENO;
        p->host = h->name;
        p->gap = h->is_away ? h->gap : (HostGap){ .why = NULL };
        p->is_of_several = true;
        perfctl_choose_host(p);
        limit_rest(s, h);
        exit(s->end(p, run_alone(s)));
}

int host_start(Hosts *s, Host *h) {
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
                run_child(s, h, out, err);
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
