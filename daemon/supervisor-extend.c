/*
 * Events that stay while some of what they observe comes or goes: CPUs, and cgroups that a glob names. The same steps as for
 * whole events, so that nothing else is disturbed: open, publish, enable; disable, keep the counts, publish, close.
 */
#include "daemon/supervisor.h"

#include <string.h>

int supervisor_extend(Supervisor *s, Registration *g, Opened *more, Explanation *e) {
        Stream *streams = reallocarray(g->opened.streams, g->opened.n + more->n + 1, sizeof(*streams));
        Opened added = *more;
        size_t n = g->opened.n;
        int r;

        thread_assert(THREAD_MAIN);
        *more = OPENED_NULL;
        if (!streams) {
                opened_close(s, &added);
                return -ENOMEM;
        }
        g->opened.streams = streams;
        memcpy(streams + n, added.streams, added.n * sizeof(*streams));
        g->opened.n += added.n;
        r = supervisor_publish(s);
        if (r == 0 && g->enabled)
                r = opened_enable(s, (const Opened *const[]){ &added }, 1, g->event->spec.name, e);
        if (r == 0) {
                free(added.streams);
                return 0;
        }
        g->opened.n = n; /* they are disabled */
        if (r > 0) {
                int told = supervisor_publish(s);

                r = told < 0 ? told : r;
        }
        opened_close(s, &added);
        return r;
}

typedef struct Part {
        Registration *registration;
        Opened gone;
} Part;

/* Takes those that are gone out of the list, into one of their own. */
static int split(Registration *g, bool (*gone)(const Registration *r, const Stream *stream, const void *userdata),
                 const void *userdata, Opened *ret) {
        size_t n = 0, kept = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += gone(g, &g->opened.streams[i], userdata);
        if (n == 0)
                return 0;
        ret->streams = calloc(n, sizeof(*ret->streams));
        if (!ret->streams)
                return -ENOMEM;
        for (size_t i = 0; i < g->opened.n; i++)
                if (gone(g, &g->opened.streams[i], userdata))
                        ret->streams[ret->n++] = g->opened.streams[i];
                else
                        g->opened.streams[kept++] = g->opened.streams[i];
        g->opened.n = kept;
        return 0;
}

/* Disabled by their readers; where a CPU has none any more they are off already. */
static int disable_parts(Supervisor *s, const Part *parts, size_t n) {
        _cleanup_free_ const Opened **list = calloc(n + 1, sizeof(*list));

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                list[i] = &parts[i].gone;
        return opened_disable(s, list, n);
}

int supervisor_retract(Supervisor *s, bool (*gone)(const Registration *r, const Stream *stream, const void *userdata),
                       const void *userdata) {
        _cleanup_free_ Part *parts = calloc(s->n_registrations + 1, sizeof(*parts));
        size_t n = 0;
        int r = 0;

        thread_assert(THREAD_MAIN);
        if (!parts)
                return -ENOMEM;
        for (Registration *g = s->registrations; g && r == 0; g = g->next) {
                parts[n] = (Part){ .registration = g, .gone = OPENED_NULL };
                r = split(g, gone, userdata, &parts[n].gone);
                n += parts[n].gone.n > 0;
        }
        if (n == 0 || r < 0)
                return r;
        r = disable_parts(s, parts, n);
        for (size_t i = 0; i < n && r == 0; i++)
                r = registration_keep_counts(parts[i].registration, &parts[i].gone);
        if (r == 0)
                r = supervisor_publish(s);
        for (size_t i = 0; i < n; i++)
                opened_close(s, &parts[i].gone);
        return r;
}
