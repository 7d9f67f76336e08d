/* sd_event_source_set_priority(3) alone would let one that floods the control socket starve all others, SIGTERM too. */
#include "daemon/control/listener.h"

#define BEFORE_OTHERS (SD_EVENT_PRIORITY_NORMAL - 10)

int precedence_set(Precedence *p, sd_event_source *source) {
        int r = error_origin(sd_event_source_set_priority(source, BEFORE_OTHERS));

        p->is_of_control = true;
        p->n_turns = 0;
        return r < 0 ? r : 0;
}

void precedence_deinit(Control *c, Precedence *p) {
        for (Precedence **at = &c->lowered; *at; at = &(*at)->next)
                if (*at == p) {
                        *at = p->next;
                        break;
                }
        p->lowered = NULL;
}

static int precedence_restore(Control *c, Precedence *p) {
        sd_event_source *source = p->lowered;

        precedence_deinit(c, p);
        return precedence_set(p, source);
}

static int precedence_lower(Control *c, Precedence *p, sd_event_source *source) {
        int r = error_origin(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_NORMAL));

        if (r < 0)
                return r;
        p->lowered = source;
        p->next = c->lowered;
        c->lowered = p;
        c->n_others = 0;
        return 0;
}

int precedence_count(Control *c, Precedence *p, sd_event_source *source) {
        int r = 0;

        if (p->lowered) /* this one was among the others */
                return precedence_restore(c, p);
        if (p->is_of_control)
                return ++p->n_turns < PRECEDENCE_TURNS ? 0 : precedence_lower(c, p, source);
        if (!c->lowered || ++c->n_others < PRECEDENCE_OTHERS)
                return 0;
        while (c->lowered && r == 0)
                r = precedence_restore(c, c->lowered);
        return r;
}
