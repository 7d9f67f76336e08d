/* Of external events main is the reader: their cuts, and how long the merge waits for clients. */
#include "daemon/supervisor/events/external.h"

#include "daemon/supervisor/readers/emit-pipe.h"

#define EXTERNAL_WINDOW (5 * NSEC_PER_MSEC) /* from a client's clock to our socket, with a busy main thread in between */

void events_settle_external(void *userdata) {
        Events *s = userdata;

        for (Registration *g = s->registrations; g; g = g->next)
                if (g->event->external)
                        counters_settle_emitted(&g->event->counters[s->readers->n_cpus]);
}

void events_update_window(Events *s) {
        bool any = false;

        for (const Registration *g = s->registrations; g && !any; g = g->next)
                any = g->event->external && g->enabled;
        readers_flush_emitted(s->readers); /* before the merge waits for nobody */
        atomic_store_explicit(&s->readers->dispatcher.window, any ? EXTERNAL_WINDOW : 0, memory_order_relaxed);
}
