/* For tests of perfctl: the program as a process with a command line, whose daemon is played on a socket. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfctl/base/perfctl.h"
#include "tests/unit/played-daemon.h"

static char directory[64];
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int listener = -1;

typedef struct Ran {
        pid_t pid;
        int out, err, daemon; /* daemon: -1 if it does not connect */
        char text[8192], message[8192];
        int code;
} Ran;

static inline int open_listener(void **state) {
        strcpy(directory, "/tmp/test-perfctl-XXXXXX");
        if (!mkdtemp(directory))
                return -1;
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setenv("PERFD_SOCKET", address.sun_path, 1);
        return bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : listen(listener, 4);
}

static inline int close_listener(void **state) {
        close(listener);
        unlink(address.sun_path);
        return rmdir(directory);
}

/* out: to read from, and to write to. Both are taken. */
static inline void run_start_into(Ran *r, const char *const *words, const int out[static 2]) {
        char *argv[32] = { (char *)"perfctl" };
        int argc = 1, err[2];

        for (; words[argc - 1]; argc++)
                argv[argc] = (char *)words[argc - 1];
        *r = (Ran){ .daemon = -1 };
        assert_int_equal(pipe(err), 0);
        r->pid = fork();
        if (r->pid == 0) {
                dup2(out[1], STDOUT_FILENO);
                dup2(err[1], STDERR_FILENO);
                close(out[0]);
                close(err[0]);
                exit(perfctl_run(argc, argv));
        }
        close(out[1]);
        close(err[1]);
        r->out = out[0];
        r->err = err[0];
}

static inline void run_start(Ran *r, const char *const *words) {
        int out[2];

        assert_int_equal(pipe(out), 0);
        run_start_into(r, words, out);
}

/* On a terminal that leaves output as it is. columns: 0 is one that does not say, and taken for one of 80. */
static inline void run_on_terminal_of(Ran *r, const char *const *words, unsigned short columns) {
        struct winsize size = { .ws_row = 24, .ws_col = columns };
        int fds[2] = { posix_openpt(O_RDWR | O_NOCTTY), -1 };
        struct termios mode;

        assert_true(fds[0] >= 0);
        assert_int_equal(grantpt(fds[0]), 0);
        assert_int_equal(unlockpt(fds[0]), 0);
        fds[1] = open(ptsname(fds[0]), O_RDWR | O_NOCTTY);
        assert_true(fds[1] >= 0);
        assert_int_equal(tcgetattr(fds[1], &mode), 0);
        cfmakeraw(&mode);
        assert_int_equal(tcsetattr(fds[1], TCSANOW, &mode), 0);
        assert_int_equal(ioctl(fds[1], TIOCSWINSZ, &size), 0);
        run_start_into(r, words, fds);
}

static inline void run_on_terminal(Ran *r, const char *const *words) {
        run_on_terminal_of(r, words, 0);
}

/* The connection, greeted. */
static inline void run_greet(Ran *r) {
        r->daemon = accept(listener, NULL, NULL);
        play_request_free(play_request(r->daemon));
        play_hello(r->daemon, 1);
}

/* Until it has printed something. */
static inline void await_output(Ran *r) {
        struct pollfd p = { .fd = r->out, .events = POLLIN };

        assert_int_equal(poll(&p, 1, 10000), 1);
}

/* Until it has asked the daemon for the end of its stream. */
static inline void await_stop(Ran *r) {
        Perfd__V1__Request *request = play_request(r->daemon);

        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_STOP);
        play_request_free(request);
}

static inline void read_all(int fd, char *to, size_t size) {
        size_t n = 0;
        ssize_t part;

        while ((part = read(fd, to + n, size - 1 - n)) > 0)
                n += (size_t)part;
        to[n] = '\0';
        close(fd);
}

static inline void run_end(Ran *r) {
        int status;

        if (r->daemon >= 0)
                close(r->daemon);
        read_all(r->out, r->text, sizeof(r->text));
        read_all(r->err, r->message, sizeof(r->message));
        waitpid(r->pid, &status, 0);
        r->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define assert_ran(r, expected_code, expected_text, expected_message)                                                  \
        do {                                                                                                           \
                assert_string_equal((r)->message, expected_message);                                                   \
                assert_string_equal((r)->text, expected_text);                                                         \
                assert_int_equal((r)->code, expected_code);                                                            \
        } while (0)

static inline void play_no(Ran *r, uint64_t id, Perfd__V1__Status status, const char *reason, const char *message) {
        Perfd__V1__Response no = PERFD__V1__RESPONSE__INIT;

        no.id = id;
        no.status = status;
        no.reason = (char *)reason;
        no.message = (char *)message;
        play_response(r->daemon, &no);
}

/* The answer to `list`: this one event. */
static inline void play_listed(Ran *r, uint64_t id, Perfd__V1__EventState *state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;

        list.events = &state;
        list.n_events = 1;
        yes.id = id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        yes.list = &list;
        play_response(r->daemon, &yes);
}
