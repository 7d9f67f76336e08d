/*
 * The socket: bytes in, bytes out, never waiting. The only frame that is ever on its way out is a request, so that one
 * buffer is enough.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/connection/client.h"

static bool is_closed_by_peer(int error) {
        return error == EPIPE || error == ECONNRESET;
}

static int fail_tunnel(perfd_client *c) {
        int status = tunnel_wait(&c->tunnel, true), r;
        char *said = tunnel_said(&c->tunnel);

        r = client_fail(c, PERFD_E_CLOSED, "closed", "the connection to %s has ended, ssh with status %d: %s", c->tunnel.to, status,
                        said && *said    ? said
                        : status == SSH_FAILED ? "it was ssh that ended, and what became of the daemon there is not known"
                                               : "the daemon there was killed, or its log says why");
        free(said);
        return r;
}

int client_fail_closed(perfd_client *c) {
        c->state = CLIENT_BROKEN;
        if (c->tunnel.to)
                return fail_tunnel(c);
        if (c->tls.to)
                return client_fail_tls_closed(c);
        return client_fail(c, PERFD_E_CLOSED, "closed",
                           "the daemon closed the connection without a word: it was killed, or its log says why");
}

int client_fail_socket(perfd_client *c, const char *what, int error) {
        c->state = CLIENT_BROKEN;
        return client_fail(c, -error, "socket", "%s: %s", what, strerror(error));
}

void client_close_fds(perfd_client *c) {
        while (c->n_fds > 0)
                close(c->fds[--c->n_fds]);
}

int perfd_client_fd(const perfd_client *c) {
        return c->fd;
}

uint64_t client_now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* With bytes pending also POLLOUT, for which nobody ever waits long: who only polls reads them at once. */
short perfd_client_events(const perfd_client *c) {
        short events;

        if (c->fd < 0)
                return 0;
        events = c->tls.to ? tls_events(&c->tls, c->out != NULL) : (short)(POLLIN | (c->out ? POLLOUT : 0));
        return (short)(events | (client_has_pending(c) ? POLLOUT : 0));
}

bool client_has_pending(const perfd_client *c) {
        return tls_has_pending(&c->tls) || (c->decompressor && decompressor_has_pending(c->decompressor));
}

static ssize_t client_send_some(perfd_client *c) {
        const uint8_t *bytes = c->out + c->sent;
        size_t n = c->n_out - c->sent;

        return c->tls.to ? tls_write(&c->tls, bytes, n) : send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A daemon that goes away while we send may have said why: that is read first. */
int client_send(perfd_client *c) {
        while (c->sent < c->n_out) {
                ssize_t n = client_send_some(c);

                if (n >= 0) {
                        c->sent += (size_t)n;
                        continue;
                }
                if (errno == EINTR)
                        continue;
                if (errno == EAGAIN)
                        return 0;
                if (!is_closed_by_peer(errno))
                        return client_fail_socket(c, "sending a request", errno);
                c->sent = c->n_out; /* nobody takes it any more; recv(2) finds the end */
        }
        free(c->out);
        c->out = NULL;
        c->n_out = c->sent = 0;
        return 0;
}

/* recv(2), and the fds that come along. */
static ssize_t client_receive_with_fds(perfd_client *c, uint8_t *to, size_t n) {
        struct iovec part = { to, n };
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(c->fds))];
        } control;
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                                  .msg_controllen = CMSG_LEN(sizeof(c->fds)) }; /* no more than these come */
        ssize_t received = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        for (struct cmsghdr *m = received < 0 ? NULL : CMSG_FIRSTHDR(&message); m; m = CMSG_NXTHDR(&message, m))
                if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_RIGHTS) {
                        client_close_fds(c);
                        c->n_fds = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                        memcpy(c->fds, CMSG_DATA(m), c->n_fds * sizeof(int));
                }
        return received;
}

static ssize_t client_receive_some(perfd_client *c, uint8_t *to, size_t n) {
        return c->tls.to ? tls_read(&c->tls, to, n) : client_receive_with_fds(c, to, n);
}

/* The same of what may be compressed: bytes that say nothing yet are read on. EBADMSG: they are no stream of zstd. */
static ssize_t client_receive_decompressed(perfd_client *c, uint8_t *to, size_t n) {
        for (;;) {
                size_t made, room;
                uint8_t *place;
                ssize_t came;
                int r = decompressor_next(c->decompressor, to, n, &made);

                if (r == 0)
                        return (ssize_t)made;
                if (r != DECOMPRESSOR_E_NEED_MORE) {
                        errno = r < 0 ? -r : EBADMSG;
                        return -1;
                }
                room = decompressor_room(c->decompressor, &place);
                came = client_receive_some(c, place, room);
                if (came <= 0)
                        return came;
                decompressor_fed(c->decompressor, (size_t)came);
        }
}

int client_receive(perfd_client *c, size_t most, size_t *ret_n) {
        uint8_t *room;
        size_t size;
        ssize_t n;

        if (frame_reader_room(&c->in, &room, &size) < 0)
                return client_fail_memory(c);
        do
                n = c->decompressor ? client_receive_decompressed(c, room, size < most ? size : most)
                                    : client_receive_some(c, room, size < most ? size : most);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno == EBADMSG)
                return client_fail_protocol(c, "compressed bytes that are damaged, or need more memory than the protocol allows");
        if (n == 0 || (n < 0 && is_closed_by_peer(errno)))
                return client_fail_closed(c);
        if (n < 0 && errno != EAGAIN)
                return client_fail_socket(c, "reading from the daemon", errno);
        if (n > 0)
                frame_reader_fed(&c->in, (size_t)n);
        *ret_n = n > 0 ? (size_t)n : 0;
        return 0;
}

int client_push(perfd_client *c, Perfd__V1__Request *request) {
        uint64_t most = c->greeting ? c->greeting->response->hello->max_request : FRAME_MAX_REQUEST;
        size_t length;

        assert(!c->out);
        request->id = c->last_id + 1;
        length = perfd__v1__request__get_packed_size(request);
        if (length > most || length > FRAME_MAX_REQUEST)
                return client_fail(c, PERFD_E_INVALID, "too-long",
                                   "the request has %zu bytes, and the daemon reads at most %llu", length,
                                   (unsigned long long)most);
        c->out = malloc(FRAME_HEADER_SIZE + length);
        if (!c->out)
                return client_fail_memory(c);
        frame_header_put(c->out, (uint32_t)length);
        perfd__v1__request__pack(request, c->out + FRAME_HEADER_SIZE);
        c->n_out = FRAME_HEADER_SIZE + length;
        c->last_id++;
        return 0;
}

size_t client_missing(const perfd_client *c) {
        size_t here = c->in.end - c->in.begin, length = 0;

        if (here < FRAME_HEADER_SIZE)
                return FRAME_HEADER_SIZE - here;
        for (size_t i = 0; i < FRAME_HEADER_SIZE; i++)
                length |= (size_t)c->in.buffer[c->in.begin + i] << (8 * i);
        return FRAME_HEADER_SIZE + length - here;
}
