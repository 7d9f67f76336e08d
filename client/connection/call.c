/*
 * One request and its response. Nothing else in the library waits without being told to: poll(2) on the one socket, against a
 * deadline that was fixed when the call began, so that a daemon that sends byte by byte cannot stretch it.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "client/connection/client.h"

#define NS_PER_MS 1000000

static int client_await(perfd_client *c, int64_t deadline) {
        struct pollfd p = { .fd = c->fd, .events = perfd_client_events(c) };
        int64_t left = -1;
        int r;

        if (client_has_pending(c))
                return 0;
        if (c->timeout >= 0) {
                left = deadline - (int64_t)(client_now() / NS_PER_MS);
                left = left > 0 ? left : 0;
        }
        r = poll(&p, 1, (int)left);
        if (r == 0) {
                c->state = CLIENT_BROKEN; /* an answer that comes later would be taken for that of the next request */
                return client_fail(c, PERFD_E_TIMEOUT, "timeout", "the daemon did not answer within %d ms", c->timeout);
        }
        if (r < 0 && errno != EINTR)
                return client_fail(c, -errno, "socket", "waiting for the daemon: %s", strerror(errno));
        return 0;
}

/*
 * The daemon's last word on this connection has no id: why it ends it, because of what it could not read as a request, or for want
 * of places.
 */
static bool is_last_word(const Perfd__V1__Response *response) {
        return response->id == 0 && response->status != PERFD__V1__STATUS__STATUS_OK;
}

int client_take_last_word(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__ServerMessage *message = perfd__v1__server_message__unpack(NULL, length, bytes);
        int r = 0;

        if (message && message->body_case == PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE && is_last_word(message->response)) {
                c->state = CLIENT_BROKEN;
                r = client_fail_refused(c, message->response);
        }
        if (message)
                perfd__v1__server_message__free_unpacked(message, NULL);
        return r;
}

static int client_take_response(perfd_client *c, const uint8_t *bytes, size_t length,
                                Perfd__V1__ServerMessage **ret_message) {
        Perfd__V1__ServerMessage *message = perfd__v1__server_message__unpack(NULL, length, bytes);
        int r = 0;

        if (!message)
                return client_fail_protocol(c, "a frame that is no perfd.v1.ServerMessage");
        if (message->body_case != PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE)
                r = client_fail_protocol(c, "something else than a response to a request");
        else if (is_last_word(message->response)) {
                c->state = CLIENT_BROKEN;
                r = client_fail_refused(c, message->response);
        } else if (message->response->id != c->last_id)
                r = client_fail_protocol(c, "a response to another request");
        else if (message->response->status != PERFD__V1__STATUS__STATUS_OK)
                r = client_fail_refused(c, message->response);
        if (r != 0)
                perfd__v1__server_message__free_unpacked(message, NULL);
        else
                *ret_message = message;
        return r;
}

int client_call(perfd_client *c, Perfd__V1__Request *request, Perfd__V1__ServerMessage **ret_message) {
        int64_t deadline = (int64_t)(client_now() / NS_PER_MS) + c->timeout;
        const uint8_t *bytes;
        size_t length;
        int r;

        if (c->state != CLIENT_READY)
                return client_fail(c, PERFD_E_STATE, "state",
                                   c->fd < 0 ? "this client is not connected"
                                             : "this connection takes no more requests: it is a stream, or broken");
        r = client_push(c, request);
        while (r == 0) {
                size_t n;

                r = client_send(c);
                if (r == 0)
                        r = client_await(c, deadline);
                if (r == 0)
                        r = client_receive(c, client_missing(c), &n);
                if (r != 0)
                        break;
                r = frame_reader_next(&c->in, &bytes, &length);
                if (r == 0)
                        return client_take_response(c, bytes, length, ret_message);
                r = r == FRAME_E_NEED_MORE ? 0 : client_fail_protocol(c, "a frame that is too long");
        }
        return r;
}
