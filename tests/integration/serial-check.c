/*
 * A subscriber of what serial-load does, which looks for each serial number: that it comes once for each event, and in order.
 *
 *   serial-check [--where FILTER] [--rate N] SOCKET ORDER QUEUE-BYTES [EVENT...]        ORDER: time or cpu
 *     --rate N            reads no more than N items a second, until it is asked for the end
 *
 *   > subscribed          the stream has begun
 *   SIGTERM               asks for the end
 *   > {"items":N,"again":N,"backwards":N,"matched":N,"sent":N,"outbox":N,"late":N,"queued":N,"truncated":BOOL,
 *      "events":{"ID":[N,N],...},"rows":[{"name":"NAME","id":N,"cpu":N,"occurred":N,"delivered":N,"filtered":N,
 *      "lost":N,"unwritten":N,"balanced":BOOL,"exact":BOOL,"removed":BOOL},...]}
 * again: samples whose serial number came before for the same event. events: by id, how many samples came, and how many items
 * of it gaps tell of; 0 are the side records of the host. rows: of events, of the closing ledger. Status 0 if the stream ended
 * with it.
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

#define EVENTS_MAX 8192 /* ids */
#define CPUS_MAX 256
#define SERIALS_MAX (UINT64_C(1) << 30)

typedef struct Serials {
        uint64_t *words, n_words;
        uint64_t seen, missed;
} Serials;

typedef struct Seen {
        bool by_time, ended;
        uint64_t items, again, backwards, rate;
        uint64_t last, last_of[CPUS_MAX];
        Serials of[EVENTS_MAX];
} Seen;

static Seen seen;

static Serials *serials_of(uint32_t id) {
        return &seen.of[id % EVENTS_MAX];
}

/* Whether it was there before. */
static bool test_and_set(Serials *s, uint64_t serial) {
        uint64_t bit = UINT64_C(1) << (serial % 64);
        bool was;

        if (serial >= SERIALS_MAX)
                return true; /* there is no such call */
        if (serial / 64 >= s->n_words) {
                uint64_t n = serial / 64 * 2 + 1024;

                s->words = realloc(s->words, n * sizeof(*s->words));
                if (!s->words)
                        abort();
                memset(s->words + s->n_words, 0, (n - s->n_words) * sizeof(*s->words));
                s->n_words = n;
        }
        was = s->words[serial / 64] & bit;
        s->words[serial / 64] |= bit;
        return was;
}

/* sys_enter_lseek, sys_enter_getpriority, raw sys_enter, a probe at mark(), in this order. False: its samples carry none. */
static bool find_serial(const perfd_item *item, uint64_t *ret) {
        static const struct {
                const char *name;
                size_t index;
        } fields[] = { { "offset", 0 }, { "who", 0 }, { "args", 1 }, { "serial", 0 } };
        perfd_value value;

        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
                if (perfd_item_find(item, fields[i].name, &value) && value.count > fields[i].index) {
                        *ret = value.numbers[fields[i].index];
                        return true;
                }
        return false;
}

static void on_item(void *userdata, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        uint64_t serial, time = perfd_item_time(item);
        uint64_t *last = seen.by_time ? &seen.last : &seen.last_of[perfd_item_cpu(item) % CPUS_MAX];

        seen.items++;
        seen.backwards += time < *last;
        *last = time;
        if (!event || perfd_item_record(item) != PERFD_SAMPLE)
                return;
        serials_of(event->id)->seen++;
        if (find_serial(item, &serial))
                seen.again += test_and_set(serials_of(event->id), serial);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        for (size_t i = 0; i < gap->n_events; i++)
                serials_of(gap->events[i].id)->missed += gap->events[i].items;
}

static uint64_t count_of(const perfd_count *counts, size_t n, const char *reason) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                if (!reason || strcmp(counts[i].reason, reason) == 0)
                        sum += counts[i].count;
        return sum;
}

static const char *word(bool fact) {
        return fact ? "true" : "false";
}

static void print_row(const perfd_event_ledger *e, const char *comma) {
        printf("%s{\"name\":\"%s\",\"id\":%u,\"cpu\":%u,\"occurred\":%llu,\"delivered\":%llu,\"filtered\":%llu,\"lost\":%llu,"
               "\"unwritten\":%llu,\"balanced\":%s,\"exact\":%s,\"removed\":%s}", comma, e->name, e->id, e->cpu,
               (unsigned long long)e->occurred, (unsigned long long)e->delivered, (unsigned long long)e->filtered,
               (unsigned long long)count_of(e->lost, e->n_lost, NULL),
               (unsigned long long)count_of(e->lost, e->n_lost, "kernel_unwritten"), word(e->balanced), word(e->exact),
               word(e->removed));
}

