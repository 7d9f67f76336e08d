/* What runs, as messages. Strings and arrays are malloc'ed, for free_unpacked(). */
#include "daemon/supervisor-requests.h"

#include <string.h>

/* Tasks or cgroups with fds: each has one for the event on the same CPUs, so those of one CPU are counted. */
static uint64_t registration_count_whoms(const Registration *g) {
        uint64_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++) {
                const Stream *a = &g->opened.streams[i];

                n += a->whom != 0 && a->member == 0 && a->slot == g->opened.streams[0].slot;
        }
        return n;
}

int handle_list(Asking *a, Explanation *e) {
        const char *glob = a->request->list->glob && *a->request->list->glob ? a->request->list->glob : "*";
        Supervisor *s = a->supervisor;
        Perfd__V1__ListReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return -ENOMEM;
        perfd__v1__list_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LIST;
        a->response->list = reply;
        reply->events = calloc(s->n_registrations + 1, sizeof(*reply->events));
        if (!reply->events)
                return -ENOMEM;
        r = supervisor_cut(s);
        for (const Registration *g = s->registrations; g && r >= 0; g = g->next) {
                Perfd__V1__EventState *m;
                EventCut t;

                if (!name_selects(glob, g->event))
                        continue;
                m = malloc(sizeof(*m));
                if (!m)
                        return -ENOMEM;
                perfd__v1__event_state__init(m);
                reply->events[reply->n_events++] = m;
                m->id = g->event->id;
                m->enabled = g->enabled;
                m->configured = g->event->spec.configured;
                m->n_fds = (uint32_t)g->opened.n;
                t = supervisor_event_totals(s, g);
                m->delivered = t.delivered;
                for (int i = 0; i < _LOSS_MAX; i++)
                        m->lost += t.lost[i];
                m->fallen_back = g->fallen_back;
                m->n_targets = registration_count_whoms(g);
                if (g->probe && (r = string_set(&m->place, probe_text(g->probe))) < 0)
                        return r;
                r = spec_message(&g->event->spec, &m->spec);
        }
        return r;
}
