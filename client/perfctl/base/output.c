/* A reader that goes away (EPIPE) is kept like any other error: main() knows that it is none. */
#include "client/perfctl/base/output.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/perfctl/base/memory.h"

void output_init(Output *o, int fd) {
        o->fd = fd;
        o->n = o->n_flushed = 0;
        o->error = 0;
}

/* stdout may be a terminal that another program made non-blocking. */
static int await_room(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        return poll(&p, 1, -1) < 0 && errno != EINTR ? errno : 0;
}

void output_flush(Output *o) {
        size_t written = 0;

        while (written < o->n && o->error == 0) {
                ssize_t n = write(o->fd, o->bytes + written, o->n - written);

                if (n >= 0)
                        written += (size_t)n;
                else if (errno == EAGAIN)
                        o->error = await_room(o->fd);
                else if (errno != EINTR)
                        o->error = errno;
        }
        o->n = 0;
        o->n_flushed++;
}

void output_put_slow(Output *o, const char *bytes, size_t n) {
        while (n > 0) {
                size_t room = OUTPUT_SIZE - o->n, part = n < room ? n : room;

                memcpy(o->bytes + o->n, bytes, part);
                o->n += part;
                bytes += part;
                n -= part;
                if (o->n == OUTPUT_SIZE)
                        output_flush(o);
        }
}

void output_put_hex_bytes(Output *o, const char *bytes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                output_put_char(o, "0123456789abcdef"[(unsigned char)bytes[i] >> 4]);
                output_put_char(o, "0123456789abcdef"[bytes[i] & 15]);
        }
}

void output_print(Output *o, const char *format, ...) {
        char *text;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&text, format, ap);
        va_end(ap);
        must_have(n < 0 ? NULL : text);
        output_put(o, text, (size_t)n);
        free(text);
}
