/* A socket for each message, as sd_notify(3) has: they are rare, and who listens may be another one by then. */
#include "daemon/base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/fd-limit.h"

/* A path, or "@" and an abstract name. Other kinds of addresses are for those in front of a virtual machine. */
static bool address_of(const char *name, struct sockaddr_un *ret, socklen_t *ret_size) {
        size_t n = strlen(name);

        if ((name[0] != '/' && name[0] != '@') || n < 2 || n > sizeof(ret->sun_path) - (name[0] == '/'))
                return false;
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        memcpy(ret->sun_path, name, n);
        if (name[0] == '@')
                ret->sun_path[0] = '\0';
        *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] == '/'));
        return true;
}

bool notify_send(const char *state) {
        WITH_FD_RESERVE;
        _cleanup_close_ int fd = -1;
        const char *name = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address;
        socklen_t size;

        if (!name || !address_of(name, &address, &size))
                return true;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, size) >= 0 ||
               errno != EAGAIN;
}