static void on_end(void *userdata, const perfd_end *end) {
        const perfd_subscriber_ledger *own = end->own;
        const perfd_event_ledger *row;
        const char *comma = "";

        seen.ended = own && end->received == seen.items;
        if (!own)
                return;
        printf("{\"items\":%llu,\"again\":%llu,\"backwards\":%llu,\"matched\":%llu,\"sent\":%llu,\"outbox\":%llu,\"late\":%llu,"
               "\"queued\":%llu,\"truncated\":%s,\"events\":{", (unsigned long long)seen.items, (unsigned long long)seen.again,
               (unsigned long long)seen.backwards, (unsigned long long)own->matched, (unsigned long long)own->sent,
               (unsigned long long)count_of(own->dropped, own->n_dropped, "outbox"),
               (unsigned long long)count_of(own->dropped, own->n_dropped, "late"), (unsigned long long)own->queued,
               word(perfd_result_is_truncated(end->ledger)));
        for (size_t i = 0; i < EVENTS_MAX; i++)
                if (seen.of[i].seen + seen.of[i].missed > 0) {
                        printf("%s\"%zu\":[%llu,%llu]", comma, i, (unsigned long long)seen.of[i].seen,
                               (unsigned long long)seen.of[i].missed);
                        comma = ",";
                }
        printf("},\"rows\":[");
        comma = "";
        for (size_t i = 0; (row = perfd_result_event_ledger(end->ledger, i)); i++, comma = ",")
                print_row(row, comma);
        puts("]}");
}

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* When it reads again, if it has read as much as it may. */
static uint64_t pause_until(uint64_t began) {
        return seen.rate ? began + seen.items * UINT64_C(1000000000) / seen.rate : 0;
}

static int watch(perfd_client *c, int signals) {
        uint64_t began = now();

        for (;;) {
                uint64_t at = now(), until = pause_until(began);
                bool pauses = until > at;
                uint64_t due = pauses ? until : perfd_client_due(c), wait = due <= at ? 0 : due - at;
                struct pollfd fds[] = { { .fd = pauses ? -1 : perfd_client_fd(c), .events = perfd_client_events(c) },
                                        { .fd = signals, .events = POLLIN } };
                struct signalfd_siginfo si;
                struct timespec ts;
                int r;

                wait = wait > 3600 * UINT64_C(1000000000) ? 3600 * UINT64_C(1000000000) : wait;
                ts = (struct timespec){ .tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000) };
                if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents && read(signals, &si, sizeof(si)) > 0) {
                        seen.rate = 0;
                        r = perfd_stream_stop(c);
                        if (r != 0)
                                return r;
                } else if (pauses)
                        continue;
                r = perfd_client_process(c);
                if (r != 0)
                        return r == PERFD_E_ENDED ? 0 : r;
        }
}

static int fail(const perfd_client *c, const char *what) {
        fprintf(stderr, "serial-check: %s: %s\n", what, perfd_client_error(c)->message);
        return EXIT_FAILURE;
}

static bool parse(int argc, char **argv, perfd_subscription *ret) {
        static const struct option options[] = { { "rate", required_argument, NULL, 'r' },
                                                 { "where", required_argument, NULL, 'w' },
                                                 { NULL, 0, NULL, 0 } };
        int c;

        while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
                if (c == 'r')
                        seen.rate = strtoull(optarg, NULL, 10);
                else if (c == 'w')
                        ret->where = optarg;
                else
                        return false;
        if (argc - optind < 3)
                return false;
        seen.by_time = strcmp(argv[optind + 1], "time") == 0;
        ret->order = seen.by_time ? PERFD_ORDER_TIME : PERFD_ORDER_CPU;
        ret->queue_bytes = strtoull(argv[optind + 2], NULL, 10);
        ret->events = (const char *const *)argv + optind + 3;
        ret->n_events = (size_t)(argc - optind) - 3;
        return true;
}

int main(int argc, char **argv) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        __attribute__((cleanup(perfd_client_freep))) perfd_client *c = perfd_client_new("serial-check");
        sigset_t set;

        if (!c || !parse(argc, argv, &subscription)) {
                fputs("usage: serial-check [--where FILTER] [--rate N] SOCKET time|cpu QUEUE-BYTES [EVENT...]\n", stderr);
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
        if (perfd_subscribe(c, &subscription, &callbacks, NULL) != 0)
                return fail(c, "subscribe");
        puts("subscribed");
        fflush(stdout);
        if (watch(c, signalfd(-1, &set, SFD_CLOEXEC)) != 0)
                return fail(c, "the stream");
        return seen.ended ? EXIT_SUCCESS : EXIT_FAILURE;
}
