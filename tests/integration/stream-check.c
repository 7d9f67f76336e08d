/*
 * A subscriber that is quick enough for floods: counts and checks every item, and says in the end what it saw.
 *
 *   stream-check [OPTION...] SOCKET ORDER QUEUE-BYTES [EVENT...]        ORDER: time or cpu
 *     --overflow oldest|newest|disconnect   what the daemon does when it is too slow
 *     --rate N                              reads no more than N items a second, until it is asked for the end
 *     --where FILTER                        only samples for which this is true
 *
 *   > subscribed        the stream has begun
 *   SIGTERM             asks for the end
 *   > {"items":N,"records":N,"backwards":N,"gaps":N,"missed":N,"matched":N,"sent":N,"outbox":N,"late":N,"queued":N,
 *      "balanced":BOOL,"gap_last":BOOL,"reason":"stopped","cpus":[N,...]}
 * records: the items that are no samples. cpus: samples of each CPU.
 * backwards: items older than their predecessor, in the whole stream or, with ORDER cpu, on their own CPU; and, with ORDER
 * time, gaps that are not from between the items that they stand between, or whose events do not add up. balanced: the
 * whole closing ledger. gap_last: the last that came was a gap. Status 0 if the stream ended with its closing ledger.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "client/perfd.h"

#define MAX_CPUS 256

typedef struct Seen {
        bool by_time, ended, gap_last;
        uint64_t items, records, backwards, gaps, last;
        uint64_t cpus[MAX_CPUS], last_of[MAX_CPUS];
        uint64_t rate; /* items a second, 0: as they come */
} Seen;

static void on_item(void *userdata, const perfd_item *item) {
        uint64_t time = perfd_item_time(item);
        uint32_t cpu = perfd_item_cpu(item) % MAX_CPUS;
        Seen *s = userdata;
        uint64_t *last = s->by_time ? &s->last : &s->last_of[cpu];

        s->items++;
        s->gap_last = false;
        if (perfd_item_record(item) == PERFD_SAMPLE)
                s->cpus[cpu]++;
        else
                s->records++;
        s->backwards += time < *last;
        *last = time;
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        Seen *s = userdata;
        uint64_t sum = 0;

        for (size_t i = 0; i < gap->n_events; i++)
                sum += gap->events[i].items;
        s->gaps++;
        s->gap_last = true;
        s->backwards += sum != gap->items || gap->from > gap->to;
        if (s->by_time) {
                s->backwards += gap->from < s->last;
                s->last = gap->to; /* what comes now is younger */
        }
}

static uint64_t dropped(const perfd_subscriber_ledger *own, const char *reason) {
        for (size_t i = 0; i < own->n_dropped; i++)
                if (strcmp(own->dropped[i].reason, reason) == 0)
                        return own->dropped[i].count;
        return 0;
}

static void on_end(void *userdata, const perfd_end *end) {
        Seen *s = userdata;

        s->ended = end->own && end->received == s->items;
        if (!end->own)
                return;
        printf("{\"items\":%llu,\"records\":%llu,\"backwards\":%llu,\"gaps\":%llu,\"missed\":%llu,\"matched\":%llu,\"sent\":%llu,"
               "\"outbox\":%llu,\"late\":%llu,\"queued\":%llu,\"balanced\":%s,\"gap_last\":%s,\"reason\":\"%s\",\"cpus\":[",
               (unsigned long long)s->items, (unsigned long long)s->records, (unsigned long long)s->backwards, (unsigned long long)s->gaps,
               (unsigned long long)end->missed, (unsigned long long)end->own->matched,
               (unsigned long long)end->own->sent, (unsigned long long)dropped(end->own, "outbox"),
               (unsigned long long)dropped(end->own, "late"), (unsigned long long)end->own->queued,
               perfd_result_is_balanced(end->ledger) ? "true" : "false", s->gap_last ? "true" : "false", end->reason);
        for (int i = 0; i < MAX_CPUS && (i == 0 || s->cpus[i]); i++)
                printf("%s%llu", i ? "," : "", (unsigned long long)s->cpus[i]);
        puts("]}");
}

