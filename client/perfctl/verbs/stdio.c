/*
 * What --host of another machine's perfctl runs here: the daemon's socket on stdin and stdout. Bytes are passed on as they are; a
 * reader that is slow is slow for the daemon's socket, whose queue and policy it has.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/connection/pump.h"

/* perfctl_connect() has found which socket answers, and says why where none does. */
static int connect_socket(Perfctl *p, int *ret) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        perfd_client_free(p->client);
        p->client = NULL;
        memcpy(address.sun_path, p->path, strlen(p->path) + 1); /* it fits: it was connected to */
        *ret = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (*ret < 0 || connect(*ret, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
            fcntl(*ret, F_SETFL, O_NONBLOCK) < 0)
                return perfctl_fail(p, PERFCTL_UNREACHABLE, "%s: %s", p->path, strerror(errno));
        return 0;
}

/* Until the daemon, or the other side, closes. */
static int carry(Perfctl *p, Pump *in, Pump *out) {
        while (!pump_is_done(in) && !pump_is_done(out)) {
                struct pollfd fds[] = {
                        { .fd = in->from, .events = pump_wants_in(in) },
                        { .fd = in->to, .events = (short)(pump_wants_out(in) | pump_wants_in(out)) },
                        { .fd = out->to, .events = pump_wants_out(out) },
                };
                int r;

                for (size_t i = 0; i < 3; i++)
                        if (!fds[i].events)
                                fds[i].fd = -1; /* POLLHUP would be said all the time */
                if (poll(fds, 3, -1) < 0 && errno != EINTR)
                        return perfctl_fail(p, PERFCTL_FAILED, "poll: %s", strerror(errno));
                r = pump_run(in);
                if (r == 0)
                        r = pump_run(out);
                if (r == -EPIPE)
                        break; /* there is nobody to be told */
                if (r < 0)
                        return perfctl_fail(p, PERFCTL_FAILED, "passing on bytes: %s", strerror(-r));
        }
        return PERFCTL_OK;
}

/* What perfd sends is compressed if the other side has asked for it; without memory for that it is not. */
static Compressor *new_compressor(void) {
        const char *asked = getenv(COMPRESSION_VARIABLE);

        return asked && strcmp(asked, COMPRESSION_NAME) == 0 ? compressor_new(COMPRESSION_LEVEL) : NULL;
}

static int stdio_run(Perfctl *p) {
        Pump *in, *out;
        int of_in = fcntl(STDIN_FILENO, F_GETFL), of_out = fcntl(STDOUT_FILENO, F_GETFL), fd = -1, r;

        if (p->host)
                return perfctl_fail(p, PERFCTL_USAGE, "this is what --host runs on %s, by itself", p->host);
        if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO))
                return perfctl_fail(p, PERFCTL_USAGE, "stdin and stdout carry the daemon's protocol, and are a terminal: this is run by "
                                    "`perfctl --host HOST` of another machine");
        r = connect_socket(p, &fd);
        if (r == 0 && (of_in < 0 || of_out < 0 || fcntl(STDIN_FILENO, F_SETFL, of_in | O_NONBLOCK) < 0 ||
                       fcntl(STDOUT_FILENO, F_SETFL, of_out | O_NONBLOCK) < 0))
                r = perfctl_fail(p, PERFCTL_FAILED, "stdin and stdout: %s", strerror(errno));
        if (r == 0) {
                in = must_have(calloc(1, sizeof(*in)));
                out = must_have(calloc(1, sizeof(*out)));
                in->from = STDIN_FILENO;
                in->to = out->from = fd;
                out->to = STDOUT_FILENO;
                out->compressor = new_compressor();
                r = carry(p, in, out);
                compressor_free(out->compressor);
                free(in);
                free(out);
                (void)fcntl(STDOUT_FILENO, F_SETFL, of_out); /* whoever started us may go on with them */
                (void)fcntl(STDIN_FILENO, F_SETFL, of_in);
        }
        if (fd >= 0)
                close(fd);
        return r;
}

const Verb verb_stdio = {
        .name = "stdio",
        .arguments = "",
        .help = "connect stdin and stdout to the daemon, for --host of another machine",
        .run = stdio_run,
};
