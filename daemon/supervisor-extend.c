/*
 * Events that stay while some of what they observe comes or goes: CPUs, and cgroups that a glob names. The same steps as for
 * whole events, so that nothing else is disturbed: open, publish, enable; disable, keep the counts, publish, close. Each step
 * is done once for all events, because each is a turn of every reader: a thousand events on a CPU that comes back are not a
 * thousand snapshots of all of them.
 */
#include "daemon/supervisor.h"

#include <string.h>

void extensions_deinit(Supervisor *s, Extension *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                opened_close(s, &list[i].more);
}

/* Room behind what speaks, so that nothing can fail once the first one is in its place. */
static int reserve(const Extension *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                Opened *opened = &list[i].registration->opened;
                Stream *streams = reallocarray(opened->streams, opened->n + list[i].more.n + 1, sizeof(*streams));

                if (!streams)
                        return -ENOMEM;
                opened->streams = streams;
        }
        return 0;
}

static void append(const Extension *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                Opened *opened = &list[i].registration->opened;

                if (list[i].more.n > 0)
                        memcpy(opened->streams + opened->n, list[i].more.streams, list[i].more.n * sizeof(Stream));
                opened->n += list[i].more.n;
        }
}

static int enable(Supervisor *s, const Extension *list, size_t n, Explanation *e) {
        _cleanup_free_ const Opened **more = calloc(n + 1, sizeof(*more));
        size_t n_more = 0;

        if (!more)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (list[i].registration->enabled)
                        more[n_more++] = &list[i].more;
        return opened_enable(s, more, n_more, n == 1 ? list[0].registration->event->spec.name : "one of the events", e);
}

/* They are disabled, and the last of what speaks. */
static int take_back(Supervisor *s, const Extension *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                list[i].registration->opened.n -= list[i].more.n;
        return supervisor_publish(s);
}

int supervisor_extend(Supervisor *s, Extension *list, size_t n, Explanation *e) {
        size_t n_more = 0;
        int r;

        thread_assert(THREAD_MAIN);
        for (size_t i = 0; i < n; i++)
                n_more += list[i].more.n;
        if (n_more == 0)
                return 0;
        r = reserve(list, n);
        if (r < 0)
                return r;
        append(list, n);
        r = supervisor_publish(s);
        if (r == 0)
                r = enable(s, list, n, e);
        if (r > 0) {
                int told = take_back(s, list, n);

                return told < 0 ? told : r;
        }
        for (size_t i = 0; i < n; i++) { /* they belong to the registrations, also when memory has ended */
                free(list[i].more.streams);
                list[i].more = OPENED_NULL;
        }
        return r;
}

int supervisor_extend_each(Supervisor *s, Extension *list, size_t n, ExtensionRefused refused, const void *userdata) {
        Explanation e = EXPLANATION_NULL;
        int r = supervisor_extend(s, list, n, &e);

        if (r <= 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                e = EXPLANATION_NULL;
                r = supervisor_extend(s, &list[i], 1, &e);
                if (r < 0)
                        return r;
                if (r > 0)
                        refused(s, list[i].registration, &e, userdata);
        }
        return 0;
}

typedef struct Part {
        Registration *registration;
        Opened gone;
} Part;

/* Takes those that leave out of the list, into one of their own. */
static int split(Registration *g, Opened *ret) {
        size_t n = 0, kept = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += g->opened.streams[i].leaves;
        if (n == 0)
                return 0;
        ret->streams = calloc(n, sizeof(*ret->streams));
        if (!ret->streams)
                return -ENOMEM;
        for (size_t i = 0; i < g->opened.n; i++)
                if (g->opened.streams[i].leaves)
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

int supervisor_retract(Supervisor *s) {
        _cleanup_free_ Part *parts = calloc(s->n_registrations + 1, sizeof(*parts));
        size_t n = 0;
        int r = 0;

        thread_assert(THREAD_MAIN);
        if (!parts)
                return -ENOMEM;
        for (Registration *g = s->registrations; g && r == 0; g = g->next) {
                parts[n] = (Part){ .registration = g, .gone = OPENED_NULL };
                r = split(g, &parts[n].gone);
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
