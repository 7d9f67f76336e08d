/* Read to its end, which a pipe tells only there; but to no more than a request has room for. */
#include "client/perfctl/print/input-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without opening it: to open a device can be to do something with it. What stdin is, the shell has opened. */
static int check_kind(const Perfctl *p, const char *path) {
        struct stat st;

        if (stat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) /* open(2) says what is wrong */
                return 0;
        return perfctl_fail(p, PERFCTL_FAILED, "%s: neither a regular file nor a pipe", path);
}

/* Into room for one byte more than there may be. False: read(2) has said why not. */
static bool read_all(int fd, char *bytes, size_t *ret_n) {
        ssize_t part = 1;

        for (*ret_n = 0; part > 0 && *ret_n <= INPUT_LENGTH_MAX; *ret_n += part > 0 ? (size_t)part : 0)
                do
                        part = read(fd, bytes + *ret_n, INPUT_LENGTH_MAX + 1 - *ret_n);
                while (part < 0 && errno == EINTR);
        return part >= 0;
}

int input_file_read(const Perfctl *p, const char *path, char **ret_bytes, size_t *ret_n) {
        bool is_stdin = strcmp(path, "-") == 0;
        int fd, r = is_stdin ? 0 : check_kind(p, path), error = 0;
        char *bytes;

        if (r != 0)
                return r;
        fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        bytes = must_have(malloc(INPUT_LENGTH_MAX + 1));
        if (fd < 0 || !read_all(fd, bytes, ret_n))
                error = errno;
        if (fd >= 0)
                close(fd);
        if (error != 0)
                r = perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, strerror(error));
        else if (*ret_n > INPUT_LENGTH_MAX)
                r = perfctl_fail(p, PERFCTL_FAILED, "%s: it is longer than the %zu bytes that a request can have", path,
                                 INPUT_LENGTH_MAX);
        if (r != 0)
                free(bytes);
        else
                *ret_bytes = bytes;
        return r;
}
