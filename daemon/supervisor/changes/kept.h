/* Events that outlive the daemon. Main thread only. */
#pragma once

#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/changes/changes.h"

/* Before any change that may concern one of them: */
typedef struct KeptChange {
        const Registration *added;  /* to be kept, a list that is about to be registered */
        NamePatterns patterns;      /* borrowed; of a removal: what waits and is selected goes too */
        Registration *const *subjects; /* what happens to them: */
        size_t n_subjects;
        bool removed;
        const bool *enabled;   /* or NULL */
        const EventSpec *spec; /* of the only one; or NULL */
} KeptChange;

/* The file as it will be, if it will be another one. Refused "state-file": as it was. */
int kept_write(Changes *s, const KeptChange *change, Explanation *e);
/* The change was refused after that (`added` may be gone but not NULL): the file as it is now. */
int kept_restore(Changes *s, const KeptChange *change);
/* The change is done: what it says of those that are pending, configured ones too. */
void kept_forget_pending(Changes *s, const KeptChange *change);
