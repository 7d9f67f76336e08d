/*
 * What the clients of one uid make perfd hold in events and their fds, counted again for each question: adding is rare, and a
 * sum that is kept beside what it counts could be wrong. Root's clients are not limited, who may raise every limit, and
 * neither is the configuration.
 */
#include "daemon/supervisor/events/quota.h"

#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/room.h"

#define TRIAL_CLOSING_MAX 128 /* fds of trials: the last close of a tracepoint takes tens of ms (closer.h), and who stops waits for all */
#define TRIAL_WAIT_USEC 20000
/* in a second, of one uid: each takes 2 to 4 us of a reader if no child inherits it; model/read-budget.h bounds what they take */
#define READS_PER_CPU 10000

typedef struct Held {
        size_t n_events, n_fds; /* fds that are being closed, or kept for a reader, are among them */
        uint64_t reads; /* of counters, in 1,000 s */
} Held;

/* Those of a change in its middle are not the client's, and those of a cgroup that is gone are about to be closed. */
static size_t count_fds(const Registration *g) {
        size_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += !g->opened.fds[i].leaves;
        return n;
}

static Held count_held(const Events *s, uint32_t uid) {
        Held held = { .n_fds = events_charged_fds(s, uid) };

        for (const Registration *g = s->registrations; g; g = g->next)
                if (registration_is_charged(g, uid)) {
                        held.n_events++;
                        held.n_fds += count_fds(g);
                        held.reads += events_count_reads(g, count_fds(g));
                }
        for (const PendingEvent *w = s->pending.first; w; w = w->next)
                held.n_events += w->spec->added_by_case == PERFD__V1__EVENT_SPEC__ADDED_BY_UID && w->spec->uid == uid;
        return held;
}

/* 0: it is not limited. Of several holders it is the first whose room its growth needs. */
static uint32_t limited_uid(const Registration *g) {
        uint32_t uid;

        return registration_has_uid(g, &uid) ? uid : 0;
}

static int check_fds_of(const Events *s, uint32_t uid, const char *what, size_t n_fds, Explanation *e) {
        uint64_t most = s->settings->config->fds_per_uid;
        Held held = count_held(s, uid);

        if (held.n_fds <= most && n_fds <= most - held.n_fds)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "%s needs %zu fds (tasks or cgroups times CPUs times members): the events of uid %u have %zu, including "
                      "those being closed, and fds.per-uid allows %llu; trace fewer tasks, CPUs or events, remove some, move "
                      "them to the configuration, or raise the limit", what, n_fds, (unsigned)uid, held.n_fds,
                      (unsigned long long)most);
}

static int check_reads_of(const Events *s, uint32_t uid, const char *what, uint64_t reads, Explanation *e) {
        const uint64_t most = READS_PER_CPU * (uint64_t)readers_count_online(s->readers) * 1000;
        uint64_t held = reads > 0 ? count_held(s, uid).reads : 0;

        if (reads == 0 || (held <= most && reads <= most - held))
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-reads",
                      "the counters of %s would be read %llu times a second (fds by interval), those of uid %u are read %llu times, and "
                      "%llu is the limit of a uid on these CPUs: set a longer interval, or count fewer events, tasks or CPUs", what,
                      (unsigned long long)reads / 1000, (unsigned)uid, (unsigned long long)held / 1000,
                      (unsigned long long)most / 1000);
}

int events_check_fd_quota(const Events *s, const Registration *g, size_t n_fds, Explanation *e) {
        const char *name = g->event->spec.name;
        const uint32_t uid = limited_uid(g);
        int r = uid != 0 ? check_fds_of(s, uid, name, n_fds, e) : 0;

        return r == 0 && uid != 0 ? check_reads_of(s, uid, name, events_count_reads(g, n_fds), e) : r;
}

static int check_events_of(const Events *s, uint32_t uid, size_t n, Explanation *e) {
        uint64_t most = s->settings->config->events_per_uid;
        size_t n_held = count_held(s, uid).n_events;

        if (n_held <= most && n <= most - n_held)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-events",
                      "%zu more events: uid %u has added %zu, and events.per-uid allows %llu; remove some, move them to "
                      "the configuration, or raise the limit", n, (unsigned)uid, n_held, (unsigned long long)most);
}

int events_check_share_quota(const Events *s, const Registration *g, uint32_t uid, Explanation *e) {
        const char *name = g->event->spec.name;
        int r;

        if (uid == 0 || registration_is_charged(g, uid))
                return 0;
        r = check_events_of(s, uid, 1, e);
        if (r == 0)
                r = check_fds_of(s, uid, name, count_fds(g), e);
        return r == 0 ? check_reads_of(s, uid, name, events_count_reads(g, count_fds(g)), e) : r;
}

int events_check_quota(Events *s, const Registration *list, Explanation *e) {
        const uint32_t uid = list ? limited_uid(list) : 0;
        size_t n = 0, n_fds = 0;
        Room need;
        int r;

        if (uid == 0)
                return 0;
        for (const Registration *g = list; g; g = g->next)
                n++;
        r = check_events_of(s, uid, n, e);
        if (r != 0)
                return r;
        for (const Registration *g = list; g; g = g->next) /* before any of these processes is looked at */
                n_fds += (g->event->spec.n_pids + g->event->spec.n_tids) * g->plan.n_attrs;
        r = check_fds_of(s, uid, list->event->spec.name, n_fds, e);
        if (r == 0)
                r = events_count_room(s, list, &need, e);
        if (r == 0)
                r = check_fds_of(s, uid, list->event->spec.name, need.n_fds, e);
        return r == 0 ? check_reads_of(s, uid, list->next ? "these events" : list->event->spec.name, need.reads, e) : r;
}

int events_check_trial_quota(const Events *s, const char *what, size_t n_fds, Explanation *e) {
        uint32_t uid = events_charged_uid(s);

        return uid != 0 ? check_fds_of(s, uid, what, n_fds, e) : 0;
}

static int wait_for_closer(Events *s, uint32_t uid, size_t n_fds, Explanation *e) {
        const Closer *c = s->operations->closer;
        int r = 0;

        while (r == 0 && (atomic_load_explicit(&c->n_urgent, memory_order_relaxed) > TRIAL_CLOSING_MAX ||
                          (uid != 0 && *events_closing_of(s, uid) > 0 &&
                           count_held(s, uid).n_fds + n_fds > s->settings->config->fds_per_uid)))
                r = operations_wait(s->operations, TRIAL_WAIT_USEC, e);
        return r;
}

int events_wait_for_trial_room(Events *s, const char *what, size_t n_fds, Explanation *e) {
        uint32_t uid = events_charged_uid(s);
        int r;

        if (uid != 0 && !events_closing_of(s, uid))
                return error_origin(-ENOMEM);
        r = wait_for_closer(s, uid, n_fds, e);
        return r == 0 && uid != 0 ? check_fds_of(s, uid, what, n_fds, e) : r;
}
