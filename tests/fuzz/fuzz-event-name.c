/*
 * Any text as an event's name and as a group of them. What is refused says where, inside of the text; what parses is
 * what event-name.h promises of its kind, and its members parse again, each on its own.
 */
#include <assert.h>
#include <linux/hw_breakpoint.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/event-name/event-name.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_refusal(int r, const Explanation *e, const char *text) {
        assert(r == REFUSED_INVALID || r == REFUSED_NOT_FOUND || r == REFUSED_UNSUPPORTED);
        assert(e->text[0] && e->reason);
        assert(e->position > 0 && e->position <= strlen(text) + 1);
}

static void check_place(const EventName *n) {
        const ProbePlace *p = &n->place;

        assert(p->n_symbols <= EVENT_ALTERNATES_MAX);
        assert(p->n_symbols > 0 ? p->address == 0 : p->offset == 0);
        assert(!n->is_return || p->offset == 0);
        for (size_t i = 0; i < p->n_symbols; i++)
                assert(p->symbols[i][0] && !strpbrk(p->symbols[i], "|: ") && !strstr(p->symbols[i], "@@"));
}

static void check_name(const EventName *n, const char *text) {
        bool has_group = n->kind == EVENT_NAME_TRACEPOINT || n->kind == EVENT_NAME_PMU || n->kind == EVENT_NAME_USDT;
        bool has_name = n->kind == EVENT_NAME_TRACEPOINT || n->kind == EVENT_NAME_USDT ||
                        n->kind == EVENT_NAME_EXTERNAL;
        bool is_numbered = n->kind == EVENT_NAME_SOFTWARE || n->kind == EVENT_NAME_HARDWARE;

        assert(event_name_kind(n->kind));
        assert(has_group == (n->group && n->group[0]) && has_name == (n->name && n->name[0]));
        assert(is_numbered == (n->numbered != NULL) && (!is_numbered || n->config == n->numbered->config));
        assert((n->kind == EVENT_NAME_UPROBE || n->kind == EVENT_NAME_USDT) == (n->path && n->path[0] == '/'));
        assert(n->modifiers.precise <= 3);
        assert(n->kind == EVENT_NAME_PMU || n->n_terms == 0);
        assert((n->kind == EVENT_NAME_BREAKPOINT) == (n->access != 0) && (n->access != 0) == (n->length != 0));
        assert(!(n->access & HW_BREAKPOINT_X) || n->access == HW_BREAKPOINT_X);
        assert(!event_name_is_glob(n) || n->kind == EVENT_NAME_TRACEPOINT);
        for (size_t i = 0; i < n->n_terms; i++)
                assert(n->terms[i].name[0] && n->terms[i].position < strlen(text) &&
                       (!n->terms[i].is_number || n->terms[i].text));
        check_place(n);
        if (n->kind == EVENT_NAME_KPROBE || n->kind == EVENT_NAME_UPROBE)
                assert(event_name_has_fields(n));
        else
                assert(n->place.n_symbols == 0);
}

static void fuzz_name(const char *text) {
        _cleanup_(event_name_deinit) EventName n = EVENT_NAME_NULL;
        Explanation e = EXPLANATION_NULL;
        int r = event_name_parse(text, &n, &e);

        if (r == 0) {
                assert(!e.text[0] && !n.modifiers.group_sample);
                check_name(&n, text);
        } else {
                check_refusal(r, &e, text);
                assert(!n.group && !n.name && !n.path && !n.terms);
        }
        event_name_deinit(&n);
        assert(event_name_parse(text, &n, NULL) == r);
}

static void fuzz_names(const char *text) {
        _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
        Explanation e = EXPLANATION_NULL;
        int r = event_names_parse(text, &names, &e);

        if (r != 0) {
                check_refusal(r, &e, text);
                assert(!names.members && !names.texts);
                return;
        }
        assert(names.n_members > 0 && names.n_members <= EVENT_MEMBERS_MAX && (names.is_group || names.n_members == 1));
        for (size_t i = 0; i < names.n_members; i++) {
                _cleanup_(event_name_deinit) EventName again = EVENT_NAME_NULL;

                check_name(&names.members[i], names.texts[i]);
                assert(event_name_parse(names.texts[i], &again, NULL) == 0);
                assert(again.kind == names.members[i].kind && again.config == names.members[i].config);
                assert(!names.is_group || !event_name_is_glob(&again));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        char *text = strndup((const char *)bytes, length);

        fuzz_name(text);
        fuzz_names(text);
        free(text);
        return 0;
}
