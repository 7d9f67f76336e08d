/* perfd knows names of perf list, and near ones of a group; which group is meant by a word alone, it cannot know. */
#include "client/perfctl/events/near-event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/event-advice.h"
#include "client/perfctl/events/indirect-function.h"
#include "client/perfctl/base/near.h"

#define CALLS "syscalls:sys_enter_"

/* Behind the group, or all of it. */
static const char *last_part(const char *event) {
        const char *colon = strchr(event, ':');

        return colon ? colon + 1 : event;
}

const char *near_event_find(const perfd_result *offered, const char *word) {
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

/* The refusal says so itself. */
static bool is_said(const char *refusal, const char *name) {
        char *hint;
        bool is;

        must_have(asprintf(&hint, "did you mean '%s'?", name) < 0 ? NULL : hint);
        is = strstr(refusal, hint);
        free(hint);
        return is;
}

/* False: nothing is near. */
static bool tell_near(const Perfctl *p, const char *event, const char *refusal, perfd_result **offered) {
        const char *best;

        if (!*event || strpbrk(event, ":/{}*?[]#@"))
                return true;
        if (!*offered && perfd_available(p->client, NULL, false, offered) != 0)
                return true; /* the refusal was said */
        best = near_event_find(*offered, event);
        if (best && !is_said(refusal, best))
                (void)perfctl_fail(p, PERFCTL_OK, "'%s': did you mean '%s'?", event, best);
        return best || strstr(refusal, "did you mean");
}

/* Which implementation is selected on this machine is known here, and not to the file. */
static void tell_indirect(const Perfctl *p, const char *event, const char *refusal) {
        const char *symbol = strrchr(event, ':');
        char *named, *found;

        if (p->host || !symbol)
                return;
        must_have(asprintf(&named, "'%s' in ", symbol + 1) < 0 ? NULL : named);
        found = strncmp(refusal, named, strlen(named)) == 0 ? indirect_function_find(event) : NULL;
        if (found)
                (void)perfctl_fail(p, PERFCTL_OK, "on this machine programs call the code of %s at '%s'", symbol + 1, found);
        free(found);
        free(named);
}

void near_event_tell(const Perfctl *p, const perfd_event_spec *specs, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *offered = NULL;
        const perfd_error *e = perfd_client_error(p->client); /* the next request has another */
        char *reason = must_have(strdup(e->reason)), *message = must_have(strdup(e->message));

        for (size_t i = 0; i < n && strcmp(reason, "ifunc") == 0; i++)
                tell_indirect(p, specs[i].event, message);
        for (size_t i = 0; i < n; i++)
                if (!event_advice_tell(p, specs[i].event, reason, message) && strcmp(reason, "unknown-event") == 0 &&
                    !tell_near(p, specs[i].event, message, &offered))
                        event_advice_tell_program(p, specs[i].event);
        free(reason);
        free(message);
}
