/*
 * Software and hardware events: one table for each, of proto/event-numbers.def, in the order of perf_event.h.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

static const NumberedEvent software_table[] = {
#define SOFTWARE_EVENT(name, alias, number, unit, help) { name, alias, number, unit, help },
#include "proto/event-numbers.def"
};

static const NumberedEvent hardware_table[] = {
#define HARDWARE_EVENT(name, alias, number, unit, help) { name, alias, number, unit, help },
#include "proto/event-numbers.def"
};

static const NumberedEvent *numbered_find(const NumberedEvent *table, size_t n, const char *text, size_t length) {
        for (size_t i = 0; i < n; i++) {
                const char *names[] = { table[i].name, table[i].alias };

                for (size_t k = 0; k < ARRAY_SIZE(names); k++)
                        if (names[k] && strncmp(names[k], text, length) == 0 && names[k][length] == '\0')
                                return &table[i];
        }
        return NULL;
}

bool event_claims_numbered(const char *text) {
        size_t n = strcspn(text, ":");

        return numbered_find(software_table, ARRAY_SIZE(software_table), text, n) ||
               numbered_find(hardware_table, ARRAY_SIZE(hardware_table), text, n);
}

int event_parse_numbered(const char *text, EventName *ret, Explanation *e) {
        size_t n = strcspn(text, ":");

        ret->kind = EVENT_NAME_SOFTWARE;
        ret->numbered = numbered_find(software_table, ARRAY_SIZE(software_table), text, n);
        if (!ret->numbered) {
                ret->kind = EVENT_NAME_HARDWARE;
                ret->numbered = numbered_find(hardware_table, ARRAY_SIZE(hardware_table), text, n);
        }
        assert(ret->numbered); /* claimed */
        ret->config = ret->numbered->config;
        return text[n] ? event_modifiers_parse(text, n + 1, &ret->modifiers, e) : 0;
}

static void table_near(const NumberedEvent *table, size_t n, Nearest *near, const char *word) {
        for (size_t i = 0; i < n; i++) {
                nearest_add(near, word, table[i].name);
                if (table[i].alias)
                        nearest_add(near, word, table[i].alias);
        }
}

void event_numbered_near(Nearest *near, const char *word) {
        table_near(hardware_table, ARRAY_SIZE(hardware_table), near, word);
        table_near(software_table, ARRAY_SIZE(software_table), near, word);
}

const NumberedEvent *software_events(size_t *ret_n) {
        *ret_n = ARRAY_SIZE(software_table);
        return software_table;
}

const NumberedEvent *hardware_events(size_t *ret_n) {
        *ret_n = ARRAY_SIZE(hardware_table);
        return hardware_table;
}

const NumberedEvent *software_event_find(const char *name) {
        return numbered_find(software_table, ARRAY_SIZE(software_table), name, strlen(name));
}

const NumberedEvent *hardware_event_find(const char *name) {
        return numbered_find(hardware_table, ARRAY_SIZE(hardware_table), name, strlen(name));
}
