#include "client/relay/publish/secret-file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

const char *secret_take_line(const char *bytes, size_t n, char to[static SECRET_SIZE]) {
        if (n > 0 && bytes[n - 1] == '\n')
                n--;
        if (n > 0 && bytes[n - 1] == '\r')
                n--;
        if (n == 0)
                return "is empty";
        if (n >= SECRET_SIZE)
                return "is longer than 1023 bytes";
        if (memchr(bytes, '\0', n) || memchr(bytes, '\n', n))
                return "has more than one line";
        memcpy(to, bytes, n);
        to[n] = '\0';
        return secret_refuse(to) ? "has a quote, a backslash or a control character, which libnats cannot send" : NULL;
}

const char *secret_file_read(const char *path, char to[static SECRET_SIZE]) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        char bytes[SECRET_SIZE + 2]; /* and a line break; what is longer is refused */
        ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
        const char *no = n < 0 ? strerrordesc_np(errno) : secret_take_line(bytes, (size_t)n, to);

        OPENSSL_cleanse(bytes, sizeof(bytes));
        return no;
}
