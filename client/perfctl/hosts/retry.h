/*
 * When a host whose stream was lost is tried again: after a quarter of a second, then each time after twice as long, up to half a
 * minute; each of these is shortened by chance by up to a half, so that many who have lost the same host do not come back as one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/perfd.h"

#define HOST_RETRY_FIRST UINT64_C(250000000) /* ns */
#define HOST_RETRY_MAX UINT64_C(30000000000) /* ns; a stream that has lasted for longer begins with the first one again */

typedef struct HostRetry {
        uint64_t wait; /* ns: the one before; 0: there was none */
} HostRetry;

/* ns until the next attempt; `chance` is any number. */
uint64_t host_retry_next(HostRetry *r, uint64_t chance);
/* Before a stream is tried again that has lasted for so many ns. */
void host_retry_lasted(HostRetry *r, uint64_t lasted);

/* Whether what has failed may pass by itself; else it is refused at each attempt. */
bool host_error_may_pass(const perfd_error *e);
