/*
 * From a connection to a stream. The response to Subscribe is read to its last byte and not beyond: packets that were
 * already in the library's buffer would wait there while the caller polls the socket.
 */
#include "client/client.h"
#include "client/request.h"

int perfd_subscribe(perfd_client *c, const perfd_subscription *subscription, const perfd_callbacks *callbacks,
                    void *userdata) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__SubscribeRequest m = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__ServerMessage *message;
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
        request.body_case = PERFD__V1__REQUEST__BODY_SUBSCRIBE;
        request.subscribe = &m;

        r = client_call(c, &request, &message);
        if (r != 0)
                return r;
        perfd__v1__server_message__free_unpacked(message, NULL);
        c->stream.callbacks = own;
        c->stream.userdata = userdata;
        c->state = CLIENT_STREAMING;
        return 0;
}
