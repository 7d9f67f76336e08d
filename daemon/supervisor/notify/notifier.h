/*
 * What a service manager is told of perfd's state, as sd_notify(3) does, but never waited for. What it does not take now is said
 * later, in the same order. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"

#define SERVICE_STATES_MAX 6 /* two reloads: a state that is older is of no use to anybody */

typedef struct Notifier {
        sd_event_source *source; /* off while nothing waits */
        char *waiting[SERVICE_STATES_MAX];
        size_t n_waiting;
        bool has_status; /* the last STATUS= was one, and stands until it is taken back */
} Notifier;

/* Negative */
int notifier_init(Notifier *n, sd_event *loop);
void notifier_deinit(Notifier *n);
void notifier_send(Notifier *n, const char *state);
/* What `systemctl status` shows, one line; NULL: nothing any more. */
void notifier_set_status(Notifier *n, const char *text);
/* Its watchdog, once. */
void notifier_feed(void);
/* The same while there is another bound to what main waits for; again and again. `fed`: when it was, at first 0. */
void notifier_feed_while_waiting(nsec_t *fed);
