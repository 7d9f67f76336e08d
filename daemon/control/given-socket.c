/*
 * A peer's rights are those of the socket that it came by, and its credentials are the kernel's: only AF_UNIX has them. A socket of the
 * network, which a drop-in of the unit can make, would be open to whoever reaches the host.
 */
#include "daemon/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "config/text/words.h"

static int option(int fd, int name) {
        socklen_t size = sizeof(int);
        int value = -1;

        return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

/* NULL: what perfd can listen on. */
static const char *what_else(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return "is not open";
        if (!S_ISSOCK(st.st_mode))
                return "is a file, not a socket";
        switch (option(fd, SO_DOMAIN)) {
        case AF_UNIX:
                break;
        case AF_INET:
        case AF_INET6:
                return "is a socket of the network";
        default:
                return "is a socket of another family than AF_UNIX";
        }
        switch (option(fd, SO_TYPE)) {
        case SOCK_STREAM:
                return option(fd, SO_ACCEPTCONN) == 1 ? NULL : "does not listen (a unit with Accept=yes passes a connection)";
        case SOCK_DGRAM:
                return "is a datagram socket";
        case SOCK_SEQPACKET:
                return "is a SOCK_SEQPACKET socket";
        default:
                return "is a socket of another type than SOCK_STREAM";
        }
}

int control_check_given(int fd, const char *name, Explanation *e) {
        const char *what = what_else(fd);

        if (!what)
                return 0;
        return refuse(e, REFUSED_INVALID, "bad-config", "fd %d, which was passed to perfd as %s, %s: perfd needs a listening stream "
                      "socket of AF_UNIX; give the socket unit ListenStream= with a path, and Accept=no", fd, QUOTE(name), what);
}

/* Of the environment before it is cleared: NULL is shown as not set. */
typedef struct Variables {
        char fds[QUOTE_SIZE], names[QUOTE_SIZE];
} Variables;

static Variables read_variables(void) {
        const char *fds = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
        Variables v;

        (void)snprintf(v.fds, sizeof(v.fds), "%s", fds ? QUOTE(fds) : "not set");
        (void)snprintf(v.names, sizeof(v.names), "%s", names ? QUOTE(names) : "not set");
        return v;
}

int control_given(char ***ret_names, int *ret_n, Explanation *e) {
        const Variables v = read_variables();
        int n = sd_listen_fds_with_names(1, ret_names);

        if (n == -ENOMEM)
                return error_origin(n);
        if (n < 0)
                return refuse(e, REFUSED_INVALID, "bad-config", "LISTEN_PID is perfd's, but LISTEN_FDS is %s and LISTEN_FDNAMES is %s: "
                              "%s; start perfd by its socket units, or without these variables", v.fds, v.names,
                              n == -EBADF ? "one of these fds is not open"
                                          : "they have to be a number from 1 on, and as many names, with a colon between two");
        *ret_n = n;
        return 0;
}
