/* For this folder and recorded/: which event an id is of. */
#pragma once

#include "client/recording/reading.h"

/* Before a record whose event may be looked for: what is the same in all of them, if events have come since. 0; -ENOMEM with a text */
int ids_build(perfd_recording *r);
/* NULL: no event has that id. */
const Event *ids_find(const perfd_recording *r, uint64_t id);
