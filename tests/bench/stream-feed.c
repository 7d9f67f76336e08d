/* Times and numbers change from item to item, as real ones do; the turns are the same bytes but for the packets' numbers. */
#include "tests/bench/stream-feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/record.h"
#include "daemon/encode/descriptor.h"
#include "daemon/encode/item.h"
#include "tests/unit/format-file.h"
#include "tests/unit/kernel-records.h"
#include "tests/unit/played-daemon.h"

#define RING ((size_t)512 << 10)   /* as libperfd asks for */
#define PACKET ((size_t)64 << 10)  /* as of the daemon */
#define FRAME_HEAD (FRAME_HEADER_SIZE + 1 + 4 + 1 + SEQUENCE_SIZE)
#define SEQUENCE_SIZE 5
#define TIDS 8
#define RAW_AT 36 /* | header 8 | identifier 8 | pid tid 8 | time 8 | size 4 | raw */

typedef struct Source {
        const char *format, *name;
        const uint64_t *words;
        size_t size;
} Source;

static const Source sources[] = {
        [FEED_SYS_ENTER] = { "raw_syscalls.sys_enter", "raw_syscalls:sys_enter", RECORD_SYS_ENTER, sizeof(RECORD_SYS_ENTER) },
        [FEED_SWITCH] = { "sched.sched_switch", "sched:sched_switch", RECORD_SWITCH, sizeof(RECORD_SWITCH) },
};

