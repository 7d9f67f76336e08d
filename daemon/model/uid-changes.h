/*
 * For the dispatcher: changes of uids that the kernel has told, in the order of time, until what is as old as they are is
 * released. They come beside the rings, and ahead of the samples that they are about.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"

#define UID_CHANGES_MAX ((size_t)65536)

typedef struct UidChange {
        nsec_t time; /* of the stream's clock */
        uint32_t pid, uid;
} UidChange;

typedef struct UidChanges {
        UidChange *list; /* sorted from `first` on */
        size_t first, n, room;
} UidChanges;

void uid_changes_deinit(UidChanges *c);
/* False: there are too many, or there is no memory. */
bool uid_changes_add(UidChanges *c, UidChange change);
/* The oldest one that is not younger than `until`, which is taken out. */
bool uid_changes_take(UidChanges *c, nsec_t until, UidChange *ret);
static inline bool uid_changes_next(const UidChanges *c, nsec_t *ret_time) {
        if (c->first == c->n)
                return false;
        *ret_time = c->list[c->first].time;
        return true;
}
