/*
 * A subscriber that is quick enough for floods: counts and checks every item, and says in the end what it saw.
 *
 *   stream-check [OPTION...] SOCKET ORDER QUEUE-BYTES [EVENT...]        ORDER: time or cpu; SOCKET: a path, or a URI
 *     --overflow oldest|newest|disconnect   what the daemon does when it is too slow
 *     --rate N                              reads no more than N items a second, until it is asked for the end
 *     --where FILTER                        only samples for which this is true
 *     --tls DIR                             certificates for a URI of tls://
 *     --ring BYTES                          of shared memory, 0: by the socket; else as the library has it
 *
 *   > subscribed        the stream has begun
 *   SIGTERM             asks for the end
 *   > {"items":N,"records":N,"backwards":N,"gaps":N,"missed":N,"matched":N,"sent":N,"outbox":N,"relay_queue":N,
 *      "memory":N,"late":N,"queued":N,"balanced":BOOL,"gap_last":BOOL,"reason":"stopped","looks":N,"cpus":[N,...],"steps":["...",...],
 *      "unbalanced":["...",...],"stalled":BOOL,"occurred":N,"lost":{"REASON":N,...}}
 * records: the items that are no samples. cpus: samples of each CPU. looks: how often it had to wait for no bell.
 * backwards: items older than their predecessor, in the whole stream or, with ORDER cpu, on their own CPU; and, with ORDER
 * time, gaps that are not from between the items that they stand between, or whose events do not add up. balanced: the
 * whole closing ledger; unbalanced: its rows that are not, stalled: all of these are of readers that did not answer.
 * occurred: of all events while the stream was there, lost: of that, each by the closing ledger.
 * gap_last: the last that came was a gap. steps: the first items that went backwards, and what came before them. Status 0
 * if the stream ended with its closing ledger.
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
#define MAX_STEPS 8

/* What an item was. */
typedef struct Place {
        uint64_t time;
        uint32_t cpu, event; /* event: 0 of what the host's side records are */
        perfd_record record;
} Place;

typedef struct Step {
        uint64_t item; /* the n-th */
        Place before, now;
} Step;

typedef struct Seen {
        bool by_time, ended, gap_last;
        uint64_t items, records, backwards, gaps;
        uint64_t cpus[MAX_CPUS];
        Place last, last_of[MAX_CPUS];
        Step steps[MAX_STEPS];
        size_t n_steps;
        uint64_t rate; /* items a second, 0: as they come */
        uint64_t looks;
} Seen;

static void on_item(void *userdata, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        Place now = { .time = perfd_item_time(item), .cpu = perfd_item_cpu(item), .event = event ? event->id : 0,
                      .record = perfd_item_record(item) };
        uint32_t cpu = now.cpu % MAX_CPUS;
        Seen *s = userdata;
        Place *last = s->by_time ? &s->last : &s->last_of[cpu];

        s->items++;
        s->gap_last = false;
        if (now.record == PERFD_SAMPLE)
                s->cpus[cpu]++;
        else
                s->records++;
        if (now.time < last->time) {
                s->backwards++;
                if (s->n_steps < MAX_STEPS)
                        s->steps[s->n_steps++] = (Step){ .item = s->items, .before = *last, .now = now };
        }
        *last = now;
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
                s->backwards += gap->from < s->last.time;
                s->last.time = gap->to; /* what comes now is younger */
        }
}

static void print_steps(const Seen *s) {
        for (size_t i = 0; i < s->n_steps; i++) {
                const Place *b = &s->steps[i].before, *n = &s->steps[i].now;

                printf("%s\"item %llu: %llu ns before the one before it; event %u, record %d, CPU %u at %llu behind event %u, "
                       "record %d, CPU %u\"", i ? "," : "", (unsigned long long)s->steps[i].item,
                       (unsigned long long)(b->time - n->time), n->event, n->record, n->cpu, (unsigned long long)n->time,
                       b->event, b->record, b->cpu);
        }
}

static uint64_t dropped(const perfd_subscriber_ledger *own, const char *reason) {
        for (size_t i = 0; i < own->n_dropped; i++)
                if (strcmp(own->dropped[i].reason, reason) == 0)
                        return own->dropped[i].count;
        return 0;
}

/* The rows of a closing ledger that do not balance; gives back whether each of them is of a reader that did not answer. */
static bool print_unbalanced(const perfd_result *ledger) {
        const perfd_event_ledger *event;
        const perfd_ring_ledger *ring;
        const perfd_subscriber_ledger *own;
        const char *comma = "";
        bool is_stalled = true;

        for (size_t i = 0; (event = perfd_result_event_ledger(ledger, i)); i++) {
                if (event->balanced)
                        continue;
                printf("%s\"event %u on CPU %u: %llu occurred, %llu delivered, %llu filtered%s\"", comma, event->id, event->cpu,
                       (unsigned long long)event->occurred, (unsigned long long)event->delivered,
                       (unsigned long long)event->filtered, event->stalled ? ", stalled" : "");
                is_stalled = is_stalled && event->stalled;
                comma = ",";
        }
        for (size_t i = 0; (ring = perfd_result_ring_ledger(ledger, i)); i++) {
                if (ring->balanced)
                        continue;
                printf("%s\"ring of CPU %u: %llu records, %llu samples, %llu side records%s\"", comma, ring->cpu,
                       (unsigned long long)ring->records, (unsigned long long)ring->samples,
                       (unsigned long long)ring->side_records, ring->stalled ? ", stalled" : "");
                is_stalled = is_stalled && ring->stalled;
                comma = ",";
        }
        for (size_t i = 0; (own = perfd_result_subscriber_ledger(ledger, i)); i++) {
                if (own->balanced)
                        continue;
                printf("%s\"subscriber %llu: %llu matched, %llu sent, %llu queued\"", comma, (unsigned long long)own->id,
                       (unsigned long long)own->matched, (unsigned long long)own->sent, (unsigned long long)own->queued);
                is_stalled = false;
                comma = ",";
        }
        return is_stalled;
}

