/* What is in a container must not lead out of it by links: openat2(2), RESOLVE_IN_ROOT. */
#include "client/symbols/open-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES_MAX 8 /* EAGAIN: a rename went on meanwhile */
#define READ_SIZE ((size_t)256 * 1024)

static int open_in(const char *root, const char *path) {
        const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        int fd = -1, root_fd;

        if (!root || strcmp(root, "/") == 0)
                return open(path, O_PATH | O_CLOEXEC);
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                return -1;
        for (int i = 0; i < TRIES_MAX; i++) {
                fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
                if (fd >= 0 || errno != EAGAIN)
                        break;
        }
        close(root_fd);
        return fd;
}

int open_file(const char *root, const char *path, struct stat *ret_status) {
        char again[64];
        struct stat status;
        int fd = -1, place = open_in(root, path);

        if (place < 0)
                return -1;
        if (fstat(place, &status) == 0 && S_ISREG(status.st_mode)) {
                snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
                fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        }
        close(place);
        if (fd >= 0 && ret_status)
                *ret_status = status;
        return fd;
}

char *read_file(int fd, size_t max, size_t *ret_n) {
        size_t n = 0, room = 0;
        char *bytes = NULL;

        for (;;) {
                ssize_t got;

                if (room - n < READ_SIZE + 1) {
                        char *more = realloc(bytes, room = room * 2 + 2 * READ_SIZE);

                        if (!more)
                                break;
                        bytes = more;
                }
                got = read(fd, bytes + n, READ_SIZE);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got == 0) {
                        bytes[n] = '\0';
                        *ret_n = n;
                        return bytes;
                }
                if (got < 0 || (n += (size_t)got) > max)
                        break;
        }
        free(bytes);
        return NULL;
}
