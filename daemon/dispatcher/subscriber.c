/*
 * Streams: how they begin, and what their peers may still send. A stream ends in one of two ways. It is closed, with a closing
 * ledger as its last packet (dispatcher/close.c); or it is dropped, if the peer has disconnected or violated the protocol. In
 * both cases main is notified exactly once.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "daemon/base/log.h"

#include "daemon/base/peer-socket.h"
#include "proto/perfd.pb-c.h"

#define STREAM_MAX_REQUEST 4096 /* bytes: only `stop` and `room` are valid */
#define SOCKET_BYTES (208 << 10) /* bytes: net.core.wmem_max by default, which socket(7) doubles */

static Channel *dispatcher_need_channel(Dispatcher *d, const Subscriber *s) {
        ChannelGroup *group = &d->groups[s->order][BATCH_GROUP(s->number)];
        Channel *c = dispatcher_channel(d, s->order, s->number);

        if (c)
                return c;
        if (task_table_add_group(&d->tasks[s->order], BATCH_GROUP(s->number)) < 0)
                return NULL;
        c = calloc(1, sizeof(*c));
        if (!c)
                return NULL;
        *c = (Channel){ .number = s->number, .order = s->order, .tick_most = s->latency / 2, .next = d->channels,
                        .side = &d->side[s->order] };
        if (d->channels)
                d->channels->before = c;
        d->channels = c;
        group->by_bit[s->number % BATCH_BITS] = c;
        group->bits |= BATCH_BIT(s->number);
        d->n_channels[s->order]++;
        return c;
}

static int subscriber_handle(Dispatcher *d, Subscriber *s, const uint8_t *bytes, size_t length) {
        Perfd__V1__Request *request = perfd__v1__request__unpack(NULL, length, bytes);
        int kind = request ? (int)request->body_case : PERFD__V1__REQUEST__BODY__NOT_SET;

        if (request)
                perfd__v1__request__free_unpacked(request, NULL);
        if (kind == PERFD__V1__REQUEST__BODY_STOP)
                return subscriber_ask_close(d, s, "stopped");
        if (kind == PERFD__V1__REQUEST__BODY_ROOM && s->ring)
                return subscriber_on_room(d, s);
        subscriber_drop(d, s, "it sent something other than `stop`");
        return 0;
}

static Subscriber *dispatcher_find(const Dispatcher *d, uint64_t id) {
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        if (s->id == id)
                                return s;
        return NULL;
}

/* Handles all complete requests that were received. Each may free the subscriber. */
static int subscriber_take_requests(Dispatcher *d, Subscriber *s) {
        const uint64_t id = s->id;
        const uint8_t *message;
        size_t length;
        int r = 0;

        while (r >= 0 && (s = dispatcher_find(d, id))) {
                int code = frame_reader_next(&s->in, &message, &length);

                if (code == FRAME_E_NEED_MORE)
                        break;
                if (code == FRAME_E_TOO_LONG)
                        subscriber_drop(d, s, "it sent something other than `stop`");
                else
                        r = subscriber_handle(d, s, message, length);
        }
        return r;
}

static int on_readable(Dispatcher *d, Subscriber *s) {
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r = frame_reader_room(&s->in, &room, &size);

        if (r < 0)
                return r;
        n = peer_socket_receive(s->fd, room, size);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                subscriber_drop(d, s, s->ended ? NULL : n < 0 && errno == EBADMSG ? "the peer sent file descriptors" : "the peer "
                        "closed the connection");
                return 0;
        }
        frame_reader_fed(&s->in, (size_t)n);
        return subscriber_take_requests(d, s);
}

typedef struct SourceOwner {
        Dispatcher *dispatcher;
        Subscriber *subscriber;
} SourceOwner;

static int on_socket(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        SourceOwner *owner = userdata;

        if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
                return error_trace_of(on_readable(owner->dispatcher, owner->subscriber), "a subscriber, fd %d", fd);
        return error_trace_of(subscriber_send(owner->dispatcher, owner->subscriber), "a subscriber, fd %d", fd);
}

static int subscriber_watch(Dispatcher *d, Subscriber *s) {
        SourceOwner *owner = malloc(sizeof(*owner));
        int r;

        if (!owner)
                return error_origin(-ENOMEM);
        *owner = (SourceOwner){ d, s };
        r = error_origin(sd_event_add_io(d->event, &s->source, s->fd, EPOLLIN, on_socket, owner));
        if (r < 0) {
                free(owner);
                return r;
        }
        return error_origin(sd_event_source_set_destroy_callback(s->source, free));
}

