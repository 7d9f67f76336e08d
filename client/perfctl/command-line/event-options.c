/* perf(1) does so with --filter: `-e A --filter F -e B --filter G`. */
#include "client/perfctl/command-line/event-options.h"

#include <stdlib.h>
#include <string.h>

static const EventOption *last_of(const Perfctl *p, unsigned each) {
        for (size_t i = p->n_event_options; i-- > 0;)
                if (p->event_options[i].option->each == each)
                        return &p->event_options[i];
        return NULL;
}

int event_option_add(Perfctl *p, const Option *option, const char *value) {
        const EventOption *last = last_of(p, option->each);

        for (size_t i = 0; i < p->n_event_options; i++)
                if (p->event_options[i].option == option && p->event_options[i].n_before == p->n_events)
                        return EVENT_OPTION_E_AGAIN;
        if (last && last->n_before == 0 && p->n_events > 0)
                return EVENT_OPTION_E_FIRST;
        p->event_options = must_have(reallocarray(p->event_options, p->n_event_options + 1, sizeof(*p->event_options)));
        p->event_options[p->n_event_options++] = (EventOption){ .option = option, .value = value, .n_before = p->n_events };
        return 0;
}

/* How many events stand before the options of this kind that apply to the event. False: none do. */
static bool find_point(const Perfctl *p, unsigned each, size_t place, size_t *ret) {
        bool is_only = true, found = false;
        const EventOption *last = last_of(p, each);

        for (size_t i = 0; i < p->n_event_options; i++) {
                const EventOption *o = &p->event_options[i];

                if (o->option->each != each)
                        continue;
                is_only = is_only && o->n_before == last->n_before;
                if (!found && o->n_before > place) {
                        *ret = o->n_before;
                        found = true;
                }
        }
        if (!last || !is_only || (last->n_before > 0 && last->n_before < p->n_events))
                return found;
        *ret = last->n_before;
        return true;
}

const char *event_option_get(const Perfctl *p, const char *name, size_t place) {
        const Option *option = p->verb->options;
        size_t n_before = 0;

        while (option->name && strcmp(option->name, name) != 0)
                option++;
        if (!option->name || option->each == 0)
                abort(); /* a verb asks for what its own table lacks */
        if (!find_point(p, option->each, place, &n_before))
                return NULL;
        for (size_t i = 0; i < p->n_event_options; i++)
                if (p->event_options[i].option == option && p->event_options[i].n_before == n_before)
                        return p->event_options[i].value;
        return NULL;
}
