/*
 * For the supervisor: the state that a service manager is told, as sd_notify(3) does, but never waited for. What it does not take
 * now is said later, in the same order. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

typedef struct Supervisor Supervisor;

#define UNTOLD_MAX 6 /* two reloads: a state that is older is of no use to anybody */

typedef struct Untold {
        sd_event_source *source; /* off while there is nothing */
        char *states[UNTOLD_MAX];
        size_t n;
        bool has_status; /* the last STATUS= was one, and stands until it is taken back */
} Untold;

int supervisor_start_notify(Supervisor *s);
void supervisor_stop_notify(Supervisor *s);
void supervisor_notify(Supervisor *s, const char *state);
/* What `systemctl status` shows, one line; NULL: nothing any more. */
void supervisor_notify_status(Supervisor *s, const char *text);
