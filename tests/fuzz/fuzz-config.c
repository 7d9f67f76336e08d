/*
 * Any bytes as a configuration: either a Config whose events, targets and sizes keep what config.h promises, or at
 * least one mistake with a place inside of the file and a text that fits into a protobuf string.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/attr/attr-setting.h"
#include "config/config.h"
#include "config/event-name/event-name.h"
#include "config/parse/load.h"
#include "daemon/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_setting(const char *text) {
        char *name = strdup(text), *equals = strchr(name, '=');
        AttrSetting setting;

        assert(equals);
        *equals = '\0';
        assert(attr_setting_parse(name, equals + 1, &setting, NULL) == 0);
        assert(strcmp(attr_field_name(setting.field), name) == 0);
        free(name);
}

static void check_event(const ConfigEvent *e) {
        EventNames names;
        const EventName *n;

        assert(event_names_parse(e->event, &names, NULL) == 0);
        assert(!strpbrk(e->event, " \t\r\n"));
        n = &names.members[0];
        assert(!(e->filter || e->args || e->maxactive || e->fallback || e->fields.n) || !names.is_group);
        assert(!e->filter || (event_name_has_fields(n) && n->kind != EVENT_NAME_EXTERNAL));
        assert(!e->args || n->kind == EVENT_NAME_KPROBE || n->kind == EVENT_NAME_UPROBE || n->kind == EVENT_NAME_USDT);
        assert(!e->maxactive || (n->kind == EVENT_NAME_KPROBE && n->is_return && e->maxactive <= 4096));
        assert(!e->fallback || n->kind == EVENT_NAME_HARDWARE);
        assert(e->fields.n == 0 || (n->kind == EVENT_NAME_EXTERNAL && e->fields.n <= CONFIG_FIELDS_MAX));
        assert(n->kind != EVENT_NAME_EXTERNAL || (!e->period && !e->frequency && !e->interval && !e->attr.n));
        assert(e->interval == 0 || (e->interval >= 1000000 && e->interval <= UINT64_C(3600000000000)));
        for (size_t i = 0; i < e->attr.n; i++)
                check_setting(e->attr.items[i]);
        for (size_t i = 0; i < e->fields.n; i++)
                assert(strchr(e->fields.items[i], ':'));
        event_names_deinit(&names);
}

static void check_target(const ConfigTarget *t) {
        assert(t->name);
        assert((t->pids.n_ids == 0 && t->tids.n_ids == 0) ||
               (t->cgroups.n == 0 && t->containers.n == 0 && t->units.n == 0));
        for (size_t i = 0; i < t->cgroups.n; i++)
                assert(t->cgroups.items[i][0] && strcmp(t->cgroups.items[i], "..") != 0 &&
                       !strstr(t->cgroups.items[i], "/../"));
}

static void check_config(const Config *c) {
        assert(c->version == 1 && (c->ring_size & (c->ring_size - 1)) == 0);
        assert(c->control_path[0] == '/' && c->stream_path[0] == '/' && strcmp(c->control_path, c->stream_path) != 0);
        assert(config_clock_name(c));
        assert(strcmp(c->targets[0].name, "host") == 0 && c->targets[0].pids.n_ids == 0 && !c->targets[0].cpus);
        for (size_t i = 0; i < c->n_targets; i++)
                check_target(&c->targets[i]);
        for (size_t i = 0; i < c->n_events; i++) {
                const ConfigEvent *e = &c->events[i];

                check_event(e);
                assert(e->name && e->group && e->target < c->n_targets && e->at.path == c->paths[0] && e->at.line > 0);
                assert(e->period == 0 || e->frequency == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        Config *c = NULL;
        int r = config_parse("fuzz.yaml", (const char *)bytes, length, &m, &c);

        assert(r == 0 || r == REFUSED_INVALID);
        assert((r == 0) == (c != NULL) && (r == 0) == (m.n_errors == 0));
        for (size_t i = 0; i < m.n_items; i++) {
                const ConfigDiagnostic *a = &m.items[i], *before = i > 0 ? a - 1 : NULL;

                assert((a->line > 0) == (a->column > 0));
                assert(a->text[0] && !strpbrk(a->text, "\n\r\x1b"));
                assert(!before || before->line < a->line || (before->line == a->line && before->column <= a->column));
        }
        if (c)
                check_config(c);
        config_unref(c);
        config_diagnostics_deinit(&m);
        return 0;
}
