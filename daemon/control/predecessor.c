#include "daemon/control/predecessor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

#define PF_EXITING 0x4U /* include/linux/sched.h: field 9 of /proc/PID/stat, proc(5) */

/* Its state and flags, behind a name that may have anything in it. */
static bool is_exiting(pid_t pid) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[64], line[1024] = "", state = 0;
        unsigned flags = 0;
        const char *rest;

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        f = fopen(path, "re");
        if (!f || !fgets(line, sizeof(line), f))
                return !f && errno == ENOENT;
        rest = strrchr(line, ')');
        if (!rest || sscanf(rest, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
                return false;
        return state == 'Z' || state == 'X' || (flags & PF_EXITING);
}

/* The kernel has not begun, because a thread of it is in the middle of a call. */
static bool is_killed(pid_t pid) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[64], line[256];
        unsigned long long set;

        (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if ((sscanf(line, "SigPnd: %llx", &set) == 1 || sscanf(line, "ShdPnd: %llx", &set) == 1) && (set >> (SIGKILL - 1) & 1))
                        return true;
        return false;
}

bool predecessor_wait(int fd, const char *path, bool *ret_is_ending) {
        _cleanup_close_ int process = -1;
        struct ucred peer = { .pid = 0 };
        socklen_t size = sizeof(peer);
        struct pollfd p;

        *ret_is_ending = false;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
                return false; /* in another pid namespace */
        process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
        if (process < 0 && errno != ESRCH)
                return false; /* before Linux 5.3 */
        if (process < 0)
                return *ret_is_ending = true;
        *ret_is_ending = is_exiting(peer.pid) || is_killed(peer.pid);
        if (!*ret_is_ending)
                return false;
        log_print(LOG_NOTICE, MESSAGE_NOTE, "pid %d still listens on %s, but it was killed, and the kernel closes its events: "
                  "waiting for its end, %d s at most", (int)peer.pid, path, PREDECESSOR_WAIT);
        p = (struct pollfd){ .fd = process, .events = POLLIN };
        return poll(&p, 1, PREDECESSOR_WAIT * 1000) == 1;
}
