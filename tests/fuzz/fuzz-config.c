/*
 * Any bytes as a configuration: either a Config whose events, targets and sizes keep what config.h promises, or at
 * least one mistake with a place inside of the file and a text that fits into a protobuf string.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/event-name.h"
#include "config/name.h"
#include "daemon/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_event_name(const char *text) {
        EventName name = EVENT_NAME_NULL;
        Explanation e = EXPLANATION_NULL;
        int r = event_name_parse(text, &name, &e);

        assert(r >= 0);
        assert((r == 0) == (e.text[0] == '\0') && e.position <= strlen(text) + 1);
        assert(r > 0 || (name.kind == EVENT_NAME_SOFTWARE) == (name.numbered != NULL));
        assert(r == 0 || (!name.group && e.position > 0));
        event_name_deinit(&name);
}

static void check_config(const Config *c) {
        assert(c->version == 1 && (c->ring_size & (c->ring_size - 1)) == 0);
        assert(c->control_path[0] == '/' && c->stream_path[0] == '/' && strcmp(c->control_path, c->stream_path) != 0);
        assert(config_clock_name(c));
        assert(strcmp(c->targets[0].name, "host") == 0 && c->targets[0].pids.n_ids == 0 && !c->targets[0].cpus);
        for (size_t i = 0; i < c->n_events; i++) {
                const ConfigEvent *e = &c->events[i];
                EventName name;

                assert(event_name_parse(e->event, &name, NULL) == 0);
                assert(!e->filter || name.kind == EVENT_NAME_TRACEPOINT);
                event_name_deinit(&name);
                assert(e->name && e->group && e->target < c->n_targets && e->at.path == c->paths[0] && e->at.line > 0);
                assert(e->period == 0 || e->frequency == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        ConfigMistakes m = CONFIG_MISTAKES_NULL;
        Config *c = NULL;
        char *text = strndup((const char *)bytes, length);
        int r = config_parse("fuzz.yaml", (const char *)bytes, length, &m, &c);

        assert(r == 0 || r == REFUSED_INVALID);
        assert((r == 0) == (c != NULL) && (r == 0) == (m.n_errors == 0));
        for (size_t i = 0; i < m.n_items; i++) {
                const ConfigMistake *a = &m.items[i], *before = i > 0 ? a - 1 : NULL;

                assert((a->line > 0) == (a->column > 0));
                assert(a->text[0] && !strpbrk(a->text, "\n\r\x1b"));
                assert(!before || before->line < a->line || (before->line == a->line && before->column <= a->column));
        }
        if (c)
                check_config(c);
        check_event_name(text);
        free(text);
        config_unref(c);
        config_mistakes_deinit(&m);
        return 0;
}
