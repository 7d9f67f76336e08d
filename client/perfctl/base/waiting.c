/*
 * The library waits for the greeting in one call, which goes on behind a signal; so the line is written by the handler of one. It is
 * made before, because a handler may do little but write(2).
 */
#include "client/perfctl/base/waiting.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static char *line;

static void on_alarm(int signal) {
        int saved = errno;

        if (write(STDERR_FILENO, line, strlen(line)) < 0)
                _exit(PERFCTL_UNREACHABLE); /* nobody hears why nothing happens */
        errno = saved;
}

static void set_timer(time_t seconds) {
        (void)setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { .tv_sec = seconds } }, NULL);
}

void waiting_begin(const Perfctl *p, const char *path) {
        struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

        must_have(asprintf(&line, "perfctl: %s: waiting for perfd on %s, which is being started, cannot start, or is busy: "
                           "`systemctl status perfd` and `journalctl -u perfd` say what it does\n", p->verb->name, path) < 0 ? NULL : line);
        for (char *at = line; at[1]; at++)
                if (iscntrl((unsigned char)*at))
                        *at = '?';
        (void)sigaction(SIGALRM, &action, NULL);
        set_timer(1);
}

void waiting_end(void) {
        set_timer(0);
        (void)signal(SIGALRM, SIG_DFL);
        free(line);
        line = NULL;
}
