/*
 * The policy of waking up is that of daemon/reader/reader.c: the watermark, and ticks of the monotonic clock, which are short
 * after records came and doubled with each look in vain. The thread is pinned to the ring's CPU and urgent, as a reader
 * is.
 */
#include "tests/bench/live/bare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/thread.h"
#include "daemon/reader/cycle.h"
#include "daemon/supervisor/supervisor.h"

#define EVENT "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"
#define READER_NICE -19
#define WAIT_MAX (128 * NSEC_PER_MSEC)

_Noreturn void bare_fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

void bare_write(const Bare *b, const uint8_t *bytes, size_t length) {
        for (size_t written = 0; written < length;) {
                ssize_t n = write(b->out, bytes + written, length - written);

                if (n < 0 && errno != EINTR)
                        bare_fail("bare: writing");
                if (n > 0)
                        written += (size_t)n;
        }
}

static uint64_t event_id(void) {
        FILE *f = fopen(EVENT, "re");
        unsigned long long id;

        if (!f || fscanf(f, "%llu", &id) != 1)
                bare_fail(EVENT);
        fclose(f);
        return id;
}

static void bare_open(Bare *b, pid_t pid, int cpu) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = event_id(), .sample_period = 1,
                .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                               PERF_SAMPLE_RAW,
                .read_format = PERF_FORMAT_LOST, .use_clockid = 1, .clockid = CLOCK_MONOTONIC,
                .watermark = 1, .wakeup_watermark = BARE_RING / WATERMARK_SHARE };
        size_t page_size = (size_t)sysconf(_SC_PAGESIZE);

        b->fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (b->fd < 0)
                bare_fail("bare: perf_event_open");
        b->page = mmap(NULL, page_size + BARE_RING, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
        b->block = malloc(BARE_BLOCK + BARE_RECORD_MAX);
        if (b->page == MAP_FAILED || !b->block)
                bare_fail("bare: ring");
        b->bytes = (const uint8_t *)b->page + page_size;
        memset(b->block, 0, BARE_BLOCK + BARE_RECORD_MAX); /* its pages are there before the clock runs */
}

void bare_be_urgent(void) {
        if (thread_set_urgent(READER_NICE) < 0)
                bare_fail("bare: priority");
}

static void pin(int cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
                bare_fail("bare: pinning");
}

static struct rusage usage(void) {
        struct rusage u;

        (void)getrusage(RUSAGE_SELF, &u);
        return u;
}

static uint64_t cpu_ns(const struct rusage *u) {
        return ((uint64_t)u->ru_utime.tv_sec + (uint64_t)u->ru_stime.tv_sec) * NSEC_PER_SEC +
               ((uint64_t)u->ru_utime.tv_usec + (uint64_t)u->ru_stime.tv_usec) * NSEC_PER_USEC;
}

static void bare_report(const Bare *b, const struct rusage *began) {
        struct rusage ended = usage();
        uint64_t counts[2]; /* count, lost */

        if (read(b->fd, counts, sizeof(counts)) != sizeof(counts))
                bare_fail("bare: read");
        printf("{");
        if (b->say)
                b->say();
        printf("\"occurred\":%llu,\"lost\":%llu,\"cpu_ns\":%llu,\"wakeups\":%ld}\n", (unsigned long long)counts[0],
               (unsigned long long)counts[1], (unsigned long long)(cpu_ns(&ended) - cpu_ns(began)),
               ended.ru_nvcsw - began->ru_nvcsw);
}

/* Until stdin says something. What the watermark finds between two ticks is left for the next one, if it is little. */
static void bare_loop(Bare *b, BareStep *drain) {
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = b->fd, .events = POLLIN } };
        nsec_t wait = b->tick, due = 0;
        bool has_read_early = false;

        while (fds[0].revents == 0) {
                nsec_t now = clock_now(CLOCK_MONOTONIC);
                struct timespec ts;
                int n;

                if (due == 0)
                        due = now + wait - now % wait;
                ts = nsec_timespec(due > now ? due - now : 0);
                n = ppoll(fds, 2, &ts, NULL);
                if (n < 0 && errno != EINTR)
                        bare_fail("bare: poll");
                b->head = __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
                if (n > 0 && fds[0].revents == 0 && wait == b->tick && b->head - b->tail < BARE_RING / READER_EARLY_SHARE)
                        continue;
                if (b->head != b->tail) {
                        drain(b);
                        bare_publish(b);
                        wait = b->tick;
                        has_read_early = n > 0;
                } else if (!has_read_early && wait < WAIT_MAX)
                        wait *= 2;
                else
                        has_read_early = false;
                due = 0;
        }
}

int bare_run(int argc, char **argv, BareStep *begin, BareStep *drain) {
        static Bare bare;
        struct rusage began;

        if (argc != 4 && argc != 5) {
                fprintf(stderr, "usage: %s PID CPU OUT [TICK]\n", argv[0]);
                return 2;
        }
        bare.out = atoi(argv[3]);
        bare.tick = argc == 5 ? strtoull(argv[4], NULL, 10) : READER_TICK;
        setvbuf(stdout, NULL, _IOLBF, 0);
        bare_open(&bare, atoi(argv[1]), atoi(argv[2]));
        if (begin)
                begin(&bare);
        pin(atoi(argv[2]));
        bare_be_urgent();
        printf("ready\n");
        began = usage();
        bare_loop(&bare, drain);
        bare_report(&bare, &began);
        return EXIT_SUCCESS;
}
