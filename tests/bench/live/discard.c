/*
 * The cheapest possible end of a pipe or socket: reads stdin to its end, keeps nothing but sums, and prints them as one
 * line of JSON.
 *
 *     discard bytes      whatever it is: {"bytes":N}
 *     discard lines      text: {"bytes":N,"lines":N}
 *     discard perf       what `perf record` writes to a pipe or a file: {"bytes":N,"samples":N,"sample_bytes":N,
 *                        "lost":N}
 *     discard frames     perfd's stream: {"bytes":N,"frames":N,"last":"HEX"}, the last frame being the one that ends it
 *     discard latency    the same, and how old each item was when it was read, by CLOCK_MONOTONIC:
 *                        {"items":N,"p50_ns":N,"p99_ns":N,"max_ns":N,"begin_max_ns":N}
 *                        beside the rest
 *
 * Behind the last two, FD FD BYTES OFFSET: the files of a ring in shared memory that has the stream, stdin is its socket. And
 * behind these, FD BYTES: the file of the pool in which it has packets; they are copied, as all others are.
 *
 * Status 1 if the bytes end in the middle of a frame or record.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/wire/wire.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "proto/adaptive-poll.h"
#include "tests/bench/live/latency.h"

#define BLOCK ((size_t)256 << 10)
#define LAST_MAX ((size_t)16 << 20)
#define PERF_RECORD_HEADER_TRACING_DATA 66
#define MESSAGE_POOLED WIRE_KEY(3, WIRE_BYTES) /* in ServerMessage; subscribers of `latency` are alone, and get none */

typedef struct Input {
        const uint8_t *bytes;
        size_t begin, end;
        uint64_t total;
} Input;

static Input input;
static uint8_t block[BLOCK];
static RingReader ring;
static PoolReader pool;
static AdaptivePoll pace = ADAPTIVE_POLL_INIT;
static uint8_t last[LAST_MAX];
static Latency latency;

static ssize_t fill_block(void) {
        ssize_t n;

        do
                n = read(STDIN_FILENO, block, sizeof(block));
        while (n < 0 && errno == EINTR);
        if (n < 0) {
                perror("discard: stdin");
                exit(EXIT_FAILURE);
        }
        input.bytes = block;
        return n;
}

static size_t look_into_ring(void) {
        size_t n;

        if (ring_reader_peek(&ring, &input.bytes, &n) != 0) {
                fputs("discard: a ring that cannot be\n", stderr);
                exit(EXIT_FAILURE);
        }
        return n;
}

/* Until bells were taken, or it is time to look: how many bytes of bells; -1: there will be no more. */
static ssize_t sleep_until(uint64_t due) {
        struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
        uint64_t now = clock_now(CLOCK_MONOTONIC), ns = due > now ? due - now : 0;
        struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };
        ssize_t n;

        if (due < UINT64_MAX && ppoll(&fd, 1, &ts, NULL) <= 0)
                return 0;
        n = fill_block();
        return n > 0 ? n : -1;
}

/* What was shown is given back, then what is there next. Nothing to be done asleep: so it is awake in between. */
static ssize_t fill_from_ring(void) {
        static const uint8_t room[] = { 3, 0, 0, 0, 0x80 | (21 << 3 & 0x7f) | 2, 21 >> 4, 0 }; /* Request { room: {} } */
        ssize_t bells = 0;
        size_t n;

        if (ring_reader_consume(&ring, input.end))
                (void)send(STDIN_FILENO, room, sizeof(room), MSG_NOSIGNAL); /* nobody is there: the next read(2) knows */
        while ((n = look_into_ring()) == 0 && bells >= 0) {
                ring_reader_arm(&ring);
                n = look_into_ring();
                if (n == 0) {
                        bells = sleep_until(adaptive_poll_sleep(&pace, &ring, clock_now(CLOCK_MONOTONIC)));
                        n = look_into_ring();
                }
                ring_reader_disarm(&ring);
                adaptive_poll_looked(&pace, &ring, clock_now(CLOCK_MONOTONIC), n, bells > 0);
        }
        return (ssize_t)n;
}

static bool input_fill(void) {
        ssize_t n = ring_reader_is_open(&ring) ? fill_from_ring() : fill_block();

        input.begin = 0;
        input.end = (size_t)n;
        input.total += (uint64_t)n;
        return n > 0;
}

/* n bytes to `to`, or nowhere; how many there were before the end. */
static size_t input_take(uint8_t *to, size_t n) {
        size_t taken = 0;

        while (taken < n) {
                size_t some = input.end - input.begin;

                if (some == 0) {
                        if (!input_fill())
                                break;
                        continue;
                }
                if (some > n - taken)
                        some = n - taken;
                if (to)
                        memcpy(to + taken, input.bytes + input.begin, some);
                input.begin += some;
                taken += some;
        }
        return taken;
}

/* The packet that the last message tells of: copied, as if it had come by the ring. */
static bool take_pooled(size_t length) {
        enum { OFFSET = 2, LENGTH = 3 }; /* fields of PooledPacket */
        Wire message = wire_of(last, length), w;
        uint64_t numbers[LENGTH + 1] = { 0 };
        const uint8_t *packet;
        WireField f;

        if (!wire_next(&message, &f))
                return false;
        w = wire_of(f.bytes, f.length);
        while (wire_next(&w, &f))
                if (f.key >> 3 <= LENGTH)
                        numbers[f.key >> 3] = f.number;
        packet = pool_reader_at(&pool, numbers[OFFSET], numbers[LENGTH]);
        if (w.malformed || !packet || numbers[LENGTH] > LAST_MAX)
                return false;
        memcpy(last, packet, numbers[LENGTH]);
        input.total += numbers[LENGTH];
        return true;
}

