/* libperfd(3)'s example of batches: which system calls are made how often, for a million of them. Build with: cc example-batch.c -lperfd */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfd.h"

#define CALLS 1024

typedef struct counts {
        uint32_t event;
        uint64_t wanted, n, calls[CALLS];
} counts;

static void on_event(void *userdata, const perfd_event *event) {
        counts *c = userdata;

        c->event = event->id;
}

static void on_end(void *userdata, const perfd_end *end) {
        (void)userdata;
        printf("%" PRIu64 " items received, %" PRIu64 " missed, the ledger %s\n", end->received, end->missed,
               perfd_result_is_balanced(end->ledger) ? "balances" : "does not balance");
}

static int fail(const perfd_client *client, const char *what) {
        fprintf(stderr, "%s: %s\n", what, perfd_client_error(client)->message);
        return 1;
}

static int add(const perfd_client *client, const perfd_batch *batch, counts *c) {
        const perfd_column *ids;

        if (batch->n_samples == 0) /* the kernel's records of what it lost, and nothing else */
                return 0;
        if (perfd_batch_column(batch, c->event, "id", &ids) != 0)
                return fail(client, "column");
        for (size_t i = 0; i < ids->n; i++)
                if (ids->values[i] < CALLS)
                        c->calls[ids->values[i]]++;
        c->n += ids->n;
        return 0;
}

static int count(perfd_client *client, const char *path, counts *c) {
        const char *events[] = { "raw_syscalls:sys_enter" };
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        const perfd_batch *batch;
        int r;

        if (perfd_client_connect(client, path) != 0)
                return fail(client, "connect");
        subscription.events = events;
        subscription.n_events = 1;
        subscription.order = PERFD_ORDER_CPU; /* nothing here needs more, and it is cheapest */
        callbacks.event = on_event;
        callbacks.end = on_end;
        if (perfd_subscribe(client, &subscription, &callbacks, c) != 0)
                return fail(client, "subscribe");

        for (;;) {
                while ((r = perfd_stream_next_batch(client, &batch)) == 0 && batch->n > 0)
                        if (add(client, batch, c) != 0)
                                return 1;
                if (r != 0)
                        return r == PERFD_E_ENDED ? 0 : fail(client, "stream");
                if (c->n >= c->wanted && perfd_stream_stop(client) != 0) /* queued items still arrive, and the end */
                        return fail(client, "stop");
                if (perfd_client_wait(client) != 0)
                        return fail(client, "wait");
        }
}

int main(int argc, char **argv) {
        counts c = { .wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000 };
        const char *path = getenv("PERFD_SOCKET");
        perfd_client *client = perfd_client_new("example-batch");
        int r = 1;

        if (client)
                r = count(client, path ? path : "/run/perfd/stream.sock", &c);
        for (unsigned i = 0; i < CALLS; i++)
                if (c.calls[i] > 0)
                        printf("%4u %" PRIu64 "\n", i, c.calls[i]);
        perfd_client_free(client);
        return r;
}
