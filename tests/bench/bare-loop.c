/* Space is given back every 64 KiB, as the reader does it. */
#include "tests/bench/bare-loop.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define BLOCK ((size_t)64 << 10)

void bare_loop_init(BareLoop *l, BareKind kind) {
        *l = (BareLoop){ .kind = kind, .shape = { .event = PLAYED_SYS_ENTER, .n_cpus = 1, .n_busy = 1 },
                         .player = PLAYER_INIT, .block = malloc(BLOCK) };
        played_ring_init(&l->played, PIPELINE_RING);
        if (!l->block || ring_init_memory(&l->ring, l->played.page, PIPELINE_RING) < 0)
                abort();
        if (kind == BARE_SOCKET)
                peer_open(&l->peer);
}

void bare_loop_deinit(BareLoop *l) {
        if (l->kind == BARE_SOCKET)
                peer_close(&l->peer);
        ring_close(&l->ring);
        played_ring_deinit(&l->played);
        free(l->block);
}

static void bare_send(BareLoop *l) {
        for (size_t sent = 0; sent < l->used;) {
                ssize_t n = send(l->peer.fd, l->block + sent, l->used - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n > 0)
                        sent += (size_t)n;
                else if (errno == EAGAIN) {
                        stopwatch_stop(&l->reading);
                        peer_drain(&l->peer);
                        stopwatch_start(&l->reading);
                } else if (errno != EINTR) {
                        perror("send");
                        exit(EXIT_FAILURE);
                }
        }
}

static void bare_flush(BareLoop *l) {
        if (l->kind == BARE_SOCKET)
                bare_send(l);
        l->used = 0;
}

static void bare_take(BareLoop *l, const uint8_t *record, size_t length) {
        if (l->kind == BARE_TAIL)
                return;
        if (l->used + length > BLOCK)
                bare_flush(l);
        memcpy(l->block + l->used, record, length);
        l->used += length;
}

void bare_loop_turn(BareLoop *l) {
        const uint8_t *record;
        uint64_t head, published;
        size_t length;

        l->n_samples += pipeline_fill(&l->played, &l->shape, &l->player);
        stopwatch_start(&l->reading);
        published = l->ring.tail;
        head = ring_head(&l->ring);
        while (ring_peek(&l->ring, head, &record, &length) == 0) {
                bare_take(l, record, length);
                ring_consume(&l->ring, length);
                if (l->ring.tail - published >= BLOCK) {
                        ring_publish(&l->ring);
                        published = l->ring.tail;
                }
        }
        ring_publish(&l->ring);
        bare_flush(l);
        stopwatch_stop(&l->reading);
        if (l->kind == BARE_SOCKET)
                peer_drain(&l->peer);
}
