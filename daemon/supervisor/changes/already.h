/* For an addition: which of the events that are asked for run already, and are not added once more. */
#pragma once

#include "daemon/supervisor/changes/changes.h"

typedef struct AlreadyEvent {
        Registration *event;
        size_t asked; /* Registration.asked of what it is instead of */
        bool is_new_holder; /* who asks holds it from now on, and has not before */
        bool is_told; /* a glob meant it: for people it is worth to be known */
} AlreadyEvent;

typedef struct Already {
        AlreadyEvent *events; /* in the order of the request */
        size_t n;
} Already;

#define ALREADY_NULL ((Already){ .events = NULL })

/*
 * Takes out of a list that is not registered what runs so: of globs, and with adding->is_shared temporary events that are equal.
 * They stay as they are; of temporary ones who asks becomes a holder, charged at once. Refused: his quota has no room. -ENOMEM.
 */
int already_take(Events *s, Registration **list, const AddOptions *adding, Already *a, Explanation *e);
/* Both as one, in the order of the request. -ENOMEM */
int already_refs(const Already *a, const Registration *list, EventRefs *refs);
/* Nothing is added: who asks holds them as before. */
void already_undo(Already *a, Operations *o, uint64_t connection);
/* For people, as the text of `e`: no error, but what was not added. */
void already_note(const Already *a, Explanation *e);
void already_deinit(Already *a);
