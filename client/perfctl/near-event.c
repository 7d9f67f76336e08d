/* perfd knows names of perf list, and near ones of a group; which group is meant by a word alone, it cannot know. */
#include "client/perfctl/near-event.h"

#include <string.h>

#include "client/perfctl/near.h"

#define CALLS "syscalls:sys_enter_"

/* Behind the group, or all of it. */
static const char *last_part(const char *event) {
        const char *colon = strchr(event, ':');

        return colon ? colon + 1 : event;
}

/* NULL: nothing is near. */
static const char *find_near(const perfd_result *offered, const char *word) {
        const perfd_available_row *row;
        const char *best = NULL;
        Near near = near_of(word);

        for (size_t i = 0; (row = perfd_result_available(offered, i)); i++) {
                const char *before = near.best;

                if (strcmp(last_part(row->event), word) == 0)
                        return NULL; /* there is one: something else is wrong */
                if (strncmp(row->event, CALLS, strlen(CALLS)) == 0 && strcmp(row->event + strlen(CALLS), word) == 0)
                        return row->event;
                near_add(&near, last_part(row->event));
                if (near.best != before)
                        best = row->event;
        }
        return best;
}

void near_event_tell(const Perfctl *p, const perfd_event_spec *specs, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *offered = NULL;

        if (strcmp(perfd_client_error(p->client)->reason, "unknown-event") != 0)
                return;
        for (size_t i = 0; i < n; i++) {
                const char *best;

                if (!*specs[i].event || strpbrk(specs[i].event, ":/{}*?[]#@"))
                        continue;
                if (!offered && perfd_available(p->client, NULL, false, &offered) != 0)
                        return; /* the refusal was said */
                best = find_near(offered, specs[i].event);
                if (best)
                        (void)perfctl_fail(p, PERFCTL_OK, "'%s': did you mean '%s'?", specs[i].event, best);
        }
}
