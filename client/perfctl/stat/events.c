/* Lists of events as perf-stat(1) -e takes them: commas inside of a group, and of a PMU's terms, separate no events. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/stat/stat.h"

/* Behind the event that begins here. */
static const char *event_end(const char *at) {
        bool in_terms = false;
        size_t depth = 0;

        for (; *at && (*at != ',' || in_terms || depth > 0); at++) {
                if (*at == '/')
                        in_terms = !in_terms;
                depth += *at == '{';
                depth -= *at == '}' && depth > 0;
        }
        return at;
}

char **stat_events_split(const char *list, size_t *ret_n) {
        char **events = must_have(calloc(strlen(list) + 1, sizeof(*events)));
        const char *at = list, *next;
        size_t n = 0;

        for (;; at = next + 1) {
                next = event_end(at);
                events[n++] = must_have(strndup(at, (size_t)(next - at)));
                if (!*next)
                        break;
        }
        *ret_n = n;
        return events;
}

char **stat_events_members(const char *event, size_t *ret_n) {
        const char *begin = event + (*event == '{'), *close = strrchr(event, '}');
        char *inner = must_have(strndup(begin, close && *event == '{' ? (size_t)(close - begin) : strlen(begin)));
        char **members = stat_events_split(inner, ret_n);

        free(inner);
        return members;
}

void stat_events_free(char **events, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(events[i]);
        free(events);
}

bool stat_event_is_cycles(const char *event) {
        size_t n = strcspn(event, ":");

        return (n == strlen("cycles") && memcmp(event, "cycles", n) == 0) ||
               (n == strlen("cpu-cycles") && memcmp(event, "cpu-cycles", n) == 0);
}
