/* The only frames that the relay makes: the greeting to perfd, and why a client is refused or ended. All others it passes on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/relay/connection.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

int tell_refusal(Perfd__V1__Status status, const char *reason, const char *text, Unwritten *to) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        _cleanup_free_ uint8_t *frame = NULL;
        size_t length;

        response.status = status;
        response.reason = (char *)reason;
        response.message = (char *)text;
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = &response;
        length = perfd__v1__server_message__get_packed_size(&m);
        frame = malloc(FRAME_HEADER_SIZE + length);
        if (!frame)
                return error_origin(-ENOMEM);
        frame_header_put(frame, (uint32_t)length);
        perfd__v1__server_message__pack(&m, frame + FRAME_HEADER_SIZE);
        return unwritten_add(to, frame, FRAME_HEADER_SIZE + length);
}

int tell_http(const char *text, Unwritten *to) {
        char bytes[600];
        int n = snprintf(bytes, sizeof(bytes), "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n%.400s\n", strnlen(text, 400) + 1, text);

        return unwritten_add(to, (const uint8_t *)bytes, (size_t)n);
}

int tell_hello(const RelayConnection *c, Unwritten *to) {
        const RelayRule *rule = c->rule;
        Perfd__V1__Limit limit = PERFD__V1__LIMIT__INIT;
        Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        _cleanup_free_ uint8_t *frame = NULL;
        size_t length;

        limit.name = c->name;
        limit.n_events = rule->events.n;
        limit.events = rule->events.items;
        limit.where = rule->where ? rule->where : (char *)"";
        limit.status = rule->status;
        limit.raw = rule->raw;
        limit.queue_bytes = rule->queue;
        hello.protocol = PERFD_PROTOCOL;
        hello.program = (char *)"perfd-relay " PERFD_VERSION;
        hello.limit = rule->control ? NULL : &limit;
        request.id = 1;
        request.body_case = PERFD__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        length = perfd__v1__request__get_packed_size(&request);
        frame = malloc(FRAME_HEADER_SIZE + length);
        if (!frame)
                return error_origin(-ENOMEM);
        frame_header_put(frame, (uint32_t)length);
        perfd__v1__request__pack(&request, frame + FRAME_HEADER_SIZE);
        return unwritten_add(to, frame, FRAME_HEADER_SIZE + length);
}
