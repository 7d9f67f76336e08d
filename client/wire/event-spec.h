/* For the library: an event's spec, from the caller's structure to the wire and back. */
#pragma once

#include "client/perfd.h"
#include "client/wire/arena.h"
#include "proto/perfd.pb-c.h"

typedef struct WireSpec {
        Perfd__V1__EventSpec message;
        Perfd__V1__Target target;
} WireSpec;

/*
 * Strings stay the caller's; what has to be taken apart is the arena's. -ENOMEM; PERFD_E_INVALID: *ret_wrong is a setting
 * without '=' or a field without ':'.
 */
int spec_encode(const perfd_event_spec *spec, Arena *arena, WireSpec *ret, const char **ret_wrong);
/* The image of a message, which has to live as long. NULL: no memory. */
const perfd_event_spec *spec_decode(const Perfd__V1__EventSpec *message, Arena *arena);
