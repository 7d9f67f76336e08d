/*
 * One subscription of perfd, whose packets become messages without being changed. The sequence numbers are perfd's: each packet has
 * one, dropped ones too, so a reader of the messages sees each gap, wherever it came from. An epoch is one subscription.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/relay/publish/descriptor-set.h"
#include "client/relay/publish/dropped.h"
#include "client/relay/publish/packet-view.h"
#include "client/relay/publish/publishing.h"
#include "client/relay/publish/subscribe-frames.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"

#define READS_PER_TURN 16
#define TRY_AGAIN_USEC UINT64_C(1000000)

struct Route {
        Publishing *publishing;
        const PublishRoute *config;
        RouteState state;
        sd_event_source *source, *timer;
        int fd;
        FrameReader in;
        bool is_streaming; /* perfd has accepted the subscription */
        bool has_end;      /* its last packet came */
        uint64_t epoch;    /* ns of CLOCK_BOOTTIME, when it began */
        uint64_t epoch_said; /* of which the log says that it has begun */
        DescriptorSet descriptors;
        DroppedPackets dropped;
        char digest[DIGEST_TEXT_SIZE]; /* of those that are published; "": none are */
        char clock[16];
        int64_t wall_offset;
        char said[200];    /* why it could not begin */
};

/* ---- messages ----------------------------------------------------------------------------------------------------- */

static void add_headers(const Route *r, const PacketView *v, Message *m) {
        message_add_header(m, "Perfd-Machine", "%s", r->publishing->machine);
        message_add_header(m, "Perfd-Boot", "%s", r->publishing->boot);
        message_add_header(m, "Perfd-Epoch", "%" PRIu64, r->epoch);
        message_add_header(m, "Perfd-Sequence", "%" PRIu64, v->sequence);
        message_add_header(m, "Perfd-Items", "%" PRIu64, v->n_items);
        message_add_header(m, "Perfd-Matched", "%" PRIu64, r->state.counts.matched);
        if (v->n_items > 0) {
                message_add_header(m, "Perfd-First", "%" PRIu64, v->first);
                message_add_header(m, "Perfd-Last", "%" PRIu64, v->last);
        }
        message_add_header(m, "Perfd-Clock", "%s", r->clock);
        message_add_header(m, "Perfd-Wall-Offset", "%" PRId64, r->wall_offset);
        message_add_header(m, "Perfd-Descriptors", "%s", r->digest);
}

/* The parts of what is longer than a message may be. `v` NULL: descriptors. */
static int publish_parts(Route *r, const uint8_t *bytes, size_t length, const PacketView *v) {
        const Publishing *p = r->publishing;
        size_t n = length > 0 ? (length + MESSAGE_BYTES_MAX - 1) / MESSAGE_BYTES_MAX : 1;

        for (size_t i = 0; i < n; i++) {
                size_t begin = i * MESSAGE_BYTES_MAX, rest = length - begin;
                Message *m = message_new(bytes + begin, rest < MESSAGE_BYTES_MAX ? rest : MESSAGE_BYTES_MAX);

                if (!m)
                        return error_origin(-ENOMEM);
                if (v) {
                        (void)snprintf(m->subject, sizeof(m->subject), "perfd.%s.%s", p->config.host, r->config->name);
                        (void)snprintf(m->id, sizeof(m->id), "%s.%s.%s.%" PRIu64 ".%" PRIu64 ".%zu", p->machine, p->boot,
                                       r->config->name, r->epoch, v->sequence, i + 1);
                        add_headers(r, v, m);
                } else {
                        (void)snprintf(m->subject, sizeof(m->subject), "perfd-descriptors.%s.%zu", r->digest, i + 1);
                        (void)snprintf(m->id, sizeof(m->id), "%s.%zu", r->digest, i + 1);
                }
                message_add_header(m, "Perfd-Part", "%zu/%zu", i + 1, n);
                publishing_publish(r->publishing, m);
        }
        return 0;
}

/* Before the first message that needs them. */
static int publish_descriptors(Route *r) {
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t length;
        int k = descriptor_set_pack(&r->descriptors, &bytes, &length, r->digest);

        return k == 0 ? publish_parts(r, bytes, length, NULL) : k;
}

/* How its times become those of a wall clock, by the newest reading. */
static int take_clock(Route *r, const uint8_t *packet, size_t length) {
        Perfd__V1__Packet *p = perfd__v1__packet__unpack(NULL, length, packet);

        if (!p)
                return REFUSED_INVALID;
        if (p->start) {
                (void)snprintf(r->clock, sizeof(r->clock), "%s", p->start->clock);
                r->wall_offset = p->start->wall_offset;
        }
        if (p->wall) {
                r->wall_offset = (int64_t)(p->wall->wall - p->wall->time);
                r->publishing->reading = *p->wall; /* numbers only */
        }
        perfd__v1__packet__free_unpacked(p, NULL);
        return 0;
}

