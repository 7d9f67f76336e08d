/* Reads until there is no more, because st_size of such a file is 0; the next buffer is twice the last one. */
#include "daemon/kernel/host/whole-file.h"

#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

static int read_all(int folder, const char *path, bool is_long, char **ret_text, size_t *ret_length, Explanation *e) {
        _cleanup_close_ int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        size_t size = 0, length = 0;
        ssize_t n;
        int r;

        if (fd < 0)
                return error_origin(-errno);
        do {
                r = is_long ? checkpoint(e) : 0;
                if (r != 0)
                        return r;
                if (length + 1 >= size) {
                        char *bigger = realloc(text, size = size ? size * 2 : 16384);

                        if (!bigger)
                                return error_origin(-ENOMEM);
                        text = bigger;
                }
                n = read(fd, text + length, size - length - 1);
                if (n < 0 && errno != EINTR)
                        return error_origin(-errno);
                length += n > 0 ? (size_t)n : 0;
        } while (n != 0);
        text[length] = '\0';
        *ret_text = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

int whole_file_read(const char *path, char **ret_text, size_t *ret_length) {
        return read_all(AT_FDCWD, path, false, ret_text, ret_length, NULL);
}

int whole_file_read_at(int folder, const char *path, char **ret_text, size_t *ret_length) {
        return read_all(folder, path, false, ret_text, ret_length, NULL);
}

int whole_file_read_long(const char *path, char **ret_text, size_t *ret_length, Explanation *e) {
        return read_all(AT_FDCWD, path, true, ret_text, ret_length, e);
}
