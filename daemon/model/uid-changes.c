#include "daemon/model/uid-changes.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

static bool make_room(UidChanges *c) {
        size_t room = c->room ? 2 * c->room : FIRST_ROOM;
        UidChange *more;

        if (c->first > c->room / 2 || c->room == UID_CHANGES_MAX) {
                memmove(c->list, c->list + c->first, (c->n - c->first) * sizeof(*c->list));
                c->n -= c->first;
                c->first = 0;
                return c->n < c->room;
        }
        more = reallocarray(c->list, room, sizeof(*more));
        if (!more)
                return false;
        c->list = more;
        c->room = room;
        return true;
}

/* Those of several CPUs are nearly in order when they come. */
bool uid_changes_add(UidChanges *c, UidChange change) {
        size_t at;

        if (c->n == c->room && !make_room(c))
                return false;
        for (at = c->n; at > c->first && c->list[at - 1].time > change.time; at--)
                c->list[at] = c->list[at - 1];
        c->list[at] = change;
        c->n++;
        return true;
}

bool uid_changes_take(UidChanges *c, nsec_t until, UidChange *ret) {
        if (c->first == c->n || c->list[c->first].time > until)
                return false;
        *ret = c->list[c->first++];
        if (c->first == c->n)
                c->first = c->n = 0;
        return true;
}

void uid_changes_deinit(UidChanges *c) {
        free(c->list);
        *c = (UidChanges){ .list = NULL };
}
