/* The loop of main, and what it has of its own. Main thread only. */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/supervisor/notify/notifier.h"
#include "daemon/watchdog.h"

typedef struct Loop {
        int ready_fd;              /* -1: nobody waits */
        int exit_code;
        sd_event_source *feeding;  /* while a service manager watches */
        sd_event_source *goodbye;  /* off until perfd stops */
        Watchdog watchdog;
        Notifier notifier;
} Loop;
