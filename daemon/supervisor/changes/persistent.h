/* Persistent events, which outlive the daemon: the state file. Main thread only. */
#pragma once

#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/changes/changes.h"

/* Before any change that may concern one of them: */
typedef struct PersistentChange {
        const Registration *added;  /* persistent events that are about to be registered: a list */
        NamePatterns patterns;      /* borrowed; of a removal: pending events that they select go too */
        Registration *const *subjects; /* what happens to them: */
        size_t n_subjects;
        bool removed;
        const bool *enabled;   /* or NULL */
        const EventSpec *spec; /* of the only one; or NULL */
} PersistentChange;

/*
 * The file as it will be, if it will be another one, or is not as it should be. Refused "state-file": as it was. What only lets go of
 * something is not refused for it: `e` says that it is not stored, and perfd tries again.
 */
int persistent_write(Changes *s, const PersistentChange *change, Explanation *e);
/* At a start: those that have the name of a configured event go, from the file too, which the log says. Negative: fatal. */
int persistent_drop_configured(Changes *s);
/* The timer by which perfd tries again; free: also what the text says. */
int persistent_start(Changes *s);
void persistent_free(Changes *s);
/* The change was refused after that (`added` may be gone but not NULL): the file as it is now. */
int persistent_restore(Changes *s, const PersistentChange *change);
/* The change is done: what it says of those that are pending, configured ones too. */
void persistent_forget_pending(Changes *s, const PersistentChange *change);
