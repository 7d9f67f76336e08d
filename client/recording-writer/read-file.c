#include "client/recording-writer/read-file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PIECE ((size_t)65536)

int buffer_add_file(const char *path, size_t max, Buffer *b) {
        const size_t from = b->n;
        int fd = open(path, O_RDONLY | O_CLOEXEC), code = fd < 0 ? -errno : 1;

        while (code > 0) {
                uint8_t *to = buffer_reserve(b, PIECE);
                ssize_t n = to ? read(fd, to, PIECE) : -1;

                if (!to)
                        code = -ENOMEM;
                else if (n < 0)
                        code = errno == EINTR ? 1 : -errno;
                else if (b->n - from + (size_t)n > max)
                        code = -EFBIG;
                else {
                        b->n += (size_t)n;
                        code = n > 0;
                }
        }
        if (fd >= 0)
                (void)close(fd);
        return code;
}
