/*
 * From a connection to a stream. The response to Subscribe is read to its last byte and not beyond: packets that were
 * already in the library's buffer would wait there while the caller polls the socket.
 *
 * Nobody who did not ask for shared memory has to know of it: where it is refused, or cannot be reached because something
 * passes only bytes, the stream comes by a socket.
 */
#include "client/request/request.h"
#include "client/stream/stream.h"
#include "client/wire/caller-string.h"

#define RING_DEFAULT ((uint32_t)512 << 10)

static int ask(perfd_client *c, Perfd__V1__SubscribeRequest *m, Perfd__V1__ServerMessage **ret_message) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;

        request.body_case = PERFD__V1__REQUEST__BODY_SUBSCRIBE;
        request.subscribe = m;
        return client_call(c, &request, ret_message);
}

/* The stream that cannot be read is left; another connection gets the same by its socket. */
static int ask_anew(perfd_client *c, Perfd__V1__SubscribeRequest *m, Perfd__V1__ServerMessage **ret_message) {
        int r;

        client_disconnect(c);
        r = perfd_client_connect(c, c->path);
        m->ring_bytes = 0;
        return r == 0 ? ask(c, m, ret_message) : r;
}

/* Not where the daemon has ended the connection, for whatever lack: that is its last word. */
static bool is_for_lack_of_memory(const perfd_client *c) {
        return c->state == CLIENT_READY && c->error.code == PERFD_E_REFUSED &&
               (c->error.refusal == PERFD_REFUSED_EXHAUSTED || c->error.refusal == PERFD_REFUSED_UNSUPPORTED);
}

/* ring_bytes as the caller says; 0: what is best. */
static int ask_for_ring(perfd_client *c, Perfd__V1__SubscribeRequest *m, uint32_t ring_bytes) {
        Perfd__V1__ServerMessage *message;
        bool is_reachable;
        int r;

        m->ring_bytes = ring_bytes == PERFD_NO_RING ? 0 : ring_bytes > 0 ? ring_bytes : c->path ? RING_DEFAULT : 0;
        r = ask(c, m, &message);
        if (r != 0 && ring_bytes == 0 && m->ring_bytes > 0 && is_for_lack_of_memory(c)) {
                m->ring_bytes = 0;
                r = ask(c, m, &message);
        }
        if (r != 0)
                return r;
        is_reachable = message->response->body_case != PERFD__V1__RESPONSE__BODY_RING ||
                       stream_open_ring(c, message->response->ring) == 0;
        perfd__v1__server_message__free_unpacked(message, NULL);
        if (is_reachable)
                return 0;
        if (!c->path) {
                c->state = CLIENT_BROKEN;
                return client_fail(c, PERFD_E_PROTOCOL, "no-ring",
                                   "no memory can be shared through this connection: subscribe again with PERFD_NO_RING");
        }
        r = ask_anew(c, m, &message);
        if (r == 0)
                perfd__v1__server_message__free_unpacked(message, NULL);
        return r;
}

int perfd_subscribe(perfd_client *c, const perfd_subscription *subscription, const perfd_callbacks *callbacks,
                    void *userdata) {
        Perfd__V1__SubscribeRequest m = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        perfd_subscription s;
        perfd_callbacks own;
        int r;

        if (caller_struct_copy(&s, sizeof(s), subscription) != 0)
                return client_fail_size(c, "perfd_subscription");
        if (caller_struct_copy(&own, sizeof(own), callbacks) != 0)
                return client_fail_size(c, "perfd_callbacks");
        m.events = (char **)s.events;
        m.n_events = s.n_events;
        m.where = wire_string(s.where);
        m.fields = (char **)s.fields;
        m.n_fields = s.n_fields;
        m.order = (Perfd__V1__Order)s.order;
        m.payload = (Perfd__V1__Payload)s.payload;
        m.overflow = (Perfd__V1__Overflow)s.overflow;
        m.queue_bytes = s.queue_bytes;
        m.records = s.records;
        m.latency = s.latency;
        m.pool = true;

        r = ask_for_ring(c, &m, s.ring_bytes);
        if (r != 0)
                return r;
        c->stream->callbacks = own;
        c->stream->userdata = userdata;
        c->state = CLIENT_STREAMING;
        return 0;
}
