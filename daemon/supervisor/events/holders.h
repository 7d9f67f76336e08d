/*
 * For the supervisor: whom a temporary event lives for. Several connections may hold one event, each as if it had added it; it is
 * removed when the last of them is gone. Nothing of it changes when one leaves, so that no sample is lost. Main thread only.
 */
#pragma once

#include "daemon/supervisor/events/registration.h"

/* Once for each connection. ret_is_new: it was none. -ENOMEM */
int holders_add(Registration *g, uint64_t connection, uint32_t uid, bool *ret_is_new);
/* False: it was none. */
bool holders_remove(Registration *g, uint64_t connection);
bool holders_have(const Registration *g, uint64_t connection);
/* It is temporary, and nobody's any more. */
bool registration_is_orphan(const Registration *g);

/* A client has added it: `uid` is of the holder that has been there for longest, or of who added it. */
bool registration_has_uid(const Registration *g, uint32_t *ret_uid);
/* It counts for the quota of this uid: for that of each of its holders, because it may be left to any of them. */
bool registration_is_charged(const Registration *g, uint32_t uid);