static bool take_frames(bool timed) {
        uint64_t frames = 0;
        uint8_t header[4];
        uint32_t length = 0;
        size_t n;

        while ((n = input_take(header, sizeof(header))) == sizeof(header)) {
                length = header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 | (uint32_t)header[3] << 24;
                if (length > LAST_MAX || input_take(last, length) != length)
                        return false;
                if (length > 0 && last[0] == MESSAGE_POOLED ? timed || !take_pooled(length) :
                                                              timed && !latency_add_frame(&latency, last, length))
                        return false;
                frames++;
        }
        printf("{\"bytes\":%llu,\"frames\":%llu,", (unsigned long long)input.total, (unsigned long long)frames);
        if (timed)
                latency_print(&latency);
        printf("\"last\":\"");
        for (uint32_t i = 0; i < length; i++)
                printf("%02x", last[i]);
        printf("\"}\n");
        return n == 0;
}

static bool discard_frames(void) {
        return take_frames(false);
}

static bool discard_latency(void) {
        return take_frames(true);
}

/* What perf writes first: to a pipe, the first two; to a file also where the records are. */
typedef struct PerfHeader {
        uint64_t magic, size;
        uint64_t attr_size, attrs[2], records, records_size, event_types[2], features[4];
} PerfHeader;

/* Up to the first record; where the last one ends, in bytes of input. */
static bool take_perf_header(uint64_t *ret_end) {
        size_t pipe_size = offsetof(PerfHeader, attr_size), file_size = sizeof(PerfHeader);
        PerfHeader header;

        if (input_take((uint8_t *)&header, pipe_size) != pipe_size)
                return false;
        *ret_end = UINT64_MAX;
        if (header.size == pipe_size)
                return true;
        if (header.size != file_size ||
            input_take((uint8_t *)&header + pipe_size, file_size - pipe_size) != file_size - pipe_size)
                return false;
        *ret_end = header.records + header.records_size;
        return input_take(NULL, header.records - file_size) == header.records - file_size;
}

static uint64_t input_taken(void) {
        return input.total - (input.end - input.begin);
}

static bool discard_perf(void) {
        uint64_t samples = 0, sample_bytes = 0, lost = 0, end;
        struct perf_event_header header;
        size_t n = 0;

        if (!take_perf_header(&end))
                return false;
        while (input_taken() < end && (n = input_take((uint8_t *)&header, sizeof(header))) == sizeof(header)) {
                static uint64_t body[UINT16_MAX / sizeof(uint64_t) + 1];
                size_t length = header.size - sizeof(header);

                if (header.size < sizeof(header) || input_take((uint8_t *)body, length) != length)
                        return false;
                if (header.type == PERF_RECORD_SAMPLE) {
                        samples++;
                        sample_bytes += header.size;
                }
                if (header.type == PERF_RECORD_LOST)
                        lost += body[1];
                if (header.type == PERF_RECORD_HEADER_TRACING_DATA) { /* the formats follow, in whole u64 */
                        size_t size = ((size_t)(uint32_t)body[0] + 7) / 8 * 8;

                        if (input_take(NULL, size) != size)
                                return false;
                }
        }
        printf("{\"bytes\":%llu,\"samples\":%llu,\"sample_bytes\":%llu,\"lost\":%llu}\n", (unsigned long long)input_taken(),
               (unsigned long long)samples, (unsigned long long)sample_bytes, (unsigned long long)lost);
        return end != UINT64_MAX || n == 0;
}

static bool discard_lines(void) {
        uint64_t lines = 0;

        while (input_fill())
                for (const uint8_t *at = input.bytes, *end = at + input.end;
                     (at = memchr(at, '\n', (size_t)(end - at))); at++)
                        lines++;
        printf("{\"bytes\":%llu,\"lines\":%llu}\n", (unsigned long long)input.total, (unsigned long long)lines);
        return true;
}

static bool discard_bytes(void) {
        while (input_fill())
                ;
        printf("{\"bytes\":%llu}\n", (unsigned long long)input.total);
        return true;
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                bool (*run)(void);
        } kinds[] = { { "bytes", discard_bytes }, { "lines", discard_lines }, { "perf", discard_perf },
                      { "frames", discard_frames }, { "latency", discard_latency } };

        if (argc == 6 || argc == 8) {
                const int fds[] = { atoi(argv[2]), atoi(argv[3]) };

                if (ring_reader_open(&ring, fds, strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10)) != 0) {
                        fputs("discard: these are no files of a ring\n", stderr);
                        return EXIT_FAILURE;
                }
                if (argc == 8 && pool_reader_open(&pool, atoi(argv[6]), strtoull(argv[7], NULL, 10)) != 0) {
                        fputs("discard: this is no file of a pool\n", stderr);
                        return EXIT_FAILURE;
                }
        }
        for (size_t i = 0; (argc == 2 || argc == 6 || argc == 8) && i < ARRAY_SIZE(kinds); i++)
                if (strcmp(argv[1], kinds[i].name) == 0)
                        return kinds[i].run() ? EXIT_SUCCESS : EXIT_FAILURE;
        fprintf(stderr, "usage: discard bytes | lines | perf | frames [RING] | latency [RING]\n"
              "RING: FD FD BYTES OFFSET [FD BYTES]\n");
        return 2;
}