/* The last one of a stream, with the gaps of those that were dropped before it. */
static int publish_end(Route *r, const uint8_t *packet, size_t length, const PacketView *v) {
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t n;
        int k = dropped_end(&r->dropped, packet, length, &bytes, &n);

        return k != 0 || r->dropped.is_broken ? k : publish_parts(r, bytes, n, v);
}

/* Nothing has room for it any more. */
static int drop_packet(Route *r, const uint8_t *packet, size_t length, const PacketView *v) {
        int k = route_counts_take(&r->state.counts, packet, length, v, &r->publishing->lost);

        loss_counts_add(&r->state.counts.lost, "spool", strlen("spool"), v->n_items);
        loss_counts_add(&r->publishing->lost, "spool", strlen("spool"), v->n_items);
        return k == 0 ? dropped_add(&r->dropped, v, packet, length) : k;
}

static int take_packet(Route *r, const uint8_t *packet, size_t length) {
        PacketView v;
        int k = packet_view(packet, length, &v) ? 0 : REFUSED_INVALID;

        if (k == 0 && r->publishing->spooling.is_closing && !v.has_end)
                return drop_packet(r, packet, length, &v);
        if (k == 0 && (v.has_start || v.has_wall))
                k = take_clock(r, packet, length);
        if (k == 0 && v.has_events)
                k = descriptor_set_add(&r->descriptors, packet, length);
        if (k == 0 && (v.has_events || r->digest[0] == '\0'))
                k = publish_descriptors(r);
        if (k == 0)
                k = route_counts_take(&r->state.counts, packet, length, &v, &r->publishing->lost);
        if (k == 0)
                k = v.has_end ? publish_end(r, packet, length, &v) : publish_parts(r, packet, length, &v);
        if (k == 0 && v.has_removed) {
                descriptor_set_remove(&r->descriptors, packet, length);
                k = publish_descriptors(r);
        }
        r->has_end = r->has_end || (k == 0 && v.has_end);
        return k;
}

/* ---- the connection with perfd ------------------------------------------------------------------------------------ */

static void set_connected(Route *r, bool is_connected, const char *text) {
        RouteState *s = &r->state;
        bool is_new = s->is_connected != is_connected || strcmp(s->text, text) != 0;

        if (s->is_connected != is_connected)
                s->since = clock_now(CLOCK_REALTIME);
        s->is_connected = is_connected;
        (void)snprintf(s->text, sizeof(s->text), "%s", text);
        if (is_new)
                publishing_tell_route(r->publishing);
}

static void disconnect(Route *r) {
        sd_event_source_disable_unref(r->source);
        r->source = NULL;
        r->fd = close_fd(r->fd);
        frame_reader_deinit(&r->in);
        descriptor_set_deinit(&r->descriptors);
        dropped_deinit(&r->dropped);
        r->is_streaming = false;
        r->digest[0] = '\0';
}

