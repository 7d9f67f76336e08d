/*
 * Readings of wall time. The clock is looked at behind each batch that was taken, so that no item is sent for whose time it is not
 * known whether wall time was set before. A reading goes to a channel before the next item that it gets. When wall time was set, the
 * kernel wakes this thread (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET), and quiet channels get the reading at once; nobody is woken
 * for one that is new only because the one before is old.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <limits.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/encode/wire.h"
#include "proto/item-fields.h"

enum {
        WALL_TIME = 1,
        WALL_WALL = 2,
        WALL_ERROR = 3,
        WALL_SINCE = 4,
        WALL_HOST_ERROR = 5,
        WALL_SYNCHRONIZED = 6,
};

#define NEVER (LONG_MAX >> 2) /* seconds since 1970 that the kernel takes for what it can count */

static uint8_t *put_time(uint8_t *to, unsigned field, nsec_t time) {
        uint64_t bytes = htole64(time);

        to = wire_put_key(to, WIRE_KEY(field, WIRE_FIXED64));
        memcpy(to, &bytes, sizeof(bytes));
        return to + sizeof(bytes);
}

static size_t encode(const WallReading *w, uint8_t bytes[WALL_FIELD_MAX]) {
        uint8_t *const content = bytes + 2, *to = content; /* a length of one byte, because the content is that short */

        to = put_time(to, WALL_TIME, w->time);
        to = put_time(to, WALL_WALL, w->wall);
        to = wire_put_number(to, WALL_ERROR, w->error);
        if (w->since > 0)
                to = put_time(to, WALL_SINCE, w->since);
        if (w->host_error > 0)
                to = wire_put_number(to, WALL_HOST_ERROR, w->host_error);
        if (w->is_synchronized)
                to = wire_put_number(to, WALL_SYNCHRONIZED, 1);
        bytes[0] = WIRE_KEY(PACKET_WALL, WIRE_BYTES);
        bytes[1] = (uint8_t)(to - content);
        return (size_t)(to - bytes);
}

static void dispatcher_encode_wall(Dispatcher *d) {
        d->n_wall_field = encode(&d->wall.last, d->wall_field);
        d->n_readings++;
}

/* ECANCELED: wall time was set, the timer counts on; nothing else ends it. */
static int on_wall_set(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Dispatcher *d = userdata;
        uint64_t n;

        if (read(fd, &n, sizeof(n)) < 0 && errno != ECANCELED && errno != EAGAIN)
                return error_origin(-errno);
        d->is_wall_set = true;
        return 0;
}

int dispatcher_init_wall(Dispatcher *d) {
        const struct itimerspec never = { .it_value.tv_sec = NEVER };
        int r;

        if (!d->wall_source)
                return 0;
        wall_clock_init(&d->wall, d->clock, d->wall_source);
        dispatcher_encode_wall(d);
        d->wall_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (d->wall_fd < 0 || timerfd_settime(d->wall_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0)
                return error_origin(-errno);
        r = error_origin(sd_event_add_io(d->event, NULL, d->wall_fd, EPOLLIN, on_wall_set, d));
        return r < 0 ? r : 0;
}

void dispatcher_deinit_wall(Dispatcher *d) {
        if (d->wall_source)
                d->wall_fd = close_fd(d->wall_fd);
}

void dispatcher_look_at_wall(Dispatcher *d) {
        if (d->wall_source && d->channels && wall_clock_look(&d->wall))
                dispatcher_encode_wall(d);
}

int dispatcher_tell_wall(Dispatcher *d) {
        int r = 0;

        d->is_wall_set = false;
        dispatcher_look_at_wall(d);
        for (Channel *c = d->channels; c && r >= 0; c = c->next)
                r = channel_tell_wall(d, c);
        return r;
}

int subscriber_push_wall(Dispatcher *d, Subscriber *s) {
        Packet *p;
        int r;

        if (d->n_wall_field == 0)
                return 0;
        dispatcher_look_at_wall(d);
        if (!s->channel->subscribers->next) /* it is alone, and need not be told twice */
                s->channel->reading = d->n_readings;
        r = packet_of_fields(d->wall_field, d->n_wall_field, &p);
        if (r < 0)
                return r;
        r = subscriber_push(d, s, p);
        packet_unref(p);
        return r;
}
