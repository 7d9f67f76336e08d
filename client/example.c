/* libperfd(3)'s example: who executes what, for ten samples. Build with: cc example.c -lperfd */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfd.h"

static void on_item(void *userdata, const perfd_item *item) {
        unsigned *n = userdata;
        perfd_text comm = perfd_item_comm(item);
        perfd_value file;

        if (perfd_item_record(item) != PERFD_SAMPLE || !perfd_item_find(item, "filename", &file) || *n == 10)
                return;
        printf("%" PRIu64 " %.*s %.*s\n", perfd_item_time(item), (int)comm.length, comm.bytes,
               (int)file.text.length, file.text.bytes);
        ++*n;
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

static int watch(perfd_client *client, const char *path) {
        const char *events[] = { "sched:sched_process_exec" };
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        unsigned n = 0;
        int r;

        if (perfd_client_connect(client, path) != 0)
                return fail(client, "connect");
        subscription.events = events;
        subscription.n_events = 1;
        subscription.where = "pid != 1";
        callbacks.item = on_item;
        callbacks.end = on_end;
        if (perfd_subscribe(client, &subscription, &callbacks, &n) != 0)
                return fail(client, "subscribe");

        while ((r = perfd_client_process(client)) == 0) {
                if (n == 10 && perfd_stream_stop(client) != 0) /* queued items still arrive, and the end */
                        return fail(client, "stop");
                if (perfd_client_wait(client) != 0) /* or poll(2), with other fds: perfd_client_fd() */
                        return fail(client, "wait");
        }
        return r == PERFD_E_ENDED ? 0 : fail(client, "stream");
}

int main(void) {
        const char *path = getenv("PERFD_SOCKET");
        perfd_client *client = perfd_client_new("example");
        int r = 1;

        if (client)
                r = watch(client, path ? path : "/run/perfd/stream.sock");
        perfd_client_free(client);
        return r;
}