static uint64_t occurred(const perfd_result *ledger) {
        const perfd_event_ledger *event;
        uint64_t n = 0;

        for (size_t i = 0; (event = perfd_result_event_ledger(ledger, i)); i++)
                n += event->since ? event->since->occurred : event->occurred;
        return n;
}

static void print_lost(const perfd_end *end) {
        printf(",\"occurred\":%llu,\"lost\":{", (unsigned long long)occurred(end->ledger));
        for (size_t i = 0; i < end->n_lost; i++)
                printf("%s\"%s\":%llu", i ? "," : "", end->lost[i].reason, (unsigned long long)end->lost[i].count);
        puts("}}");
}

static void on_end(void *userdata, const perfd_end *end) {
        Seen *s = userdata;

        s->ended = end->own && end->received == s->items;
        if (!end->own)
                return;
        printf("{\"items\":%llu,\"records\":%llu,\"backwards\":%llu,\"gaps\":%llu,\"missed\":%llu,\"matched\":%llu,\"sent\":%llu,"
               "\"outbox\":%llu,\"relay_queue\":%llu,\"memory\":%llu,\"late\":%llu,\"queued\":%llu,\"balanced\":%s,\"gap_last\":%s,\"reason\":\"%s\",\"looks\":%llu,\"cpus\":[",
               (unsigned long long)s->items, (unsigned long long)s->records, (unsigned long long)s->backwards, (unsigned long long)s->gaps,
               (unsigned long long)end->missed, (unsigned long long)end->own->matched,
               (unsigned long long)end->own->sent, (unsigned long long)dropped(end->own, "outbox"),
               (unsigned long long)dropped(end->own, "relay_queue"), (unsigned long long)dropped(end->own, "memory"),
               (unsigned long long)dropped(end->own, "late"), (unsigned long long)end->own->queued,
               perfd_result_is_balanced(end->ledger) ? "true" : "false", s->gap_last ? "true" : "false", end->reason,
               (unsigned long long)s->looks);
        for (int i = 0; i < MAX_CPUS && (i == 0 || s->cpus[i]); i++)
                printf("%s%llu", i ? "," : "", (unsigned long long)s->cpus[i]);
        printf("],\"steps\":[");
        print_steps(s);
        printf("],\"unbalanced\":[");
        printf("],\"stalled\":%s", print_unbalanced(end->ledger) ? "true" : "false");
        print_lost(end);
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

/* While it pauses it does not say when it will look: it is rung for, and lets that wait. */
static struct timespec timeout_of(perfd_client *c, int pause) {
        double s = pause >= 0 ? pause / 1e3 : (double)perfd_client_due(c) / 1e9 - seconds_now();

        s = s < 0 ? 0 : s > 3600 ? 3600 : s; /* it is asked again */
        return (struct timespec){ .tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };
}

static int watch(perfd_client *c, int signals, Seen *s) {
        double began = seconds_now();
        int r;

        for (;;) {
                int pause = pause_of(s, began);
                struct pollfd fds[] = { { .fd = pause < 0 ? perfd_client_fd(c) : -1, .events = perfd_client_events(c) },
                                        { .fd = signals, .events = POLLIN } };
                struct timespec ts = timeout_of(c, pause);
                struct signalfd_siginfo si;

                r = ppoll(fds, 2, &ts, NULL);
                if (r < 0 && errno != EINTR)
                        return -errno;
                s->looks += r == 0 && pause < 0;
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
static bool parse(int argc, char **argv, perfd_subscription *ret, Seen *seen, const char **ret_tls) {
        static const struct option options[] = { { "overflow", required_argument, NULL, 'o' },
                                                 { "rate", required_argument, NULL, 'r' },
                                                 { "where", required_argument, NULL, 'w' },
                                                 { "ring", required_argument, NULL, 'm' },
                                                 { "tls", required_argument, NULL, 't' },
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
                case 't':
                        *ret_tls = optarg;
                        break;
                case 'm':
                        ret->ring_bytes = (uint32_t)strtoul(optarg, NULL, 10);
                        if (ret->ring_bytes == 0)
                                ret->ring_bytes = PERFD_NO_RING;
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

static int connect_to(perfd_client *c, const char *where, const char *tls) {
        int r = tls ? perfd_client_set_tls(c, tls) : 0;

        if (r != 0)
                return r;
        return strstr(where, "://") ? perfd_client_connect_uri(c, where) : perfd_client_connect(c, where);
}

int main(int argc, char **argv) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        __attribute__((cleanup(perfd_client_freep))) perfd_client *c = perfd_client_new("stream-check");
        Seen seen = { .items = 0 };
        const char *tls = NULL;
        sigset_t set;

        if (!c || !parse(argc, argv, &subscription, &seen, &tls)) {
                fputs("usage: stream-check [--overflow oldest|newest|disconnect] [--rate N] [--where FILTER] [--ring BYTES] "
                      "[--tls DIR] SOCKET time|cpu QUEUE-BYTES [EVENT...]\n", stderr);
                return 2;
        }
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        if (connect_to(c, argv[optind], tls) != 0)
                return fail(c, argv[optind]);
        if (perfd_subscribe(c, &subscription, &callbacks, &seen) != 0)
                return fail(c, "subscribe");
        puts("subscribed");
        fflush(stdout);
        if (watch(c, signalfd(-1, &set, SFD_CLOEXEC), &seen) != 0)
                return fail(c, "the stream");
        return seen.ended ? EXIT_SUCCESS : EXIT_FAILURE;
}
