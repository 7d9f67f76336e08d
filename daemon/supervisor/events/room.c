/* Before anything is opened: does it fit? */
#include "daemon/supervisor/events/room.h"

#include <stdio.h>

#include "daemon/base/fd-limit.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/targets.h"

size_t events_own_fds(size_t n_cpus) {
        return 64 + 4 * n_cpus; /* sockets, files that are open for a moment; carrier, moves, mailbox and timer of each CPU */
}

size_t events_count_fds(const Events *s) {
        size_t n = 0;

        for (size_t slot = 0; slot < s->readers->n_cpus; slot++)
                n += s->readers->online[slot];
        for (const Registration *r = s->registrations; r; r = r->next)
                n += r->opened.n + r->pending.n;
        return n;
}

int events_check_fds(const Events *s, const char *what, size_t need, Explanation *e) {
        const size_t n_closing = atomic_load_explicit(&s->operations->closer->n_pending, memory_order_relaxed);
        const uint64_t limit = fd_limit();
        char closing[80] = "";
        size_t have = events_count_fds(s) + s->control->n_connections + s->readers->n_subscribers +
                      s->readers->n_pools + events_own_fds(s->readers->n_cpus) + s->readers->answering.n_fds + n_closing;

        if (have + need <= limit)
                return 0;
        if (n_closing > 0)
                (void)snprintf(closing, sizeof(closing), ", %zu that are being closed will follow: try again", n_closing);
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "%s needs %zu fds (tasks or cgroups times CPUs times members), and %zu of perfd's %llu are left%s; raise "
                      "LimitNOFILE= (RLIMIT_NOFILE), or trace fewer tasks, CPUs or events", what, need,
                      have < limit ? (size_t)limit - have : 0, (unsigned long long)limit, closing);
}

static int check_least(Events *s, const Registration *g, size_t least, Explanation *e) {
        int r = least > 0 ? events_check_fds(s, g->event->spec.name, least, e) : 0;

        if (r != 0 || least == 0)
                return r;
        if (!operations_is_trial(s->operations)) /* a persistent event was within the quota when it was added */
                return events_charged_uid(s) == g->event->spec.uid ? events_check_fd_quota(s, g, least, e) : 0;
        s->operations->n_planned += least; /* nothing of it stays open: it is the looking that is charged */
        return events_check_trial_quota(s, g->event->spec.name, s->operations->n_planned, e);
}

static int count_needed(Events *s, const Registration *g, size_t *ret, Explanation *e) {
        _cleanup_(target_set_deinit) TargetSet targets = TARGET_SET_NULL;
        _cleanup_(own_tasks_deinit) OwnTasks own = OWN_TASKS_NULL;
        const EventSpec *spec = &g->event->spec;
        _cleanup_free_ uint32_t *slots = NULL;
        size_t n_slots = 0;
        int r = events_find_slots(s, g, &slots, &n_slots, e);

        if (r == 0) /* before a million processes are looked at: each that is there has one thread at least */
                r = check_least(s, g, (spec->n_pids + spec->n_tids) * n_slots * g->plan.n_attrs, e);
        if (r == 0) /* what is not the client's is refused before what would be too much of it */
                r = own_find_targets(s, g, &targets, &own, e);
        if (r != 0)
                return r;
        if (targets.n_duplicates > 0)
                notes_add_nested(&s->operations->notes, spec->name, targets.n_duplicates);
        *ret = targets.n * n_slots * g->plan.n_attrs;
        return 0;
}

uint64_t events_count_reads(const Registration *g, size_t n_fds) {
        const uint64_t interval = g->event->spec.interval;

        return interval > 0 ? n_fds * (1000 * NSEC_PER_SEC / interval) : 0;
}

int events_count_room(Events *s, const Registration *list, Room *ret, Explanation *e) {
        Room need = { .n_fds = 0 };
        size_t one = 0;

        for (const Registration *g = list, *before = NULL; g; before = g, g = g->next) {
                /* the matches of a glob have one target: who is in it is looked up once */
                bool same = before && before->plan.n_attrs == g->plan.n_attrs && !before->cpus && !g->cpus &&
                            event_spec_same_target(&before->event->spec, &g->event->spec);
                int r = g->event->external ? 0 : same ? 0 : count_needed(s, g, &one, e);

                if (r != 0)
                        return r;
                if (g->event->external)
                        continue;
                need.n_fds += one;
                need.reads += events_count_reads(g, one);
        }
        *ret = need;
        return 0;
}

int events_check_room(Events *s, const Registration *list, Explanation *e) {
        Room need = { .n_fds = 0 };
        int r = events_count_room(s, list, &need, e);

        if (r != 0)
                return r;
        return events_check_fds(s, list && !list->next ? list->event->spec.name : "what was asked for", need.n_fds, e);
}
