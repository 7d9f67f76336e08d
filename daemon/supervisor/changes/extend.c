/*
 * Events that stay while some of what they observe comes or goes: CPUs, and cgroups that a glob names. The same steps as for
 * whole events, so that nothing else is disturbed: open, publish, enable; disable, keep the counts, publish, close. Each step
 * is done once for all events, because each is a turn of every reader: a thousand events on a CPU that comes back are not a
 * thousand snapshots of all of them.
 */

#include <string.h>

#include "daemon/supervisor/changes/extend.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/switch.h"

typedef struct Part {
        Registration *registration;
        PerfFdSet gone;
} Part;

void fd_deltas_deinit(Changes *s, FdDelta *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                event_fds_close(s->events, &list[i].more);
}

/* ---- what goes --------------------------------------------------------------------------------------------------- */

static size_t count_leaving(const Registration *g) {
        size_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += g->opened.fds[i].leaves;
        return n;
}

/* Takes those that leave out of the list, into one of their own. */
static int split(Registration *g, PerfFdSet *ret) {
        size_t n = count_leaving(g), kept = 0;

        if (n == 0)
                return 0;
        ret->fds = calloc(n, sizeof(*ret->fds));
        if (!ret->fds)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < g->opened.n; i++)
                if (g->opened.fds[i].leaves)
                        ret->fds[ret->n++] = g->opened.fds[i];
                else
                        g->opened.fds[kept++] = g->opened.fds[i];
        g->opened.n = kept;
        return 0;
}

/* Disabled by their readers; where a CPU has none any more they are off already. */
static int disable_parts(Changes *s, Part *parts, size_t n, bool to_successors) {
        _cleanup_free_ PerfFdSet **list = calloc(n + 1, sizeof(*list));
        int r;

        if (!list)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                list[i] = &parts[i].gone;
        if (!to_successors)
                return event_fds_disable(s->readers, list, n);
        r = event_fds_cut_over(s->readers, list, n);
        events_end_succession(s->events);
        return r;
}

/* Readers know them until now, speaking or on standby. */
static int let_go(Changes *s, Part *parts, size_t n, bool to_successors) {
        int r = disable_parts(s, parts, n, to_successors);

        for (size_t i = 0; i < n && r == 0; i++)
                r = registration_keep_counts(s->events, parts[i].registration, &parts[i].gone, to_successors);
        for (size_t i = 0; i < n; i++)
                parts[i].registration->pending = PERF_FD_SET_NULL;
        if (r == 0)
                r = readers_publish(s->readers);
        for (size_t i = 0; i < n; i++)
                event_fds_close(s->events, &parts[i].gone);
        return r;
}

int changes_drop_leaving(Changes *s) {
        _cleanup_free_ Part *parts = calloc(s->events->n_registrations + 1, sizeof(*parts));
        size_t n = 0;
        int r = 0;

        thread_assert(THREAD_MAIN);
        if (!parts)
                return error_origin(-ENOMEM);
        for (Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                parts[n] = (Part){ .registration = g, .gone = PERF_FD_SET_NULL };
                r = split(g, &parts[n].gone);
                n += parts[n].gone.n > 0;
        }
        return n == 0 || r < 0 ? r : let_go(s, parts, n, false);
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

/* What leaves may be counted by what comes: a cgroup by one above it that is observed from now on. One of them is active. */
static bool is_exchange(const FdDelta *x) {
        return x->more.n > 0 && count_leaving(x->registration) > 0;
}

/* Room behind the active fds, so that nothing can fail once the first one is in its place. */
static int reserve(const FdDelta *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                PerfFdSet *opened = &list[i].registration->opened;
                PerfFd *streams = reallocarray(opened->fds, opened->n + list[i].more.n + 1, sizeof(*streams));

                if (!streams)
                        return error_origin(-ENOMEM);
                opened->fds = streams;
        }
        return 0;
}

