/*
 * group:name[:modifiers]. Both halves become names in tracefs, so that they cannot lead out of its folder; either may
 * be a glob of fnmatch(3).
 */
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

static int check_part(const char *text, size_t from, size_t to, Explanation *e) {
        const char *open = NULL;

        if (from == to)
                return event_refuse_at(e, text, from, from == 0 ? "the tracepoint's group is missing before the colon"
                                                                : "the tracepoint's name is missing after the colon");
        if (text[from] == '.')
                return event_refuse_at(e, text, from, "the parts of a tracepoint's name cannot begin with a dot");
        for (size_t i = from; i < to; i++) {
                if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.*?[]!^", text[i]))
                        return event_refuse_at(e, text, i, "this character is not part of a tracepoint's name");
                if (!open && text[i] == '[')
                        open = text + i;
                else if (open && text[i] == ']' && text + i > open + 1)
                        open = NULL;
        }
        return open ? event_refuse_at(e, text, (size_t)(open - text), "this bracket of a glob is not closed") : 0;
}

int event_parse_tracepoint(const char *text, EventName *ret, Explanation *e) {
        size_t colon = strcspn(text, ":"), end = colon + 1 + strcspn(text + colon + 1, ":");
        int r;

        ret->kind = EVENT_NAME_TRACEPOINT;
        r = check_part(text, 0, colon, e);
        if (r == 0)
                r = check_part(text, colon + 1, end, e);
        if (r == 0)
                r = event_take(text, 0, colon, &ret->group);
        if (r == 0)
                r = event_take(text, colon + 1, end, &ret->name);
        if (r != 0 || text[end] == '\0')
                return r;
        return event_modifiers_parse(text, end + 1, &ret->modifiers, e);
}
