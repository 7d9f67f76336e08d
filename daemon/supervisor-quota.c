/*
 * What the clients of one uid make perfd hold in events and their fds, counted anew for each question: adding is rare, and a
 * sum that is kept beside what it counts could be wrong. Root's clients are not limited, who may raise every limit, and
 * neither is the configuration.
 */
#include "daemon/supervisor-quota.h"

typedef struct Held {
        size_t n_events, n_fds;
} Held;

/* Those of a change in its middle are not the client's, and those of a cgroup that is gone are about to be closed. */
static size_t count_fds(const Registration *g) {
        size_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += !g->opened.streams[i].leaves;
        return n;
}

static Held count_held(const Supervisor *s, uint32_t uid) {
        Held held = { .n_events = 0 };

        for (const Registration *g = s->registrations; g; g = g->next)
                if (g->event->spec.has_uid && g->event->spec.uid == uid) {
                        held.n_events++;
                        held.n_fds += count_fds(g);
                }
        for (const WaitingEvent *w = s->waiting; w; w = w->next)
                held.n_events += w->spec->added_by_case == PERFD__V1__EVENT_SPEC__ADDED_BY_UID && w->spec->uid == uid;
        return held;
}

static bool is_limited(const Registration *g) {
        return g->event->spec.has_uid && g->event->spec.uid != 0;
}

int supervisor_check_fd_quota(const Supervisor *s, const Registration *g, size_t n_fds, Explanation *e) {
        uint64_t most = s->config->fds_per_uid;
        Held held;

        if (!is_limited(g))
                return 0;
        held = count_held(s, g->event->spec.uid);
        if (held.n_fds <= most && n_fds <= most - held.n_fds)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "%s needs %zu fds (tasks or cgroups times CPUs times members): the events of uid %u have %zu, and fds.per-uid "
                      "allows %llu; trace fewer tasks, CPUs or events, remove some, or let the configuration have them or raise "
                      "the limit", g->event->spec.name, n_fds, (unsigned)g->event->spec.uid, held.n_fds,
                      (unsigned long long)most);
}

int supervisor_check_quota(Supervisor *s, const Registration *list, Explanation *e) {
        uint64_t most = s->config->events_per_uid;
        size_t n = 0, n_fds = 0;
        Held held;
        int r;

        if (!list || !is_limited(list))
                return 0;
        for (const Registration *g = list; g; g = g->next)
                n++;
        held = count_held(s, list->event->spec.uid);
        if (held.n_events + n > most)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-events",
                              "%zu more events: uid %u has added %zu, and events.per-uid allows %llu; remove some, or let the "
                              "configuration have them or raise the limit", n, (unsigned)list->event->spec.uid, held.n_events,
                              (unsigned long long)most);
        r = supervisor_count_room(s, list, &n_fds, e);
        return r == 0 ? supervisor_check_fd_quota(s, list, n_fds, e) : r;
}
