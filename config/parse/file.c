/* The limit is looked at by who asked: a file that is longer is one more byte to him, and not a failure to read it. */
#include "config/parse/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/base/error.h"
#include "daemon/base/fd-limit.h"

int config_file_refuse(ConfigDiagnostics *m, ConfigPlace at, const char *what, int error) {
        if (error == ENOMEM)
                return error_origin(-ENOMEM);
        config_diagnostics_add(m, at, "%s: %s", what, strerror(error));
        return REFUSED_INVALID;
}

int config_file_read(ConfigDiagnostics *m, ConfigPlace at, size_t most, char **ret_bytes, size_t *ret_length, struct stat *ret_status) {
        WITH_FD_RESERVE; /* and without a checkpoint, at which others would have it too */
        _cleanup_close_ int fd = open(at.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;

        if (fd < 0)
                return config_file_refuse(m, at, "the file cannot be opened", errno);
        if (fstat(fd, ret_status) < 0)
                return config_file_refuse(m, at, "the file cannot be examined", errno);
        if (!S_ISREG(ret_status->st_mode)) {
                config_diagnostics_add(m, at, "this is not a regular file");
                return REFUSED_INVALID;
        }
        bytes = malloc(most + 1);
        if (!bytes)
                return error_origin(-ENOMEM);
        while (length <= most) {
                ssize_t n = read(fd, bytes + length, most + 1 - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return config_file_refuse(m, at, "the file cannot be read", errno);
                if (n == 0)
                        break;
                length += (size_t)n;
        }
        *ret_bytes = TAKE_PTR(bytes);
        *ret_length = length;
        return 0;
}
