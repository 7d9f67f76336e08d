/* A full queue is looked at again by time: it is rare, and to poll(2) for it would take an fd. */
#include "daemon/supervisor/notify/notifier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"

#define AGAIN_USEC 100000

static void forget_first(Notifier *n) {
        free(n->waiting[0]);
        n->n_waiting--;
        memmove(n->waiting, n->waiting + 1, n->n_waiting * sizeof(*n->waiting));
}

static int come_again(Notifier *n) {
        int r = error_origin(sd_event_source_set_time_relative(n->source, AGAIN_USEC));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(n->source, SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Notifier *n = userdata;

        while (n->n_waiting > 0 && notify_send(n->waiting[0]))
                forget_first(n);
        return n->n_waiting > 0 ? come_again(n) : 0;
}

int notifier_init(Notifier *n, sd_event *loop) {
        int r = error_origin(sd_event_add_time(loop, &n->source, CLOCK_MONOTONIC, 0, 0, on_again, n));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(n->source, SD_EVENT_OFF));
        return r < 0 ? r : 0;
}

void notifier_deinit(Notifier *n) {
        while (n->n_waiting > 0)
                forget_first(n);
        n->source = sd_event_source_disable_unref(n->source);
}

void notifier_send(Notifier *n, const char *state) {
        char *copy;

        if (n->n_waiting == 0 && notify_send(state))
                return;
        if (n->n_waiting == 0)
                log_print(LOG_WARNING, MESSAGE_NOTIFY_UNREAD,
                          "the service manager does not read $NOTIFY_SOCKET: perfd sends its state when it does");
        if (n->n_waiting == SERVICE_STATES_MAX)
                forget_first(n);
        copy = strdup(state);
        if (copy)
                n->waiting[n->n_waiting++] = copy;
        if (!copy || come_again(n) < 0)
                log_print(LOG_ERR, MESSAGE_NO_MEMORY, "the service manager is not notified of \"%s\": no memory", state);
}

void notifier_set_status(Notifier *n, const char *text) {
        char state[640];

        if (!text && !n->has_status)
                return;
        n->has_status = text;
        (void)snprintf(state, sizeof(state), "STATUS=%s", text ? text : "");
        notifier_send(n, state);
}

void notifier_feed(void) {
        (void)notify_send("WATCHDOG=1"); /* not taken: there is a next time */
}

void notifier_feed_while_waiting(nsec_t *fed) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        if (now < *fed + NSEC_PER_SEC)
                return;
        *fed = now;
        notifier_feed();
}
