/* A full queue is looked at again by time: it is rare, and to poll(2) for it would take an fd. */
#include "daemon/supervisor/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/supervisor/supervisor.h"

#define AGAIN_USEC 100000

static void forget_first(Untold *u) {
        free(u->states[0]);
        u->n--;
        memmove(u->states, u->states + 1, u->n * sizeof(*u->states));
}

static int come_again(Untold *u) {
        int r = error_origin(sd_event_source_set_time_relative(u->source, AGAIN_USEC));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(u->source, SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Supervisor *s = userdata;
        Untold *u = &s->untold;

        while (u->n > 0 && notify_send(u->states[0]))
                forget_first(u);
        return u->n > 0 ? come_again(u) : 0;
}

int supervisor_start_notify(Supervisor *s) {
        int r = error_origin(sd_event_add_time(s->event, &s->untold.source, CLOCK_MONOTONIC, 0, 0, on_again, s));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->untold.source, SD_EVENT_OFF));
        return r < 0 ? r : 0;
}

void supervisor_stop_notify(Supervisor *s) {
        while (s->untold.n > 0)
                forget_first(&s->untold);
        s->untold.source = sd_event_source_disable_unref(s->untold.source);
}

void supervisor_notify(Supervisor *s, const char *state) {
        Untold *u = &s->untold;
        char *copy;

        if (u->n == 0 && notify_send(state))
                return;
        if (u->n == 0)
                log_print(LOG_WARNING, MESSAGE_NOTIFY_UNREAD,
                          "the service manager does not read $NOTIFY_SOCKET: it is told the state of perfd when it does");
        if (u->n == UNTOLD_MAX)
                forget_first(u);
        copy = strdup(state);
        if (copy)
                u->states[u->n++] = copy;
        if (!copy || come_again(u) < 0)
                log_print(LOG_ERR, MESSAGE_NO_MEMORY, "the service manager is not told \"%s\": no memory", state);
}

void supervisor_notify_status(Supervisor *s, const char *text) {
        char state[640];

        if (!text && !s->untold.has_status)
                return;
        s->untold.has_status = text;
        (void)snprintf(state, sizeof(state), "STATUS=%s", text ? text : "");
        supervisor_notify(s, state);
}
