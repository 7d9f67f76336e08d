/*
 * What a relay says of itself on perfd.HOST.status.MACHINE.BOOT: at once when it begins, when the state of a route changes and when it
 * ends, and every ten seconds. The relay's thread.
 */
#pragma once

#include "client/relay/publish/publishing.h"

/* `reason` of RelayStatus, by rank: of two that meet, the higher one is said. */
typedef enum StatusReason {
        STATUS_INTERVAL,
        STATUS_ROUTE,
        STATUS_START,
        STATUS_END,
} StatusReason;

/* -errno. */
int status_start(Publishing *p, Status **ret);
/* As soon as the one before is stored: never are two of them on their way. Takes NULL. */
void status_post(Status *s, StatusReason reason);
/* The message is one of these; it is taken. */
void status_take_stored(Status *s, Message *m);
/* STATUS_END was posted, and is stored. Takes NULL. */
bool status_is_done(const Status *s);
/* Takes NULL. */
void status_free(Status *s);
