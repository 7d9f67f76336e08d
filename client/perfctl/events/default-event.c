#include "client/perfctl/events/default-event.h"

#include <string.h>

#include "client/perfctl/command-line/event-options.h"

static void choose_rate(Perfctl *p, const char *rate) {
        for (const Option *o = p->verb->options; o->name; o++)
                if (strcmp(o->name, "frequency") == 0)
                        (void)event_option_add(p, o, rate); /* there is none of its kind */
}

bool default_event_choose(Perfctl *p, const char *rate) {
        static char cycles[] = "cycles", *arguments[] = { cycles };
        static size_t place;
        size_t n;

        (void)perfctl_get_all(p, "event", &n);
        if (p->n_arguments + n > 0)
                return false;
        if (!perfctl_get(p, "frequency") && !perfctl_get(p, "period"))
                choose_rate(p, rate);
        p->arguments = arguments;
        p->argument_places = &place;
        p->n_arguments = p->n_events = 1;
        perfctl_set(p, "fallback", "cpu-clock");
        return true;
}