/*
 * Enlarges the socket's send buffer so that a tick of a flood fits, and need not be copied into the outbox. If this is refused,
 * the stream is slower, and otherwise the same.
 */
static void subscriber_widen(const Subscriber *s) {
        const int bytes = SOCKET_BYTES;

        (void)setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* Queues the packets that begin the stream. */
static int subscriber_push_first(Dispatcher *d, Subscriber *s) {
        int r = 0;

        for (size_t i = 0; i < s->n_packets && r == 0; i++) {
                r = dispatcher_make_room(d, s, s->packets[i]);
                if (r == 0)
                        r = outbox_push(&s->outbox, s->packets[i]);
                s->packets[i] = packet_unref(s->packets[i]);
        }
        if (r == OUTBOX_E_OVERFLOW) {
                subscriber_drop(d, s, "there is no memory for the beginning of a stream");
                return 0;
        }
        return r;
}

int dispatcher_subscribe(Dispatcher *d, Subscriber *s) {
        const uint64_t id = s->id;
        Channel *c;
        int r;

        r = dispatcher_flush(d); /* items in an open packet are older than the new subscriber */
        c = r < 0 ? NULL : dispatcher_need_channel(d, s);
        if (!c) {
                subscriber_free(s);
                return r < 0 ? r : error_origin(-ENOMEM);
        }
        task_table_forget_channel(&d->tasks[s->order], s->number); /* the new subscriber has no description of any task yet */
        if (!c->subscribers)
                c->since = s->since;
        if (!c->condition)
                c->condition = TAKE_PTR(s->condition);
        s->condition = process_condition_free(s->condition); /* the channel has an equal one already */
        d->n_channel_changes++;
        s->channel = c;
        s->next = c->subscribers;
        c->subscribers = s;
        channel_choose_pool(c);
        s->is_corked = true;
        s->until = UINT64_MAX;
        s->began = s->from;
        d->n_edges += s->from > 0;
        if (s->from == 0) { /* otherwise all batches in the merge are from before it */
                dispatcher_count_pending(d);
                s->matched = c->pending;
        }
        if (!s->ring)
                subscriber_widen(s);
        frame_reader_init(&s->in, STREAM_MAX_REQUEST);
        outbox_init(&s->outbox, s->queue_bytes, s->overflow);
        s->outbox.is_relayed = s->is_relayed;
        outbox_set_accounts(&s->outbox, s->account, &d->queues);
        if (subscriber_watch(d, s) < 0) { /* epoll_ctl(2): ENOMEM, or ENOSPC because of fs.epoll.max_user_watches */
                subscriber_drop(d, s, "there is no memory to watch its socket");
                return 0;
        }
        r = subscriber_push_first(d, s);
        return r < 0 || dispatcher_find(d, id) != s ? r : subscriber_push_wall(d, s);
}

int dispatcher_begin(Dispatcher *d, uint64_t id) {
        Subscriber *s = dispatcher_find(d, id);

        if (!s)
                return 0; /* the peer has disconnected already */
        s->is_corked = false;
        return subscriber_send(d, s);
}

static int channel_push(Dispatcher *d, Channel *c, uint64_t cut, Packet *p) {
        int r = 0;

        for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                next = s->next; /* subscriber_push() may free it */
                if (s->began <= cut)
                        r = subscriber_push(d, s, p);
        }
        return r;
}

int dispatcher_describe(Dispatcher *d, const DispatcherCommand *command) {
        _cleanup_(packet_unrefp) Packet *p = NULL;
        int r = packet_of_fields(command->bytes, command->n_bytes, &p);

        for (int order = 0; order < _STREAM_ORDER_MAX && r >= 0; order++) {
                Channel *c = dispatcher_channel(d, (StreamOrder)order, command->number);

                r = c ? channel_push(d, c, command->cut, p) : 0;
        }
        return r;
}

/*
 * Removals are sent after the last item of the event: at once in streams ordered by CPU; in streams ordered by time, when the
 * merge has released everything older.
 */
int dispatcher_tell_removals(Dispatcher *d) {
        nsec_t until = d->n_channels[STREAM_BY_TIME] > 0 ? dispatcher_min_watermark(d) : UINT64_MAX;
        int r = 0;

        while (r >= 0 && d->removals.first && d->removals.first->at <= until) {
                DispatcherCommand *command = dispatcher_commands_pop(&d->removals);

                r = dispatcher_describe(d, command);
                dispatcher_command_free(command);
        }
        return r;
}
