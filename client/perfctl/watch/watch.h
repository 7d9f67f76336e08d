/* For `watch`: a subscription printed until it ends. */
#pragma once

#include "client/perfctl/item/columns.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/time-text.h"

typedef struct WatchOptions {
        perfd_subscription subscription;
        uint64_t count;    /* items to print; 0: no limit */
        uint64_t duration; /* ns; 0: no limit */
        TimeForm time;     /* of lines for people */
        ItemColumns columns;
        bool raw;
        bool has_names;  /* of the frames of callchains */
        bool has_tables; /* always print the closing ledger */
        bool may_lose;   /* what was lost is told, and is no failure */
} WatchOptions;

/* On a client that is connected. An exit status. */
int watch_run(Perfctl *p, const WatchOptions *options);
/* Prints Perfctl.gap instead, of a host that is away to the end. */
int watch_print_gap(Perfctl *p, const WatchOptions *options);