static void append(PerfFdSet *opened, const PerfFdSet *more) {
        if (more->n > 0)
                memcpy(opened->fds + opened->n, more->fds, more->n * sizeof(PerfFd));
        opened->n += more->n;
}

static int enable(Changes *s, FdDelta *list, size_t n, Explanation *e) {
        _cleanup_free_ PerfFdSet **more = calloc(n + 1, sizeof(*more));
        size_t n_more = 0;

        if (!more)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                if (list[i].registration->enabled)
                        more[n_more++] = &list[i].more;
        return event_fds_enable(s->readers, more, n_more, n == 1 ? list[0].registration->event->spec.name : "one of the events", e);
}

/* Muted beside what is to leave, speaking where nothing is. */
static int bring_in(Changes *s, FdDelta *list, size_t n, Explanation *e) {
        int r, told;

        for (size_t i = 0; i < n; i++)
                if (is_exchange(&list[i])) {
                        event_fds_set_successor(&list[i].more, true);
                        list[i].registration->pending = list[i].more;
                } else
                        append(&list[i].registration->opened, &list[i].more);
        r = readers_publish(s->readers);
        if (r == 0)
                r = enable(s, list, n, e);
        if (r <= 0)
                return r;
        for (size_t i = 0; i < n; i++) /* they are disabled, and the last of the active ones */
                if (is_exchange(&list[i]))
                        list[i].registration->pending = PERF_FD_SET_NULL;
                else
                        list[i].registration->opened.n -= list[i].more.n;
        told = readers_publish(s->readers);
        return told < 0 ? told : r;
}

/* What has come is active, what leaves is on standby: at one place of each ring, and then goes. */
static int change_over(Changes *s, const FdDelta *list, size_t n) {
        _cleanup_free_ Part *parts = calloc(n + 1, sizeof(*parts));
        size_t n_parts = 0;
        int r = 0;

        if (!parts)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n && r == 0; i++) {
                Registration *g = list[i].registration;
                Part *part = &parts[n_parts];

                if (!is_exchange(&list[i]))
                        continue;
                part->registration = g;
                r = split(g, &part->gone);
                if (r < 0)
                        return r;
                append(&g->opened, &list[i].more);
                g->pending = part->gone;
                n_parts++;
        }
        if (n_parts == 0)
                return 0;
        r = readers_publish(s->readers);
        return r == 0 ? let_go(s, parts, n_parts, true) : r;
}

/* They are the registrations' from now on, also when memory has ended in the middle. */
static void give(FdDelta *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (list[i].registration->pending.fds != list[i].more.fds)
                        free(list[i].more.fds);
                list[i].more = PERF_FD_SET_NULL;
        }
}

int changes_extend(Changes *s, FdDelta *list, size_t n, Explanation *e) {
        size_t n_more = 0;
        int r;

        thread_assert(THREAD_MAIN);
        for (size_t i = 0; i < n; i++)
                n_more += list[i].more.n;
        if (n_more == 0)
                return 0;
        r = reserve(list, n);
        for (size_t i = 0; i < n && r == 0; i++) /* before they are among what they follow */
                r = event_fds_follow_exec(&list[i].more, &list[i].registration->opened);
        if (r < 0)
                return r;
        r = bring_in(s, list, n, e);
        if (r > 0)
                return r;
        if (r == 0)
                r = change_over(s, list, n);
        give(list, n);
        return r;
}

int changes_extend_each(Changes *s, FdDelta *list, size_t n, ExtensionRefused refused, const void *userdata) {
        Explanation e = EXPLANATION_NULL;
        int r = changes_extend(s, list, n, &e);

        if (r <= 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                e = EXPLANATION_NULL;
                r = changes_extend(s, &list[i], 1, &e);
                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                refused(s, list[i].registration, &e, userdata);
                /* samples of the moment in which it was enabled have come */
                r = registration_keep_counts(s->events, list[i].registration, &list[i].more, is_exchange(&list[i]));
                if (r < 0)
                        return r;
        }
        return 0;
}
