/*
 * A second signal ends the program at once, also while a write to stdout hangs: so it is a handler, not a signalfd(2).
 */
#include "client/perfctl/base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int signal_pipe[2] = { -1, -1 };
static pid_t owner; /* of the pipe: a child of it, one for each host, has its own */
static void (*volatile last_call)(void);

static void tell(char what) {
        int saved = errno;

        if (write(signal_pipe[1], &what, 1) < 0 && errno != EAGAIN) /* a full pipe has it already */
                _exit(PERFCTL_FAILED);
        errno = saved;
}

/* What is typed at a terminal goes to each process there. */
static void on_end(int signal, siginfo_t *info, void *context) {
        static volatile sig_atomic_t again;

        if (again) {
                void (*last)(void) = last_call;

                if (last)
                        last();
                _exit(PERFCTL_FAILED);
        }
        again = 1;
        tell(info->si_code == SI_KERNEL ? 'a' : 'e');
}

/* A shell that ends tells its jobs once more what a closed terminal has told them: that is no second wish. */
static void on_hangup(int signal, siginfo_t *info, void *context) {
        tell(info->si_code == SI_KERNEL ? 'a' : 'e');
}

static void on_child(int signal) {
        tell('c');
}

static void on_resize(int signal) {
        tell('w');
}

/* SA_RESTART: a write to stdout that is interrupted goes on. */
int signals_catch(const Perfctl *p, bool children) {
        struct sigaction end = { .sa_sigaction = on_end, .sa_flags = SA_RESTART | SA_SIGINFO };
        struct sigaction hangup = { .sa_sigaction = on_hangup, .sa_flags = SA_RESTART | SA_SIGINFO }, before;
        struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP };

        if ((owner != getpid() && pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0) || sigaction(SIGINT, &end, NULL) < 0 ||
            sigaction(SIGTERM, &end, NULL) < 0 || sigaction(SIGHUP, NULL, &before) < 0 ||
            (before.sa_handler != SIG_IGN /* nohup(1) */ && sigaction(SIGHUP, &hangup, NULL) < 0) || (children && sigaction(SIGCHLD, &child, NULL) < 0))
                return perfctl_fail(p, PERFCTL_FAILED, "catching signals: %s", strerror(errno));
        owner = getpid();
        return 0;
}

int signals_catch_resize(const Perfctl *p) {
        struct sigaction resize = { .sa_handler = on_resize, .sa_flags = SA_RESTART };

        if (sigaction(SIGWINCH, &resize, NULL) < 0)
                return perfctl_fail(p, PERFCTL_FAILED, "catching signals: %s", strerror(errno));
        return 0;
}

void signals_set_last(void (*last)(void)) {
        last_call = last;
}

int signals_fd(void) {
        return signal_pipe[0];
}

Signals signals_take(void) {
        Signals s = { .end = false };
        char what;

        while (read(signal_pipe[0], &what, 1) > 0) {
                s.end = s.end || what == 'e' || what == 'a';
                s.is_for_all = s.is_for_all || what == 'a';
                s.child = s.child || what == 'c';
        }
        return s;
}
