#include "client/perfctl/connection/pump.h"

#include <errno.h>
#include <unistd.h>

short pump_wants_in(const Pump *p) {
        return !p->has_ended && p->begin == p->end ? POLLIN : 0;
}

short pump_wants_out(const Pump *p) {
        return p->begin < p->end ? POLLOUT : 0;
}

bool pump_is_done(const Pump *p) {
        return p->has_ended && p->begin == p->end;
}

static bool is_for_later(ssize_t n) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ECONNRESET is what a socket says whose other end was closed with something unread. */
static int pump_read(Pump *p) {
        ssize_t n = p->compressor ? read(p->from, p->plain, sizeof(p->plain)) : read(p->from, p->bytes, sizeof(p->bytes));

        if (is_for_later(n))
                return 0;
        if (n < 0 && errno != ECONNRESET)
                return -errno;
        p->begin = 0;
        p->end = n > 0 ? (size_t)n : 0;
        p->has_ended = n <= 0;
        return p->compressor ? compressor_put(p->compressor, p->plain, p->end, p->has_ended, p->bytes, &p->end) : 0;
}

static int pump_write(Pump *p) {
        ssize_t n = write(p->to, p->bytes + p->begin, p->end - p->begin);

        if (is_for_later(n))
                return 0;
        if (n < 0)
                return errno == ECONNRESET ? -EPIPE : -errno;
        p->begin += (size_t)n;
        return 0;
}

int pump_run(Pump *p) {
        int r = pump_wants_in(p) ? pump_read(p) : 0;

        return r == 0 && pump_wants_out(p) ? pump_write(p) : r;
}
