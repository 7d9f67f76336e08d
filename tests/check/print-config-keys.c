/*
 * Without arguments prints the tables for config-keys (with --relay the keys of relay.yaml alone): one line for each key, pattern, default text and range, and the
 * names of software and hardware events and of fields of perf_event_attr, and the kinds of events. With --examples reads
 * a configuration from stdin: prints the kind of each event in it, or what is wrong with it, and fails.
 */
#include <stdio.h>
#include <string.h>

#include "client/relay/relay-config.h"
#include "config/attr/attr-setting.h"
#include "config/config.h"
#include "config/event-name/event-name.h"
#include "config/keys.h"
#include "config/parse/load.h"

static void print_events(const char *kind, const NumberedEvent *events, size_t n) {
        for (size_t i = 0; i < n; i++)
                printf("%s\t%s\t%s\n", kind, events[i].name, events[i].alias ? events[i].alias : "");
}

static int examine(void) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        _cleanup_(config_unrefp) Config *c = NULL;
        char bytes[64 * 1024];
        size_t n = fread(bytes, 1, sizeof(bytes), stdin);
        int r = config_parse("example", bytes, n, &m, &c);

        for (size_t i = 0; i < m.n_items; i++)
                config_diagnostic_print(&m.items[i], stdout);
        for (size_t i = 0; r == 0 && i < c->n_events; i++) {
                EventNames names;

                if (event_names_parse(c->events[i].event, &names, NULL) != 0)
                        return 1;
                printf("%s\n", names.is_group ? "group" : event_name_kind(names.members[0].kind));
                event_names_deinit(&names);
        }
        r = r != 0 || m.n_items > 0;
        config_diagnostics_deinit(&m);
        return r;
}

static void print_keys(const Key *keys, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const Key *k = &keys[i];

                printf("key\t%s\t%s\t%s\t", k->pattern, k->default_text ? k->default_text : "", k->range ? k->range : "");
                for (const KeyChoice *c = k->choices; c && c->word; c++)
                        printf("%s%s", c == k->choices ? "" : " ", c->word);
                printf("\n");
        }
}

static int examine_relay(void) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        RelayConfig *c = NULL;
        char bytes[64 * 1024];
        size_t n = fread(bytes, 1, sizeof(bytes), stdin);
        int r = relay_config_parse("example", bytes, n, &m, &c);

        for (size_t i = 0; i < m.n_items; i++)
                config_diagnostic_print(&m.items[i], stdout);
        r = r != 0 || m.n_items > 0;
        if (c)
                relay_config_free(c);
        config_diagnostics_deinit(&m);
        return r;
}

int main(int argc, char **argv) {
        size_t n_software, n_hardware;
        const NumberedEvent *software = software_events(&n_software), *hardware = hardware_events(&n_hardware);

        if (argc > 1 && strcmp(argv[1], "--relay") == 0) {
                if (argc > 2)
                        return examine_relay();
                print_keys(relay_keys, n_relay_keys);
                return 0;
        }
        if (argc > 1 && strcmp(argv[1], "--examples") == 0)
                return examine();
        print_keys(config_keys, n_config_keys);
        print_events("software", software, n_software);
        print_events("hardware", hardware, n_hardware);
        for (size_t i = 0; attr_field_at(i); i++)
                printf("attr\t%s\n", attr_field_name(attr_field_at(i)));
        for (unsigned i = 0; i < _EVENT_NAME_KIND_MAX; i++)
                printf("kind\t%s\n", event_name_kind(i));
        return 0;
}
