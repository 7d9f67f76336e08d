/*
 * A pidfd of each, and one epoll instance for all, so that a loop polls one fd however many there are. Children do not count, as
 * with perf-stat(1): who waits for a server wants to hear of the server's end.
 */
#include "client/perfctl/events/task-ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/perfctl/events/target.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

static int pidfd_open_for(uint32_t id, unsigned flags) {
        return (int)syscall(SYS_pidfd_open, (pid_t)id, flags);
}

/* 0: there is none. */
static uint32_t process_of(uint32_t tid) {
        char path[32], line[256];
        unsigned process = 0;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%u/status", (unsigned)tid);
        f = fopen(path, "re");
        while (f && process == 0 && fgets(line, sizeof(line), f))
                if (sscanf(line, "Tgid: %u", &process) != 1)
                        process = 0;
        if (f)
                fclose(f);
        return process;
}

/* Before Linux 6.9 a pidfd is of processes only: then a thread's end is noticed with that of its process. */
static int thread_open(uint32_t tid) {
        int fd = pidfd_open_for(tid, PIDFD_THREAD);

        return fd < 0 && errno == EINVAL ? pidfd_open_for(process_of(tid), 0) : fd;
}

/* Who is not there is none that ends: the daemon says what it thinks of that. */
static void add(const Perfctl *p, TaskEnds *ends, const char *what, uint32_t id, int fd) {
        struct epoll_event event = { .events = EPOLLIN, .data.u64 = ends->n };

        ends->pidfds[ends->n++] = fd;
        if (fd < 0 && errno == ESRCH)
                return;
        if (fd < 0 || epoll_ctl(ends->fd, EPOLL_CTL_ADD, fd, &event) < 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s %u: its end will not be noticed: %s", what, (unsigned)id, strerror(errno));
}

/* Else the ids are not ours: the daemon's pid namespace is one that we cannot see into. */
static bool has_pids_of(const Perfctl *p) {
        struct ucred peer = { .pid = 0 };
        socklen_t length = sizeof(peer);

        return !p->host && getsockopt(perfd_client_fd(p->client), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0;
}

int task_ends_open(const Perfctl *p, TaskEnds *ends) {
        perfd_event_spec of = PERFD_EVENT_SPEC_INIT;
        int r = target_parse(p, &of);

        *ends = TASK_ENDS_NULL;
        if (r == 0 && of.n_pids + of.n_tids > 0 && has_pids_of(p)) {
                ends->fd = epoll_create1(EPOLL_CLOEXEC);
                ends->n_pidfds = of.n_pids + of.n_tids;
                ends->pidfds = must_have(calloc(ends->n_pidfds, sizeof(*ends->pidfds)));
                if (ends->fd < 0)
                        r = perfctl_fail(p, PERFCTL_FAILED, "epoll_create1: %s", strerror(errno));
        }
        for (size_t i = 0; ends->fd >= 0 && i < of.n_pids; i++)
                add(p, ends, "pid", of.pids[i], pidfd_open_for(of.pids[i], 0));
        for (size_t i = 0; ends->fd >= 0 && i < of.n_tids; i++)
                add(p, ends, "tid", of.tids[i], thread_open(of.tids[i]));
        target_deinit(&of);
        return r;
}

bool task_ends_take(TaskEnds *ends) {
        struct epoll_event event;

        while (ends->fd >= 0 && ends->n > 0 && epoll_wait(ends->fd, &event, 1, 0) == 1) {
                int *pidfd = &ends->pidfds[event.data.u64];

                close(*pidfd); /* which takes it out of the epoll instance too */
                *pidfd = -1;
                if (--ends->n == 0)
                        return true;
        }
        return false;
}

void task_ends_close(TaskEnds *ends) {
        for (size_t i = 0; i < ends->n_pidfds; i++)
                if (ends->pidfds[i] >= 0)
                        close(ends->pidfds[i]);
        if (ends->fd >= 0)
                close(ends->fd);
        free(ends->pidfds);
        *ends = TASK_ENDS_NULL;
}
