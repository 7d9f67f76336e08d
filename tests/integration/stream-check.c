/*
 * A subscriber that is quick enough for floods: counts and checks every item, and says in the end what it saw.
 *
 *   stream-check SOCKET ORDER QUEUE-BYTES [EVENT...]        ORDER: time or cpu
 *
 *   > subscribed        the stream has begun
 *   SIGTERM             asks for the end
 *   > {"items":N,"records":N,"backwards":N,"gaps":N,"missed":N,"matched":N,"sent":N,"outbox":N,"late":N,"queued":N,
 *      "balanced":BOOL,"reason":"stopped","cpus":[N,...]}
 * records: the items that are no samples. cpus: samples of each CPU.
 * backwards: items older than their predecessor, in the whole stream or, with ORDER cpu, on their own CPU. balanced: the
 * whole closing ledger. Status 0 if the stream ended with its closing ledger.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/perfd.h"

#define MAX_CPUS 256

typedef struct Seen {
        bool by_time, ended;
        uint64_t items, records, backwards, gaps, last;
        uint64_t cpus[MAX_CPUS], last_of[MAX_CPUS];
} Seen;

static void on_item(void *userdata, const perfd_item *item) {
        uint64_t time = perfd_item_time(item);
        uint32_t cpu = perfd_item_cpu(item) % MAX_CPUS;
        Seen *s = userdata;
        uint64_t *last = s->by_time ? &s->last : &s->last_of[cpu];

        s->items++;
        if (perfd_item_record(item) == PERFD_SAMPLE)
                s->cpus[cpu]++;
        else
                s->records++;
        s->backwards += time < *last;
        *last = time;
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        ((Seen *)userdata)->gaps++;
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
               "\"outbox\":%llu,\"late\":%llu,\"queued\":%llu,\"balanced\":%s,\"reason\":\"%s\",\"cpus\":[",
               (unsigned long long)s->items, (unsigned long long)s->records, (unsigned long long)s->backwards, (unsigned long long)s->gaps,
               (unsigned long long)end->missed, (unsigned long long)end->own->matched,
               (unsigned long long)end->own->sent, (unsigned long long)dropped(end->own, "outbox"),
               (unsigned long long)dropped(end->own, "late"), (unsigned long long)end->own->queued,
               perfd_result_is_balanced(end->ledger) ? "true" : "false", end->reason);
        for (int i = 0; i < MAX_CPUS && (i == 0 || s->cpus[i]); i++)
                printf("%s%llu", i ? "," : "", (unsigned long long)s->cpus[i]);
        puts("]}");
}

static int fail(const perfd_client *c, const char *what) {
        fprintf(stderr, "stream-check: %s: %s\n", what, perfd_client_error(c)->message);
        return EXIT_FAILURE;
}

static int watch(perfd_client *c, int signals) {
        int r;

        for (;;) {
                struct pollfd fds[] = { { .fd = perfd_client_fd(c), .events = perfd_client_events(c) },
                                        { .fd = signals, .events = POLLIN } };
                struct signalfd_siginfo si;

                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents && read(signals, &si, sizeof(si)) > 0) {
                        r = perfd_stream_stop(c);
                        if (r != 0)
                                return r;
                }
                r = perfd_client_process(c);
                if (r != 0)
                        return r == PERFD_E_ENDED ? 0 : r;
        }
}

int main(int argc, char **argv) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        __attribute__((cleanup(perfd_client_freep))) perfd_client *c = perfd_client_new("stream-check");
        Seen seen = { .items = 0 };
        sigset_t set;

        if (argc < 4 || !c) {
                fputs("usage: stream-check SOCKET time|cpu QUEUE-BYTES [EVENT...]\n", stderr);
                return 2;
        }
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        seen.by_time = strcmp(argv[2], "time") == 0;
        subscription.order = seen.by_time ? PERFD_ORDER_TIME : PERFD_ORDER_CPU;
        subscription.queue_bytes = strtoull(argv[3], NULL, 10);
        subscription.events = (const char *const *)argv + 4;
        subscription.n_events = (size_t)argc - 4;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        if (perfd_client_connect(c, argv[1]) != 0)
                return fail(c, argv[1]);
        if (perfd_subscribe(c, &subscription, &callbacks, &seen) != 0)
                return fail(c, "subscribe");
        puts("subscribed");
        fflush(stdout);
        if (watch(c, signalfd(-1, &set, SFD_CLOEXEC)) != 0)
                return fail(c, "the stream");
        return seen.ended ? EXIT_SUCCESS : EXIT_FAILURE;
}
