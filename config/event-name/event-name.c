/* What a name is, once it is parsed. */
#include "config/event-name/event-name.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"

void event_name_deinit(EventName *n) {
        free(n->group);
        free(n->name);
        free(n->path);
        for (size_t i = 0; i < n->n_terms; i++) {
                free(n->terms[i].name);
                free(n->terms[i].text);
        }
        free(n->terms);
        for (size_t i = 0; i < n->place.n_symbols; i++)
                free(n->place.symbols[i]);
        free(n->place.symbols);
        *n = EVENT_NAME_NULL;
}

bool event_name_is_glob(const EventName *n) {
        return n->kind == EVENT_NAME_TRACEPOINT && (strpbrk(n->group, "*?[") || strpbrk(n->name, "*?["));
}

bool event_name_has_fields(const EventName *n) {
        switch (n->kind) {
        case EVENT_NAME_TRACEPOINT:
        case EVENT_NAME_KPROBE:
        case EVENT_NAME_UPROBE:
        case EVENT_NAME_USDT:
        case EVENT_NAME_EXTERNAL:
                return true;
        case EVENT_NAME_SOFTWARE:
        case EVENT_NAME_HARDWARE:
        case EVENT_NAME_CACHE:
        case EVENT_NAME_RAW:
        case EVENT_NAME_PMU:
        case EVENT_NAME_BREAKPOINT:
        case _EVENT_NAME_KIND_MAX:
                return false;
        }
        return false;
}

const char *event_name_kind(EventNameKind kind) {
        static const char *const words[] = {
                [EVENT_NAME_TRACEPOINT] = "tracepoint", [EVENT_NAME_SOFTWARE] = "software",
                [EVENT_NAME_HARDWARE] = "hardware",     [EVENT_NAME_CACHE] = "cache",
                [EVENT_NAME_RAW] = "raw",               [EVENT_NAME_PMU] = "pmu",
                [EVENT_NAME_BREAKPOINT] = "breakpoint", [EVENT_NAME_KPROBE] = "kprobe",
                [EVENT_NAME_UPROBE] = "uprobe",         [EVENT_NAME_USDT] = "usdt",
                [EVENT_NAME_EXTERNAL] = "external",
        };

        assert(kind < _EVENT_NAME_KIND_MAX);
        return words[kind];
}
