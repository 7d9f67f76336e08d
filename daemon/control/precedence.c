/* sd_event_source_set_priority(3) alone would let one that floods the control socket starve all others, SIGTERM too. */
#include "daemon/control/listener.h"

#define BEFORE_OTHERS (SD_EVENT_PRIORITY_NORMAL - 10)

int precedence_set(Precedence *p, sd_event_source *source) {
        int r = error_origin(sd_event_source_set_priority(source, BEFORE_OTHERS));

        p->is_of_control = true;
        p->is_set = r >= 0;
        p->n_turns = 0;
        return r < 0 ? r : 0;
}

static int precedence_restore(Precedence *p, sd_event_source *source) {
        return p->is_of_control && !p->is_set && source ? precedence_set(p, source) : 0; /* NULL: it was given away */
}

/* The others had their turns. */
static int precedence_restore_all(Control *c) {
        int r = 0;

        c->has_lowered = false;
        for (Listener *l = c->listeners; l && r >= 0; l = l->next)
                r = precedence_restore(&l->precedence, l->source);
        return r < 0 ? r : connections_restore_precedence(c, precedence_restore);
}

int precedence_count(Control *c, Precedence *p, sd_event_source *source) {
        int r;

        if (!p->is_of_control)
                return c->has_lowered && ++c->n_others == PRECEDENCE_OTHERS ? precedence_restore_all(c) : 0;
        if (!p->is_set) /* this one was among the others */
                return precedence_set(p, source);
        if (++p->n_turns < PRECEDENCE_TURNS)
                return 0;
        p->is_set = false;
        c->has_lowered = true;
        c->n_others = 0;
        r = error_origin(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_NORMAL));
        return r < 0 ? r : 0;
}
