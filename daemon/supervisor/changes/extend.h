/* Events that gain and lose fds while they run. Main thread only. */
#pragma once

#include "daemon/supervisor/changes/changes.h"

/*
 * supervisor/changes/extend.c: events that stay, while some of what they observe comes or goes. New fds of registrations, opened by
 * events_open_at() and disabled, move into them and are enabled where these are: all, or none. Streams of the same
 * registration that leave do so as the new ones become active. Refused: they stay in the list, disabled, and no reader knows
 * them; what leaves has not left.
 */
typedef struct FdDelta {
        Registration *registration; /* in one list only once */
        PerfFdSet more;
} FdDelta;

void fd_deltas_deinit(Changes *s, FdDelta *list, size_t n);
int changes_extend(Changes *s, FdDelta *list, size_t n, Explanation *e);
/* All at once or, if that is refused, one by one, and refused() is told of each that is. */
typedef void (*ExtensionRefused)(const Changes *s, const Registration *r, const Explanation *e, const void *userdata);
int changes_extend_each(Changes *s, FdDelta *list, size_t n, ExtensionRefused refused, const void *userdata);
/* Streams that leave, of all registrations, end; what they have counted stays in the ledger. Their readers are told. */
int changes_drop_leaving(Changes *s);