/* It is tried again in a second; each reason is said once. */
static void fail(Route *r, const char *what, const char *detail) {
        char text[sizeof(r->said)];

        (void)snprintf(text, sizeof(text), "%s: %s", what, detail);
        if (strcmp(text, r->said) != 0)
                log_print_with(LOG_WARNING, MESSAGE_NOT_PUBLISHING, LOG_FIELDS({ "REASON", "no-stream" }, { "ROUTE", r->config->name }),
                               "route %s: %s", r->config->name, text);
        memcpy(r->said, text, sizeof(text));
        disconnect(r);
        set_connected(r, false, text);
        if (r->publishing->is_stopping)
                return;
        (void)sd_event_source_set_time_relative(r->timer, TRY_AGAIN_USEC);
        (void)sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static int take_response(Route *r, const uint8_t *message, size_t length) {
        Perfd__V1__ServerMessage *m = perfd__v1__server_message__unpack(NULL, length, message);
        bool is_response = m && m->body_case == PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        char text[sizeof(r->said)];

        if (!is_response || m->response->status != PERFD__V1__STATUS__STATUS_OK)
                (void)snprintf(text, sizeof(text), "%s", is_response ? m->response->message : "what answers is not perfd");
        else if (m->response->id == SUBSCRIBE_ID)
                r->is_streaming = true;
        else if (m->response->body_case == PERFD__V1__RESPONSE__BODY_HELLO)
                (void)snprintf(r->publishing->perfd_version, sizeof(r->publishing->perfd_version), "%s", m->response->hello->version);
        is_response = is_response && m->response->status == PERFD__V1__STATUS__STATUS_OK;
        if (m)
                perfd__v1__server_message__free_unpacked(m, NULL);
        if (!is_response) {
                fail(r, "perfd refuses it", text);
                return -1;
        }
        if (r->is_streaming && r->epoch_said != r->epoch) {
                r->epoch_said = r->epoch;
                r->said[0] = '\0';
                route_counts_begin(&r->state.counts, r->epoch);
                set_connected(r, true, "");
                log_print_with(LOG_INFO, MESSAGE_PUBLISHING, LOG_FIELDS({ "ROUTE", r->config->name }), "route %s has begun", r->config->name);
        }
        return 0;
}

/* -1: the connection is gone. */
static int take_messages(Route *r) {
        const uint8_t *message, *packet;
        size_t length, packet_length;
        int k;

        while (!publishing_is_full(r->publishing) && (k = frame_reader_next(&r->in, &message, &length)) != FRAME_E_NEED_MORE) {
                bool is_packet = k == 0 && r->is_streaming && packet_find(message, length, &packet, &packet_length);

                if (k == 0 && !is_packet) {
                        if (take_response(r, message, length) < 0)
                                return -1;
                        continue;
                }
                if (k == 0)
                        k = take_packet(r, packet, packet_length);
                if (k != 0) {
                        fail(r, "its stream cannot be followed", k < 0 ? strerror(-k) : "what comes is no packet of perfd");
                        return -1;
                }
        }
        return 0;
}

static void take_end(Route *r, int error) {
        bool had_end = r->has_end;

        if (had_end && r->publishing->is_stopping) {
                disconnect(r);
                set_connected(r, false, "the relay stops");
        } else
                fail(r, had_end ? "perfd has ended its stream" : "perfd has closed the connection", error != 0 ? strerror(error) : "it is begun again");
}

/* Until the socket is empty, the spool is full, or others have a turn. */
static void go_on(Route *r) {
        for (int i = 0; i < READS_PER_TURN; i++) {
                uint8_t *room;
                size_t size;
                ssize_t n;

                if (take_messages(r) < 0)
                        return;
                if (publishing_is_full(r->publishing)) {
                        (void)sd_event_source_set_enabled(r->source, SD_EVENT_OFF);
                        return;
                }
                if (frame_reader_room(&r->in, &room, &size) < 0) {
                        fail(r, "its stream cannot be followed", strerror(ENOMEM));
                        return;
                }
                n = recv(r->fd, room, size, MSG_DONTWAIT);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0) {
                        take_end(r, n < 0 ? errno : 0);
                        return;
                }
                frame_reader_fed(&r->in, (size_t)n);
        }
}

static int on_perfd(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        go_on(userdata);
        return 0;
}

static int connect_with(Route *r) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int k;

        memccpy(address.sun_path, r->publishing->perfd, '\0', sizeof(address.sun_path) - 1); /* the table of keys knows its length */
        r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (r->fd < 0 || connect(r->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        k = sd_event_add_io(r->publishing->event, &r->source, r->fd, EPOLLIN, on_perfd, r);
        return k < 0 ? k : subscribe_send(r->fd, r->config);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Route *r = userdata;
        int k;

        frame_reader_init(&r->in, FRAME_MAX_SERVER);
        r->epoch = clock_now(CLOCK_BOOTTIME);
        r->has_end = false;
        k = connect_with(r);
        if (k < 0)
                fail(r, "perfd on this host cannot be reached", strerror(-k));
        return 0;
}

/* ---- the life of a route ------------------------------------------------------------------------------------------ */

Route *route_new(Publishing *p, const PublishRoute *config) {
        Route *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        r->publishing = p;
        r->config = r->state.config = config;
        r->state.since = clock_now(CLOCK_REALTIME);
        r->fd = -1;
        if (sd_event_add_time_relative(p->event, &r->timer, CLOCK_MONOTONIC, 0, 0, on_time, r) < 0) {
                free(r);
                return NULL;
        }
        return r;
}

void route_resume(Route *r) {
        if (r->source)
                (void)sd_event_source_set_enabled(r->source, SD_EVENT_ON);
        if (r->source)
                go_on(r); /* what lies in `in` already, the socket does not tell of */
}

void route_describe(Route *r) {
        if (r->digest[0] != '\0')
                (void)publish_descriptors(r); /* no memory: those that the server has are as good */
}

void route_stop(Route *r) {
        (void)sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
        if (r->is_streaming && !r->has_end && stop_send(r->fd) == 0)
                return;
        disconnect(r);
        set_connected(r, false, "the relay stops");
}

bool route_is_done(const Route *r) {
        return r->fd < 0;
}

RouteState *route_state(Route *r) {
        return &r->state;
}

void route_free(Route *r) {
        disconnect(r);
        sd_event_source_disable_unref(r->timer);
        free(r);
}
