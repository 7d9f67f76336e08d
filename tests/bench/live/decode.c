/*
 * A subscriber in the order of time as programs are: by libperfd, which reads every field of each item.
 *
 *     decode SOCKET EVENT LATENCY [FIELD...]      LATENCY in ns; 0: the daemon's default
 *     decode URI EVENT LATENCY [FIELD...]         tls://..., by the files in $PERFD_TLS; compressed if $COMPRESS is set
 *
 * Without a FIELD item by item; with them in batches, of which the columns of these are read, and times, CPUs and processes.
 *
 * Said on stdout (>) and expected on stdin (<):
 *     > ready
 *     < stop
 *     > {"items":N,"missed":N,"sum":N}     sum: of all numbers, so that each is read
 *
 * Status 1 if the stream fails.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfd.h"

typedef struct Sums {
        uint64_t n_items, missed, sum;
        uint32_t event;
} Sums;

static int fail(const perfd_client *client, const char *what) {
        fprintf(stderr, "decode: %s: %s\n", what, perfd_client_error(client)->message);
        return EXIT_FAILURE;
}

static void on_item(void *userdata, const perfd_item *item) {
        Sums *s = userdata;
        perfd_value v;

        s->n_items++;
        s->sum += perfd_item_time(item) + perfd_item_cpu(item) + perfd_item_pid(item);
        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                for (size_t k = 0; k < v.count; k++)
                        s->sum += v.numbers[k];
                s->sum += v.text.length;
        }
}

static void on_event(void *userdata, const perfd_event *event) {
        ((Sums *)userdata)->event = event->id;
}

static uint64_t sum_of_numbers(const uint64_t *numbers, size_t n) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += numbers[i];
        return sum;
}

static int take_batch(const perfd_client *client, const perfd_batch *batch, char **fields, Sums *s) {
        const perfd_column *column;

        for (size_t i = 0; i < batch->n; i++)
                s->sum += batch->times[i] + batch->cpus[i] + batch->pids[i];
        for (; *fields && batch->n_samples > 0; fields++) {
                if (perfd_batch_column(batch, s->event, *fields, &column) != 0)
                        return fail(client, "column");
                s->sum += sum_of_numbers(column->values, column->n * column->count);
        }
        s->n_items += batch->n;
        return EXIT_SUCCESS;
}

/* What is there, item by item if no fields are named. 0, or as perfd_client_process(). */
static int take(perfd_client *client, char **fields, Sums *s) {
        const perfd_batch *batch;
        int r;

        if (!*fields)
                return perfd_client_process(client);
        while ((r = perfd_stream_next_batch(client, &batch)) == 0 && batch->n > 0)
                if (take_batch(client, batch, fields, s) != EXIT_SUCCESS)
                        return PERFD_E_STATE;
        return r;
}

static void on_end(void *userdata, const perfd_end *end) {
        Sums *s = userdata;

        s->missed = end->missed;
}

/* True: it was told to stop. */
static int wait_for(perfd_client *client) {
        struct pollfd fds[] = { { .fd = perfd_client_fd(client), .events = perfd_client_events(client) },
                                { .fd = STDIN_FILENO, .events = POLLIN } };
        const uint64_t due = perfd_client_due(client);
        struct timespec now, wait;
        uint64_t ns;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        ns = due > ns ? due - ns : 0;
        wait = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
        return ppoll(fds, 2, due == UINT64_MAX ? NULL : &wait, NULL) > 0 && fds[1].revents;
}

static int connect_to(perfd_client *client, const char *where) {
        const char *files = getenv("PERFD_TLS");
        int r;

        if (!strstr(where, "://"))
                return perfd_client_connect(client, where);
        r = files ? perfd_client_set_tls(client, files) : 0;
        if (r == 0)
                r = perfd_client_set_compression(client, getenv("COMPRESS") != NULL);
        return r == 0 ? perfd_client_connect_uri(client, where) : r;
}

static int decode(perfd_client *client, char **argv, Sums *s) {
        const char *events[] = { argv[2] };
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        int r, is_stopping = 0;

        if (connect_to(client, argv[1]) != 0)
                return fail(client, "connect");
        subscription.events = events;
        subscription.n_events = 1;
        subscription.latency = strtoull(argv[3], NULL, 10);
        callbacks.item = argv[4] ? NULL : on_item;
        callbacks.event = on_event;
        callbacks.end = on_end;
        if (perfd_subscribe(client, &subscription, &callbacks, s) != 0)
                return fail(client, "subscribe");
        (void)puts("ready");
        (void)fflush(stdout);
        while ((r = take(client, argv + 4, s)) == 0) {
                if (is_stopping) {
                        if (perfd_client_wait(client) != 0)
                                return fail(client, "wait");
                        continue;
                }
                is_stopping = wait_for(client);
                if (is_stopping && perfd_stream_stop(client) != 0)
                        return fail(client, "stop");
        }
        return r == PERFD_E_ENDED ? EXIT_SUCCESS : fail(client, "stream");
}

int main(int argc, char **argv) {
        perfd_client *client = argc >= 4 ? perfd_client_new("decode") : NULL;
        Sums s = { .n_items = 0 };
        int r;

        if (!client) {
                fputs("usage: decode SOCKET EVENT LATENCY [FIELD...]\n", stderr);
                return EXIT_FAILURE;
        }
        r = decode(client, argv, &s);
        printf("{\"items\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"sum\":%" PRIu64 "}\n", s.n_items, s.missed, s.sum);
        perfd_client_free(client);
        return r;
}
