/* The program begins when its events are there: it waits between fork(2) and execvp(3) for a byte. */
#include "client/perfctl/command-line/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_run(int gate, int failure, char **command) {
        char byte;
        int error;

        (void)signal(SIGPIPE, SIG_DFL);
        if (read(gate, &byte, 1) != 1) /* who observes us went away */
                _exit(PERFCTL_FAILED);
        execvp(command[0], command);
        error = errno;
        (void)!write(failure, &error, sizeof(error));
        _exit(127);
}

static bool is_given(const Perfctl *p, const Option *o) {
        size_t n;

        return o->repeats ? (perfctl_get_all(p, o->name, &n), n > 0) : perfctl_get(p, o->name) != NULL;
}

int command_check(const Perfctl *p) {
        if (p->command && perfctl_is_tls(p))
                return perfctl_fail(p, PERFCTL_USAGE, "the command behind -- would run on this machine, and %s is observed: run perfctl on "
                                    "that host", p->host);
        if (p->command && p->host)
                return perfctl_fail(p, PERFCTL_USAGE, "the command behind -- would run on this machine, and %s is observed: run perfctl "
                                    "there, as in `ssh %s perfctl ...`", p->host, p->host);
        return p->command && !p->command[0] ? perfctl_fail(p, PERFCTL_USAGE, "no command after --") : 0;
}

bool command_is_beside(const Perfctl *p) {
        static const char *const targets[] = { "all-cpus", "pid", "tid", "cgroup", "container", "unit", "target" };

        for (const Option *o = p->verb->options; p->command && o->name; o++)
                for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
                        if (strcmp(o->name, targets[i]) == 0 && is_given(p, o))
                                return true;
        return false;
}

void command_choose_output(Perfctl *p) {
        if (!p->command || p->json)
                return;
        p->out.fd = STDERR_FILENO;
        p->human = isatty(STDERR_FILENO);
}

int command_open_output(Perfctl *p, int *ret_fd) {
        const char *path = perfctl_get(p, "output");

        *ret_fd = -1;
        if (!path) {
                command_choose_output(p);
                return 0;
        }
        *ret_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (*ret_fd < 0)
                return perfctl_fail(p, PERFCTL_FAILED, "--output: %s: %s", path, strerror(errno));
        p->out.fd = *ret_fd;
        p->human = isatty(*ret_fd);
        return 0;
}

void command_close_output(Perfctl *p, int fd) {
        if (fd < 0)
                return;
        output_flush(&p->out);
        if (close(fd) < 0 && p->out.error == 0)
                p->out.error = errno;
}

int command_start(const Perfctl *p, Command *c, char **command) {
        int gate[2], failure[2];

        if (pipe2(gate, O_CLOEXEC) < 0)
                return perfctl_fail(p, PERFCTL_FAILED, "a pipe: %s", strerror(errno));
        if (pipe2(failure, O_CLOEXEC) < 0) {
                close(gate[0]);
                close(gate[1]);
                return perfctl_fail(p, PERFCTL_FAILED, "a pipe: %s", strerror(errno));
        }
        c->pid = fork();
        if (c->pid == 0) {
                close(gate[1]);
                child_run(gate[0], failure[1], command);
        }
        close(gate[0]);
        close(failure[1]);
        c->gate = gate[1];
        c->failure = failure[0];
        if (c->pid > 0)
                return 0;
        c->pid = 0;
        return perfctl_fail(p, PERFCTL_FAILED, "starting %s: %s", command[0], strerror(errno));
}

int command_go(const Perfctl *p, Command *c, char **command) {
        int error = 0;
        ssize_t n;

        if (write(c->gate, "", 1) != 1)
                return perfctl_fail(p, PERFCTL_FAILED, "starting %s: %s", command[0], strerror(errno));
        do
                n = read(c->failure, &error, sizeof(error));
        while (n < 0 && errno == EINTR);
        if (n == 0)
                return 0;
        return perfctl_fail(p, error == ENOENT ? 127 : 126, "starting %s: %s", command[0], strerror(error));
}

static uint64_t nsec_of(struct timeval tv) {
        return (uint64_t)tv.tv_sec * 1000000000 + (uint64_t)tv.tv_usec * 1000;
}

void command_look(Command *c) {
        struct rusage usage;

        if (c->pid <= 0 || c->ended || wait4(c->pid, &c->status, WNOHANG, &usage) != c->pid)
                return;
        c->ended = true;
        c->user = nsec_of(usage.ru_utime);
        c->sys = nsec_of(usage.ru_stime);
}

int command_code(const Command *c) {
        return WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status);
}

void command_deinit(Command *c) {
        if (c->gate >= 0)
                close(c->gate);
        if (c->failure >= 0)
                close(c->failure);
        if (c->pid > 0 && !c->ended) {
                (void)kill(c->pid, SIGTERM);
                (void)waitpid(c->pid, &c->status, 0);
        }
        *c = COMMAND_NULL;
}
