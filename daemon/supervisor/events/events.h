/* What is registered. Main thread only. */
#pragma once

#include "daemon/base/index.h"
#include "daemon/control/control.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/events/pending.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/readers/readers.h"

#define MAX_EVENTS 10000

typedef struct Events {
        Settings *settings;
        Host *host;
        Operations *operations;
        Readers *readers;
        Control *control; /* its connections take fds too */

        Registration *registrations, *last_registration;
        size_t n_registrations;
        Index registered_names, registered_ids;
        uint64_t last_position;
        uint32_t last_event_id;
        PendingEvents pending;
        struct UidCharge *charges; /* supervisor/events/charges.c */
        TaskFamilies families;     /* of targets that are processes */
        nsec_t families_age;       /* how old they may be; 0 but for a look behind which another one follows */
        char *self_filter; /* excludes our threads in the kernel's filter language; NULL: the reader does it */
} Events;
