/* The dispatcher without its thread, fed with batches by hand, with one subscriber in the order of time who has a socket. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "daemon/dispatcher/cycle.h"

#define N_PIPES 2
#define EVENT 7

typedef struct Rig {
        Queue full[N_PIPES], free[N_PIPES];
        atomic_bool needs_batch[N_PIPES];
        Mailbox readers[N_PIPES];
        BatchPipe pipes[N_PIPES];
        Dispatcher dispatcher;
        Subscriber *subscriber;
        int peer;
} Rig;

static inline void rig_init_wall(Rig *r, const WallSource *wall_source) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        memset(r, 0, sizeof(*r));
        for (int i = 0; i < N_PIPES; i++) {
                assert_int_equal(queue_init(&r->full[i], 8), 0);
                assert_int_equal(queue_init(&r->free[i], 8), 0);
                assert_int_equal(mailbox_init(&r->readers[i], 2), 0);
                r->pipes[i] = (BatchPipe){ &r->full[i], &r->free[i], &r->needs_batch[i], &r->readers[i] };
        }
        r->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC, .wall_source = wall_source };
        assert_int_equal(dispatcher_init(&r->dispatcher, r->pipes, N_PIPES, 1), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        r->peer = fds[1];
        *s = (Subscriber){ .id = 1, .fd = fds[0], .order = STREAM_BY_TIME, .since = 1, .queue_bytes = 1 << 20 };
        r->subscriber = s;
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r->dispatcher, 1), 0);
}

/* Whose subscribers get no readings of wall time. */
static inline void rig_init(Rig *r) {
        rig_init_wall(r, NULL);
}

/* What came back. */
static inline void rig_free_batches(Rig *r) {
        Batch *b;

        for (int i = 0; i < N_PIPES; i++)
                while ((b = queue_pop(&r->free[i])))
                        batch_free(b);
}

static inline void rig_deinit(Rig *r) {
        dispatcher_deinit(&r->dispatcher);
        rig_free_batches(r);
        for (int i = 0; i < N_PIPES; i++) {
                queue_deinit(&r->full[i]);
                queue_deinit(&r->free[i]);
                mailbox_deinit(&r->readers[i]);
        }
        close_fd(r->peer);
}

/* A batch of one item for each time, of which the subscriber wants every one. */
static inline Batch *make_batch(uint32_t slot, nsec_t watermark, const nsec_t *times, size_t n) {
        static const uint8_t item[] = { 0x22, 0x00 }; /* field `items`, empty */
        Batch *b = batch_new(slot);

        assert_non_null(b);
        batch_reset(b, 1);
        b->watermark = watermark;
        for (size_t i = 0; i < n; i++) {
                size_t room;

                memcpy(batch_room(b, &room), item, sizeof(item));
                batch_append(b, times[i], 1, EVENT, 0, sizeof(item));
        }
        batch_seal(b);
        return b;
}

static inline void rig_take_batch(Rig *r, Batch *b) {
        assert_int_equal(dispatcher_take_batch(&r->dispatcher, b), 0);
        assert_int_equal(dispatcher_release(&r->dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r->dispatcher), 0);
}

static inline void rig_take(Rig *r, uint32_t slot, nsec_t watermark, const nsec_t *times, size_t n) {
        rig_take_batch(r, make_batch(slot, watermark, times, n));
}

#define TAKE(r, slot, watermark, ...)                                                                                  \
        rig_take(r, slot, watermark, (const nsec_t[]){ __VA_ARGS__ }, sizeof((const nsec_t[]){ __VA_ARGS__ }) / 8)

static inline SubscriberRow rig_row(Rig *r) {
        DispatcherReport report;
        SubscriberRow row;

        assert_int_equal(dispatcher_report(&r->dispatcher, 1, &report), 0);
        assert_int_equal(report.n_subscribers, 1);
        row = report.subscribers[0];
        dispatcher_report_deinit(&report);
        assert_true(row.balanced);
        return row;
}
