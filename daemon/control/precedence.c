/* sd_event_source_set_priority(3) alone would let one that floods the control socket starve all others, SIGTERM too. */
#include "daemon/control/listener.h"

#define BEFORE_OTHERS (SD_EVENT_PRIORITY_NORMAL - 10)

int precedence_set(Precedence *p, sd_event_source *source) {
        int r = error_origin(sd_event_source_set_priority(source, BEFORE_OTHERS));

        p->is_set = r >= 0;
        p->n_turns = 0;
        return r < 0 ? r : 0;
}

int precedence_count(Precedence *p, sd_event_source *source) {
        int r;

        if (!p->is_set)
                return 0;
        if (p->n_turns++ == PRECEDENCE_TURNS) /* this one was among the others */
                return precedence_set(p, source);
        if (p->n_turns < PRECEDENCE_TURNS)
                return 0;
        r = error_origin(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_NORMAL));
        return r < 0 ? r : 0;
}
