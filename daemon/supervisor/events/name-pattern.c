#include "daemon/supervisor/events/name-pattern.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/checkpoint.h"

int name_pattern_init(NamePattern *ret, const char *text, Explanation *e) {
        NamePattern p = { .text = text };
        char *end;
        int r = 0;

        if (text[0] == '@') {
                p.is_group = true;
                p.text++;
        } else if (text[0] == '#') {
                unsigned long id = strtoul(text + 1, &end, 10);

                if (!*end && end != text + 1 && id <= UINT32_MAX)
                        p.id = (uint32_t)id;
        }
        if (p.id == 0 && text_is_glob(p.text))
                r = glob_compile(p.text, &p.glob, e);
        if (r == 0)
                *ret = p;
        return r;
}

void name_pattern_deinit(NamePattern *p) {
        p->glob = pattern_free(p->glob);
}

int name_patterns_init(NamePatterns *ret, char *const *texts, size_t n, Explanation *e) {
        NamePatterns p = { .items = calloc(n + 1, sizeof(*p.items)) };
        size_t n_globs = 0;
        int r = 0;

        if (!p.items)
                return error_origin(-ENOMEM);
        for (; p.n < n && r == 0; p.n += r == 0) {
                r = checkpoint(e);
                if (r == 0)
                        r = name_pattern_init(&p.items[p.n], texts[p.n], e);
                if (r == 0 && !name_pattern_is_exact(&p.items[p.n]) && ++n_globs > NAME_GLOBS_MAX) {
                        name_pattern_deinit(&p.items[p.n]);
                        r = refuse(e, REFUSED_EXHAUSTED, "too-many-names", "a request has at most %d globs and groups: name the "
                                "events, use wider globs, or split it into several requests", NAME_GLOBS_MAX);
                }
        }
        if (r != 0)
                name_patterns_deinit(&p);
        else
                *ret = p;
        return r;
}

void name_patterns_deinit(NamePatterns *p) {
        for (size_t i = 0; i < p->n; i++)
                name_pattern_deinit(&p->items[i]);
        free(p->items);
        *p = NAME_PATTERNS_NULL;
}

static bool selects(const NamePattern *p, const char *name, const char *group) {
        const char *text = p->is_group ? group : name;

        return strcmp(p->text, text) == 0 || (p->glob && glob_match(p->glob, text));
}

bool name_pattern_selects(const NamePattern *p, const Event *event) {
        return (p->id != 0 && p->id == event->id) || selects(p, event->spec.name, event_spec_group(&event->spec));
}

bool name_pattern_selects_pending(const NamePattern *p, const PendingEvent *pending) {
        return selects(p, pending->spec->name, *pending->spec->group ? pending->spec->group : EVENT_GROUP_DEFAULT);
}
