/*
 * {a,b,c}[:modifiers]: what is scheduled as one. Commas also stand between the terms of a PMU event, so they divide
 * members only outside of slashes. What has no count that a PMU could schedule is no member: a probe, an external
 * event, a name that is several.
 */
#include <stdlib.h>
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"

#define SPACE " \t\r\n"

/* text[*from, *to) without white space around it. */
static void trim(const char *text, size_t *from, size_t *to) {
        while (*from < *to && strchr(SPACE, text[*from]))
                ++*from;
        while (*to > *from && strchr(SPACE, text[*to - 1]))
                --*to;
}

static int check_member(const char *text, size_t at, const EventName *n, const char *member, Explanation *e) {
        switch (n->kind) {
        case EVENT_NAME_KPROBE:
        case EVENT_NAME_UPROBE:
        case EVENT_NAME_USDT:
        case EVENT_NAME_EXTERNAL:
                return event_refuse_at(e, text, at, "%s events cannot be members of a group of counters",
                                       event_name_kind(n->kind));
        case EVENT_NAME_TRACEPOINT:
        case EVENT_NAME_SOFTWARE:
        case EVENT_NAME_HARDWARE:
        case EVENT_NAME_CACHE:
        case EVENT_NAME_RAW:
        case EVENT_NAME_PMU:
        case EVENT_NAME_BREAKPOINT:
        case _EVENT_NAME_KIND_MAX:
                break;
        }
        if (event_name_is_glob(n))
                return event_refuse_at(e, text, at, "%s can match several tracepoints, and a member of a group is a single one",
                                       QUOTE(member));
        return 0;
}

/* Takes both; -ENOMEM: neither. */
static int members_append(EventNames *names, const EventName *n, char *text) {
        if (!ARRAY_ROOM(names->texts, names->n_members) || !ARRAY_ROOM(names->members, names->n_members))
                return error_origin(-ENOMEM);
        names->texts[names->n_members] = text;
        names->members[names->n_members++] = *n;
        return 0;
}

/* text[from, to) without white space around it, as the next member. */
static int member_add(EventNames *names, const char *text, size_t from, size_t to, Explanation *e) {
        _cleanup_(event_name_deinit) EventName n = EVENT_NAME_NULL;
        _cleanup_free_ char *member = NULL;
        int r;

        trim(text, &from, &to);
        if (from == to)
                return event_refuse_at(e, text, from, names->is_group ? "a member of the group is missing here"
                                                                      : "the name is empty");
        if (names->n_members == EVENT_MEMBERS_MAX)
                return event_refuse_at(e, text, from, "a group has at most %d members", EVENT_MEMBERS_MAX);
        r = event_take(text, from, to, &member);
        if (r == 0)
                r = event_name_parse(member, &n, e);
        if (r > 0 && e)
                e->position += (unsigned)from;
        if (r == 0 && names->is_group)
                r = check_member(text, from, &n, member, e);
        if (r == 0)
                r = members_append(names, &n, member);
        if (r == 0) {
                n = EVENT_NAME_NULL;
                member = NULL;
        }
        return r;
}

/* Where the member that begins at `from` ends: at a comma outside of a PMU's slashes. */
static size_t member_end(const char *text, size_t from, size_t close) {
        bool in_terms = false;

        for (size_t i = from; i < close; i++) {
                if (text[i] == '/')
                        in_terms = !in_terms;
                else if (text[i] == ',' && !in_terms)
                        return i;
        }
        return close;
}

/* text[open] is the brace, text[open, end) without white space around it. */
static int group_parse(EventNames *names, const char *text, size_t open, size_t end, Explanation *e) {
        const char *brace = memrchr(text + open, '}', end - open);
        const char *nested = memchr(text + open + 1, '{', end - open - 1);
        size_t close = brace ? (size_t)(brace - text) : end;
        EventModifiers m = { .precise = 0 };
        int r = 0;

        if (!brace)
                return event_refuse_at(e, text, end, "the closing brace of the group is missing");
        if (nested)
                return event_refuse_at(e, text, (size_t)(nested - text), "groups cannot be nested");
        if (close + 1 < end && text[close + 1] != ':')
                return event_refuse_at(e, text, close + 1, "expected nothing, or a colon and modifiers, after the group");
        for (size_t from = open + 1, to; r == 0; from = to + 1) {
                to = member_end(text, from, close);
                r = member_add(names, text, from, to, e);
                if (to == close)
                        break;
        }
        if (r != 0 || close + 1 == end)
                return r;
        r = event_group_modifiers_parse(text, close + 2, end, &m, e);
        for (size_t i = 0; r == 0 && i < names->n_members; i++)
                if (!event_modifiers_merge(&names->members[i].modifiers, &m))
                        r = event_refuse_at(e, text, close + 2, "with its own, member %s has more than three p",
                                            QUOTE(names->texts[i]));
        return r;
}

int event_names_parse(const char *text, EventNames *ret, Explanation *e) {
        _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
        size_t from = 0, to = strlen(text);
        int r;

        trim(text, &from, &to);
        names.is_group = from < to && text[from] == '{';
        r = names.is_group ? group_parse(&names, text, from, to, e) : member_add(&names, text, from, to, e);
        if (r != 0)
                return r;
        *ret = names;
        names = EVENT_NAMES_NULL;
        return 0;
}

void event_names_deinit(EventNames *n) {
        for (size_t i = 0; i < n->n_members; i++) {
                event_name_deinit(&n->members[i]);
                free(n->texts[i]);
        }
        free(n->members);
        free(n->texts);
        *n = EVENT_NAMES_NULL;
}