static int fail(const perfd_client *c, const char *what) {
        fprintf(stderr, "stream-check: %s: %s\n", what, perfd_client_error(c)->message);
        return EXIT_FAILURE;
}

static double seconds_now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* For how long there was enough, ms; -1: it was not. */
static int pause_of(const Seen *s, double began) {
        double due = s->rate ? began + (double)s->items / (double)s->rate - seconds_now() : 0;

        return due > 0 ? (int)(due * 1000) + 1 : -1;
}

static int watch(perfd_client *c, int signals, Seen *s) {
        double began = seconds_now();
        int r;

        for (;;) {
                int pause = pause_of(s, began);
                struct pollfd fds[] = { { .fd = pause < 0 ? perfd_client_fd(c) : -1, .events = perfd_client_events(c) },
                                        { .fd = signals, .events = POLLIN } };
                struct signalfd_siginfo si;

                if (poll(fds, 2, pause) < 0 && errno != EINTR)
                        return -errno;
                if (pause > 0 && !fds[1].revents)
                        continue;
                if (fds[1].revents && read(signals, &si, sizeof(si)) > 0) {
                        s->rate = 0;
                        r = perfd_stream_stop(c);
                        if (r != 0)
                                return r;
                }
                r = perfd_client_process(c);
                if (r != 0)
                        return r == PERFD_E_ENDED ? 0 : r;
        }
}

/* False: wrong. */
static bool parse(int argc, char **argv, perfd_subscription *ret, Seen *seen) {
        static const struct option options[] = { { "overflow", required_argument, NULL, 'o' },
                                                 { "rate", required_argument, NULL, 'r' },
                                                 { "where", required_argument, NULL, 'w' },
                                                 { NULL, 0, NULL, 0 } };
        static const char *const policies[] = { [PERFD_OVERFLOW_DROP_OLDEST] = "oldest", [PERFD_OVERFLOW_DROP_NEWEST] = "newest",
                                                [PERFD_OVERFLOW_DISCONNECT] = "disconnect" };
        int c, policy;

        while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
                switch (c) {
                case 'o':
                        for (policy = 0; policy < 3 && strcmp(policies[policy], optarg) != 0;)
                                policy++;
                        if (policy == 3)
                                return false;
                        ret->overflow = (perfd_overflow)policy;
                        break;
                case 'r':
                        seen->rate = strtoull(optarg, NULL, 10);
                        break;
                case 'w':
                        ret->where = optarg;
                        break;
                default:
                        return false;
                }
        if (argc - optind < 3)
                return false;
        seen->by_time = strcmp(argv[optind + 1], "time") == 0;
        ret->order = seen->by_time ? PERFD_ORDER_TIME : PERFD_ORDER_CPU;
        ret->queue_bytes = strtoull(argv[optind + 2], NULL, 10);
        ret->events = (const char *const *)argv + optind + 3;
        ret->n_events = (size_t)(argc - optind) - 3;
        return true;
}

int main(int argc, char **argv) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        __attribute__((cleanup(perfd_client_freep))) perfd_client *c = perfd_client_new("stream-check");
        Seen seen = { .items = 0 };
        sigset_t set;

        if (!c || !parse(argc, argv, &subscription, &seen)) {
                fputs("usage: stream-check [--overflow oldest|newest|disconnect] [--rate N] [--where FILTER] SOCKET time|cpu "
                      "QUEUE-BYTES [EVENT...]\n", stderr);
                return 2;
        }
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        if (perfd_client_connect(c, argv[optind]) != 0)
                return fail(c, argv[optind]);
        if (perfd_subscribe(c, &subscription, &callbacks, &seen) != 0)
                return fail(c, "subscribe");
        puts("subscribed");
        fflush(stdout);
        if (watch(c, signalfd(-1, &set, SFD_CLOEXEC), &seen) != 0)
                return fail(c, "the stream");
        return seen.ended ? EXIT_SUCCESS : EXIT_FAILURE;
}
