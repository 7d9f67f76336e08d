/* For tests of the client: the daemon's end of a connection, played by hand with protobuf-c. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/perfd.pb-c.h"
#include "proto/stream-ring.h"

static inline void play_bytes(int fd, const void *bytes, size_t n) {
        const uint8_t *at = bytes;

        while (n > 0) {
                ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

                assert(sent > 0);
                at += sent;
                n -= (size_t)sent;
        }
}

static inline uint8_t *play_pack(const Perfd__V1__ServerMessage *m, size_t *ret_n) {
        size_t length = perfd__v1__server_message__get_packed_size(m);
        uint8_t *frame = malloc(FRAME_HEADER_SIZE + length);

        frame_header_put(frame, (uint32_t)length);
        perfd__v1__server_message__pack(m, frame + FRAME_HEADER_SIZE);
        *ret_n = FRAME_HEADER_SIZE + length;
        return frame;
}

static inline void play_message(int fd, const Perfd__V1__ServerMessage *m) {
        size_t n;
        uint8_t *frame = play_pack(m, &n);

        play_bytes(fd, frame, n);
        free(frame);
}

static inline void play_response(int fd, Perfd__V1__Response *response) {
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;

        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = response;
        play_message(fd, &m);
}

static inline void play_packet(int fd, Perfd__V1__Packet *packet) {
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;

        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_PACKET;
        m.packet = packet;
        play_message(fd, &m);
}

static inline void play_ok(int fd, uint64_t id) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;

        r.id = id;
        play_response(fd, &r);
}

static inline void play_hello(int fd, uint64_t id) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__HelloReply hello = PERFD__V1__HELLO_REPLY__INIT;

        hello.protocol = PERFD_PROTOCOL;
        hello.version = (char *)"7.5";
        hello.may_change = true;
        hello.max_request = FRAME_MAX_REQUEST;
        r.id = id;
        r.body_case = PERFD__V1__RESPONSE__BODY_HELLO;
        r.hello = &hello;
        play_response(fd, &r);
}

/* Yes to a subscription, with `ring` of a stream in shared memory; n_fds 0: something between us passes only bytes. */
static inline void play_ring(int fd, uint64_t id, Perfd__V1__StreamRing *ring, const int *fds, size_t n_fds) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(STREAM_FDS_MAX * sizeof(int))];
        } control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        struct iovec part;
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n;

        response.id = id;
        response.body_case = PERFD__V1__RESPONSE__BODY_RING;
        response.ring = ring;
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = &response;
        part.iov_base = play_pack(&m, &part.iov_len);
        if (n_fds > 0) {
                control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        }
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
        assert(n == (ssize_t)part.iov_len);
        free(part.iov_base);
}

static inline bool play_read(int fd, void *to, size_t n) {
        return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* The next request; NULL at the end of the connection. To be freed. */
static inline Perfd__V1__Request *play_request(int fd) {
        uint8_t header[FRAME_HEADER_SIZE], *bytes;
        uint32_t length = 0;
        Perfd__V1__Request *request;

        if (!play_read(fd, header, sizeof(header)))
                return NULL;
        for (int i = 0; i < FRAME_HEADER_SIZE; i++)
                length |= (uint32_t)header[i] << (8 * i);
        bytes = malloc(length + 1);
        if (!play_read(fd, bytes, length)) {
                free(bytes);
                return NULL;
        }
        request = perfd__v1__request__unpack(NULL, length, bytes);
        free(bytes);
        return request;
}

static inline void play_request_free(Perfd__V1__Request *request) {
        perfd__v1__request__free_unpacked(request, NULL);
}
