/*
 * Changes of uids, which the kernel reports by a socket beside the rings (kernel/task/uid-socket.h). When a sample has come, the
 * reports that are older than it are in the socket. So the socket is read whenever batches have come, before they are used, and
 * a report waits until the merge has released what is older than it. What is released at a moment thus has the uid of that moment,
 * whichever CPU, and however long the process lives.
 *
 * A full socket says so once (ENOBUFS), and the kernel then drops every report until the socket is empty (netlink_broadcast_deliver(),
 * NETLINK_S_CONGESTED) without another word. What is in the socket is older than what was dropped. So a loss lasts until the socket has
 * been read to its end, and what was told of that time is in doubt, also what is told of it later: a report that waits for the merge, or
 * the fork of a child.
 */
#include "daemon/dispatcher/cycle.h"

#include "daemon/kernel/task/uid-socket.h"

/* Some were lost: what is described from now on is looked up first. */
static void dispatcher_doubt_uids(Dispatcher *d, nsec_t until) {
        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                task_table_doubt_uids(&d->tasks[order], until);
}

int dispatcher_hear_uids(Dispatcher *d) {
        const bool was_behind = d->uids_are_behind;
        bool has_lost = was_behind;
        UidChange change;
        int r = 0, heard = 0;

        if (!d->uid_socket)
                return 0;
        for (size_t i = 0; i < UID_CHANGES_MAX && r == 0 && heard != UID_SOCKET_E_END; i++) {
                heard = uid_socket_read(*d->uid_socket, d->clock, &change);
                if (heard == 0)
                        r = task_table_set_uid(&d->tasks[STREAM_BY_CPU], change.time, change.pid, change.uid);
                if (heard == UID_SOCKET_E_LOST || (heard == 0 && !uid_changes_add(&d->uids, change)))
                        has_lost = true;
        }
        d->uids_are_behind = heard != UID_SOCKET_E_END; /* they come as fast as they are read: samples do not wait for that */
        if (has_lost && !d->uids_are_behind)
                dispatcher_doubt_uids(d, clock_now(d->clock));
        else if (d->uids_are_behind && !was_behind)
                dispatcher_doubt_uids(d, UINT64_MAX);
        return r;
}

/* The merge has no way back: a change that came late applies at once. */
nsec_t dispatcher_until_uid(Dispatcher *d, nsec_t until) {
        nsec_t next;

        if (uid_changes_next(&d->uids, &next) && next < until)
                until = next > d->merged_until ? next : d->merged_until < until ? d->merged_until : until;
        if (until > d->merged_until)
                d->merged_until = until;
        return until;
}

int dispatcher_apply_uids(Dispatcher *d, nsec_t until) {
        UidChange change;
        int r = 0;

        while (r == 0 && uid_changes_take(&d->uids, until, &change))
                r = task_table_set_uid(&d->tasks[STREAM_BY_TIME], change.time, change.pid, change.uid);
        return r;
}