static void fail(const char *what) {
        fprintf(stderr, "bench-client: %s\n", what);
        exit(EXIT_FAILURE);
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
        *state ^= *state << 13;
        *state ^= *state >> 7;
        return *state ^= *state << 17;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static uint32_t tid_of(uint64_t random) {
        return 1000 + (uint32_t)(random % TIDS);
}

static size_t put_item(const Source *source, const EncodePlan *plan, uint64_t *random, uint64_t time, uint8_t *to, size_t room) {
        uint64_t words[sizeof(RECORD_SYS_ENTER) / sizeof(uint64_t)], number, r = next_random(random);
        uint8_t *raw = (uint8_t *)words + RAW_AT;
        SampleLayout layout;
        Record record;
        size_t length;
        int code;

        memcpy(words, source->words, source->size);
        words[2] = (uint64_t)tid_of(r) << 32 | tid_of(r);
        words[3] = time;
        if (source->words == RECORD_SYS_ENTER)
                for (size_t i = 0; i < 7; i++) {
                        number = i == 0 ? r >> 32 & 0x1ff : next_random(random) >> (17 + (r >> 8) % 40);
                        memcpy(raw + 8 + 8 * i, &number, sizeof(number));
                }
        else {
                memset(raw + 8 + r % 8, 0, 1); /* names of different lengths */
                memset(raw + 40 + (r >> 16) % 4, 0, 1);
        }
        if (sample_layout_init_type(&layout, SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW) != 0 ||
            record_decode(&layout, (const uint8_t *)words, source->size, &record) != 0)
                fail("no record");
        record.cpu = 1;
        code = item_encode(plan, &record, to, room, &length);
        if (code != 0 && code != ITEM_E_NO_ROOM)
                fail("no item");
        return code == 0 ? length : 0;
}

/* Behind `to`; how long the frame is. */
static size_t put_packet(Feed *f, EncodePlan *const plans[], uint64_t *random, uint64_t *time, uint8_t *to) {
        uint8_t *at = to + FRAME_HEAD, *end = to + FRAME_HEAD + PACKET;
        size_t n, length;

        for (;; at += n, f->n_items++) {
                FeedEvents event = f->events == FEED_BOTH ? (FeedEvents)(f->n_items % FEED_BOTH) : f->events;

                n = put_item(&sources[event], plans[event], random, *time += 100 + *random % 100, at, (size_t)(end - at));
                if (n == 0)
                        break;
        }
        length = (size_t)(at - to);
        frame_header_put(to, (uint32_t)(length - FRAME_HEADER_SIZE));
        to[FRAME_HEADER_SIZE] = 2 << 3 | 2; /* ServerMessage.packet */
        length -= FRAME_HEADER_SIZE + 5;
        for (int i = 0; i < 4; i++)
                to[FRAME_HEADER_SIZE + 1 + i] = (uint8_t)((length >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
        to[FRAME_HEADER_SIZE + 5] = 1 << 3; /* Packet.sequence */
        return (size_t)(at - to);
}

static void put_frames(Feed *f, EncodePlan *const plans[]) {
        uint64_t random = 88172645463325252, time = 1000000;

        f->frames = malloc(FEED_PACKETS * (FRAME_HEAD + PACKET));
        if (!f->frames)
                fail("no memory");
        for (size_t i = 0; i < FEED_PACKETS; i++) {
                f->sequences[i] = f->length + FRAME_HEAD - SEQUENCE_SIZE;
                f->length += put_packet(f, plans, &random, &time, f->frames + f->length);
        }
}

static void put_sequence(uint8_t *to, uint64_t sequence) {
        for (int i = 0; i < SEQUENCE_SIZE; i++)
                to[i] = (uint8_t)((sequence >> (7 * i) & 0x7f) | (i < SEQUENCE_SIZE - 1 ? 0x80 : 0));
}

static void feed_send(Feed *f, const uint8_t *bytes, size_t n) {
        struct iovec part = { (void *)(uintptr_t)bytes, n };
        size_t written = n;

        if (!f->ring)
                play_bytes(f->fd, bytes, n);
        else if (shared_ring_write(f->ring, &part, 1, &written) != 0 || written != n)
                fail("the ring is full: a client does not read it");
}

void feed_turn(Feed *f) {
        for (size_t i = 0; i < FEED_PACKETS; i++)
                put_sequence(f->frames + f->sequences[i], ++f->sequence);
        feed_send(f, f->frames, f->length);
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

static void put_start(Feed *f, Perfd__V1__EventDescriptor *events[], size_t n_events) {
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamStart start = PERFD__V1__STREAM_START__INIT;
        Perfd__V1__Task tasks[TIDS], *list[TIDS];

        for (uint32_t i = 0; i < TIDS; i++) {
                perfd__v1__task__init(&tasks[i]);
                tasks[i].pid = tasks[i].tid = tid_of(i);
                tasks[i].comm = (ProtobufCBinaryData){ .data = (uint8_t *)"workload", .len = 8 };
                list[i] = &tasks[i];
        }
        p.sequence = ++f->sequence;
        p.start = &start;
        p.events = events;
        p.n_events = n_events;
        p.tasks = list;
        p.n_tasks = TIDS;
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_PACKET;
        m.packet = &p;
        f->start = play_pack(&m, &f->start_length);
}

void feed_init(Feed *f, FeedEvents events, bool by_socket) {
        Perfd__V1__EventDescriptor *descriptors[FEED_BOTH];
        EncodePlan *plans[FEED_BOTH];
        int fds[2];

        *f = (Feed){ .events = events };
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
            setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &(int){ 4 << 20 }, sizeof(int)) < 0)
                fail("no socket");
        f->theirs = fds[0];
        f->fd = fds[1];
        if (!by_socket && shared_ring_new(RING, &f->ring, NULL) != 0)
                fail("no ring");
        for (uint32_t i = 0; i < FEED_BOTH; i++) {
                Plan *plan = format_file_plan(sources[i].format);

                plans[i] = encode_plan_new(plan, FEED_SYS_ENTER_ID + i, PAYLOAD_FIELDS, NULL, 0);
                if (!plans[i] || event_descriptor_new(plans[i], sources[i].name, sources[i].name, 1, 0, "events", &descriptors[i]) < 0)
                        fail("no memory");
                plan_unref(plan);
        }
        put_start(f, descriptors, FEED_BOTH);
        put_frames(f, plans);
        for (size_t i = 0; i < FEED_BOTH; i++) {
                perfd__v1__event_descriptor__free_unpacked(descriptors[i], NULL);
                encode_plan_unref(plans[i]);
        }
}

void feed_deinit(Feed *f) {
        shared_ring_free(f->ring);
        close_fd(f->fd);
        close_fd(f->theirs);
        free(f->start);
        free(f->frames);
}

/* The answers wait before they are asked for, and the start behind them. */
perfd_client *feed_subscribe(Feed *f, const perfd_callbacks *callbacks, void *userdata) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_client *client = perfd_client_new("bench");
        Perfd__V1__StreamRing body = PERFD__V1__STREAM_RING__INIT;

        play_hello(f->fd, 1);
        if (f->ring) {
                body.bytes = f->ring->size;
                body.offset = f->ring->offset;
                play_ring(f->fd, 2, &body, f->ring->fds, STREAM_RING_FDS);
                s.ring_bytes = RING;
        } else
                play_ok(f->fd, 2);
        feed_send(f, f->start, f->start_length);
        if (!client || perfd_client_connect_fd(client, TAKE_FD(f->theirs)) != 0 ||
            perfd_subscribe(client, &s, callbacks, userdata) != 0 || perfd_client_process(client) != 0)
                fail(client ? perfd_client_error(client)->message : "no memory");
        return client;
}
