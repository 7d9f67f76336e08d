/* Between fork(2) and exec the child calls only what signal-safety(7) allows: the caller may have threads. */
#include "client/connection/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAID_MAX 2000 /* bytes: of more, the last ones */
#define PATIENCE_MS 5000

/* Does not return. What fails is written to `failed`, which exec closes. */
static void become(char *const *argv, int socket, int said, int failed) {
        struct sigaction ignore = { .sa_handler = SIG_IGN }, normal = { .sa_handler = SIG_DFL };
        sigset_t none;
        int error = 0;

        sigemptyset(&none);
        (void)sigaction(SIGINT, &ignore, NULL); /* ssh(1) leaves it ignored, but for while it asks for a password */
        (void)sigaction(SIGPIPE, &normal, NULL);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0)
                error = errno;
        if (error == 0) {
                execvp(argv[0], argv);
                error = errno;
        }
        (void)!write(failed, &error, sizeof(error));
        _exit(127);
}

/* errno of the child's exec, 0: it runs. */
static int read_failure(int fd) {
        int error = 0;
        ssize_t n;

        do
                n = read(fd, &error, sizeof(error));
        while (n < 0 && errno == EINTR);
        return n == sizeof(error) ? error : 0;
}

static void close_all(const int *fds, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

/* Above stdin, stdout and stderr, which the child takes: a caller may have closed these. */
static int move_above(int *fds, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (fds[i] <= STDERR_FILENO) {
                        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

                        if (fd < 0)
                                return -errno;
                        close(fds[i]);
                        fds[i] = fd;
                }
        return 0;
}

static int start(Tunnel *t, char *const *argv, int fds[6]) {
        int error;

        t->pid = fork();
        if (t->pid < 0)
                return -errno;
        if (t->pid == 0)
                become(argv, fds[1], fds[3], fds[5]);
        close(fds[5]);
        fds[5] = -1;
        error = read_failure(fds[4]);
        if (error != 0)
                (void)tunnel_wait(t, true);
        return -error;
}

int tunnel_open(Tunnel *t, const char *to, char *const *argv, int *ret_fd) {
        int fds[] = { -1, -1, -1, -1, -1, -1 }, r = 0; /* the socket's ends, those of stderr, those of its failure */

        *t = TUNNEL_NULL;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || pipe2(fds + 2, O_CLOEXEC | O_NONBLOCK) < 0 ||
            pipe2(fds + 4, O_CLOEXEC) < 0)
                r = -errno;
        if (r == 0)
                r = move_above(fds, 6);
        if (r == 0)
                r = start(t, argv, fds);
        t->to = r == 0 ? strdup(to) : NULL;
        if (r == 0 && !t->to)
                r = -ENOMEM;
        if (r == 0) {
                *ret_fd = fds[0];
                t->said = fds[2];
                fds[0] = fds[2] = -1;
        }
        close_all(fds, 6);
        if (r < 0 && t->pid > 0)
                (void)tunnel_wait(t, false);
        return r;
}

/* A machine that is not trusted may have written it. */
static void clean(char *text) {
        size_t n = 0;

        for (char *at = text; *at; at++) {
                bool is_space = strchr(" \r\n\t", *at);

                if (is_space && (n == 0 || text[n - 1] == ' '))
                        continue;
                text[n++] = is_space ? ' ' : (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
        }
        while (n > 0 && text[n - 1] == ' ')
                n--;
        text[n] = '\0';
}

char *tunnel_said(const Tunnel *t) {
        char *text = malloc(2 * SAID_MAX + 1);
        size_t size = 0;
        ssize_t n;

        if (!text)
                return NULL;
        while (t->said >= 0 && (n = read(t->said, text + size, 2 * SAID_MAX - size)) > 0) {
                size += (size_t)n;
                if (size > SAID_MAX) {
                        memmove(text, text + size - SAID_MAX, SAID_MAX);
                        size = SAID_MAX;
                }
        }
        for (size_t i = 0; i < size; i++)
                if (!text[i])
                        text[i] = '?';
        text[size] = '\0';
        clean(text);
        return text;
}

/* Whether it has; a kernel without pidfds knows at once. */
static bool ends_within(pid_t pid, int milliseconds) {
        int fd = (int)syscall(SYS_pidfd_open, pid, 0), r;
        struct pollfd end = { .fd = fd, .events = POLLIN };

        if (fd < 0)
                return true;
        do
                r = poll(&end, 1, milliseconds);
        while (r < 0 && errno == EINTR);
        close(fd);
        return r != 0;
}

int tunnel_wait(Tunnel *t, bool has_begun) {
        int status, r;

        if (t->pid <= 0)
                return -1;
        if (!has_begun || !ends_within(t->pid, PATIENCE_MS)) {
                (void)kill(t->pid, SIGTERM);
                if (!ends_within(t->pid, PATIENCE_MS))
                        (void)kill(t->pid, SIGKILL);
        }
        do
                r = waitpid(t->pid, &status, 0);
        while (r < 0 && errno == EINTR);
        t->pid = -1;
        return r < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void tunnel_close(Tunnel *t) {
        (void)tunnel_wait(t, false);
        if (t->said >= 0)
                close(t->said);
        free(t->to);
        *t = TUNNEL_NULL;
}
