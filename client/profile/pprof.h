/* The format of pprof: gzip of a protobuf (profile.proto). */
#pragma once

#include <stdio.h>

#include "client/profile/profile.h"

/*
 * All values of a profile: a sample for each stack of a thread, whose labels are thread (its comm), pid, tid and container; a location
 * for each frame, with a line for each function that was inlined there; a mapping for each dso and build id, that of the first program first; the period of the last value. Bytes of names that are no UTF-8 are U+EF80 to U+EFFF, as in JSON.
 * 0; PROFILE_E_OVERFLOW if a sum has more than the 63 bits that it may have there; a negative errno of memory or of the file.
 */
int pprof_write(FILE *out, const Profile *p);
