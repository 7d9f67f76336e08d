#include "client/relay/publish/subscribe-frames.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"

static int request_send(int fd, const Perfd__V1__Request *request) {
        size_t length = perfd__v1__request__get_packed_size(request);
        _cleanup_free_ uint8_t *frame = malloc(FRAME_HEADER_SIZE + length);
        ssize_t n;

        if (!frame)
                return error_origin(-ENOMEM);
        frame_header_put(frame, (uint32_t)length);
        perfd__v1__request__pack(request, frame + FRAME_HEADER_SIZE);
        n = send(fd, frame, FRAME_HEADER_SIZE + length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        return (size_t)n == FRAME_HEADER_SIZE + length ? 0 : -ENOBUFS;
}

int subscribe_send(int fd, const PublishRoute *route) {
        Perfd__V1__SubscribeRequest subscribe = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        int r;

        hello.protocol = PERFD_PROTOCOL;
        hello.program = (char *)"perfd-relay " PERFD_VERSION;
        request.id = SUBSCRIBE_ID - 1;
        request.body_case = PERFD__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        r = request_send(fd, &request);
        if (r < 0)
                return r;
        subscribe.events = route->events.items;
        subscribe.n_events = route->events.n;
        subscribe.where = route->where ? route->where : (char *)"";
        subscribe.fields = route->fields.items;
        subscribe.n_fields = route->fields.n;
        subscribe.records = route->kinds;
        subscribe.queue_bytes = route->queue;
        request.id = SUBSCRIBE_ID;
        request.body_case = PERFD__V1__REQUEST__BODY_SUBSCRIBE;
        request.subscribe = &subscribe;
        return request_send(fd, &request);
}

int stop_send(int fd) {
        Perfd__V1__Empty stop = PERFD__V1__EMPTY__INIT;
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;

        request.id = SUBSCRIBE_ID + 1;
        request.body_case = PERFD__V1__REQUEST__BODY_STOP;
        request.stop = &stop;
        return request_send(fd, &request);
}
