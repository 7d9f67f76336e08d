/*
 * Who may have a connection. There are two kinds of places, and neither takes those of the other: for the sockets that may
 * change something, and for those that may not. So whatever clients of the stream socket do, perfctl of an administrator has a
 * place; and root has one more, however many others have.
 *
 * The decision to doubt is that connections end that nothing is wrong with, but only where all places are taken, so that somebody
 * else would have none. The one that was idle for longest goes: on the control socket, of the same uid, and for root of anybody;
 * on the stream socket of the uid that has most, if that has at least two more than who comes, so that two uids never take a
 * place from each other in turn. Where nobody has so many, as one person can have as many uids as there are places, who has none
 * gets the place of one that is idle, and root one more, also if none is. Streams are no connections any more, and are never touched; nor is what events end with; nor,
 * however many come, one that perfd owes an answer.
 *
 * Many clients that start at once are silent for a moment each, between one answer and the next request, for as long as the
 * machine is busy with the others. So idle is who is silent for longer. Root needs nobody to be, as it has as many more places as
 * there are fds; only where these end too it waits for one. On the stream socket others than those of the uid that has most would
 * find no place, so one of that goes before, if it owes perfd the next word.
 */
#include "daemon/control/listener.h"

#include "daemon/base/fd-limit.h"

#define SCARCE_MOST (FD_RESERVE / 2) /* connections in the reserve; the rest is for files that are open for a moment */

typedef bool (*MayEnd)(const Connection *c);

static unsigned count(const Control *c, bool may_change, const uid_t *uid) {
        unsigned n = 0;

        for (const Connection *i = c->connections; i; i = connection_next(i)) {
                const Peer *p = connection_peer(i);

                n += p->may_change == may_change && (!uid || p->uid == *uid);
        }
        return n;
}

static unsigned count_scarce(const Control *c) {
        unsigned n = 0;

        for (const Connection *i = c->connections; i; i = connection_next(i))
                n += connection_is_scarce(i);
        return n;
}

static Connection *find_idlest(const Control *c, bool may_change, const uid_t *uid, MayEnd may_end) {
        Connection *idlest = NULL;

        for (Connection *i = c->connections; i; i = connection_next(i)) {
                const Peer *p = connection_peer(i);

                if (p->may_change == may_change && (!uid || p->uid == *uid) && may_end(i) &&
                    (!idlest || connection_since(i) <= connection_since(idlest)))
                        idlest = i;
        }
        return idlest;
}

/* False: there is none of these. */
static bool end_idlest(const Control *c, bool may_change, const uid_t *uid, MayEnd may_end) {
        Connection *idlest = find_idlest(c, may_change, uid, may_end);

        if (idlest)
                connection_end(idlest, "idle", "all connections were in use, and this one was idle for longest: connect again");
        return idlest;
}

/* Idle, or if none is, one that perfd waits for. */
static bool end_any(const Control *c, bool may_change, const uid_t *uid) {
        return end_idlest(c, may_change, uid, connection_is_idle) || end_idlest(c, may_change, uid, connection_may_end);
}

bool control_end_idlest_changer(Control *c) {
        return end_any(c, true, NULL);
}

bool control_is_busy(const Control *c) {
        return count_scarce(c) >= SCARCE_MOST && !find_idlest(c, true, NULL, connection_is_idle);
}

static int compare_uids(const void *a, const void *b) {
        uid_t x = *(const uid_t *)a, y = *(const uid_t *)b;

        return (x > y) - (x < y);
}

/* Who has most of the connections that may not change anything, and how many. 0: nobody has any, or there is no memory. */
static unsigned find_most(const Control *c, uid_t *ret_uid) {
        _cleanup_free_ uid_t *uids = calloc(c->n_connections + 1, sizeof(*uids));
        unsigned n = 0, most = 0;

        for (const Connection *i = c->connections; uids && i; i = connection_next(i))
                if (!connection_peer(i)->may_change)
                        uids[n++] = connection_peer(i)->uid;
        if (n > 0)
                qsort(uids, n, sizeof(*uids), compare_uids);
        for (unsigned i = 0, run = 0; i < n; i++) {
                run = i > 0 && uids[i] == uids[i - 1] ? run + 1 : 1;
                if (run > most) {
                        most = run;
                        *ret_uid = uids[i];
                }
        }
        return most;
}

static int refuse_many(unsigned n, const char *what, const char *setting, Explanation *e) {
        return refuse(e, REFUSED_EXHAUSTED, "too-many-connections",
                      "perfd has %u connections %s, which is the limit: close some, or raise %s (and LimitNOFILE=, if fds are "
                      "short)",
                      n, what, setting);
}

static int admit_changer(Control *c, const Peer *peer, bool is_scarce, Explanation *e) {
        const unsigned most = c->limits.changers, most_of_uid = most > 1 ? most / 2 : 1;

        if (peer->uid == 0) { /* whoever is idle has to go for it, and if nobody is, one more */
                if (is_scarce && count_scarce(c) >= SCARCE_MOST)
                        (void)end_any(c, true, NULL);
                else if (count(c, true, NULL) >= most)
                        (void)end_idlest(c, true, NULL, connection_is_idle);
                return 0;
        }
        if (is_scarce)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "perfd has no fd left for this connection: raise "
                        "LimitNOFILE= (RLIMIT_NOFILE), trace less, or close connections");
        if (count(c, true, &peer->uid) >= most_of_uid && !end_idlest(c, true, &peer->uid, connection_is_idle))
                return refuse_many(most_of_uid, "of your uid on this socket", "connections.control, half of which is for one "
                        "uid", e);
        if (count(c, true, NULL) >= most && !end_idlest(c, true, &peer->uid, connection_is_idle))
                return refuse_many(most, "in all on this socket", "connections.control", e);
        return 0;
}

/* On the stream socket. False: nobody ends for this one. */
static bool make_place(Control *c, const Peer *peer, unsigned own) {
        uid_t uid;

        if (find_most(c, &uid) >= own + 2 && end_any(c, false, &uid))
                return true;
        return (own == 0 || peer->uid == 0) && end_idlest(c, false, NULL, connection_is_idle);
}

int control_admit(Control *c, const Peer *peer, bool is_scarce, Explanation *e) {
        unsigned own, all, most;

        if (peer->may_change)
                return admit_changer(c, peer, is_scarce, e);
        if (is_scarce)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "perfd has no fd left for this connection: raise "
                        "LimitNOFILE= (RLIMIT_NOFILE), trace less, or close connections");
        own = count(c, false, &peer->uid);
        if (own >= c->limits.connections_per_uid)
                return refuse_many(c->limits.connections_per_uid, "of your uid", "connections.per-uid", e);
        all = count(c, false, NULL);
        most = c->limits.connections;
        if (c->limits.sockets && all + c->n_given >= c->limits.sockets && all < most)
                most = all; /* streams have the other places */
        if (all >= most && !make_place(c, peer, own) && peer->uid != 0)
                return refuse_many(most, "in all", "connections.max", e);
        return 0;
}
