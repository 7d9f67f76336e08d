/* Read to its end, whatever it is: a pipe has no size. */
#include "client/perfctl/input-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int input_file_read(const Perfctl *p, const char *path, char **ret_bytes, size_t *ret_n) {
        int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
        size_t room = 1 << 16, n = 0;
        char *bytes = must_have(malloc(room));
        ssize_t part = fd < 0 ? -1 : 1;

        while (part > 0) {
                if (n == room) {
                        room *= 2;
                        bytes = must_have(realloc(bytes, room));
                }
                part = read(fd, bytes + n, room - n);
                if (part < 0 && errno == EINTR)
                        part = 1;
                else if (part > 0)
                        n += (size_t)part;
        }
        if (part < 0) {
                int error = errno;

                free(bytes);
                if (fd >= 0)
                        close(fd);
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, strerror(error));
        }
        close(fd);
        *ret_bytes = bytes;
        *ret_n = n;
        return 0;
}
