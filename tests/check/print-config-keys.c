/* Prints the table of keys for config-keys: one line for each row, pattern, default text and range, and the names of
 * software and hardware events. */
#include <stdio.h>

#include "config/event-name.h"
#include "config/keys.h"

static void print_events(const char *kind, const NumberedEvent *events, size_t n) {
        for (size_t i = 0; i < n; i++)
                printf("%s\t%s\t%s\n", kind, events[i].name, events[i].alias ? events[i].alias : "");
}

int main(void) {
        size_t n_software, n_hardware;
        const NumberedEvent *software = software_events(&n_software), *hardware = hardware_events(&n_hardware);

        for (size_t i = 0; i < n_config_keys; i++) {
                const Key *k = &config_keys[i];

                printf("key\t%s\t%s\t%s\t", k->pattern, k->default_text ? k->default_text : "", k->range ? k->range : "");
                for (const KeyChoice *c = k->choices; c && c->word; c++)
                        printf("%s%s", c == k->choices ? "" : " ", c->word);
                printf("\n");
        }
        print_events("software", software, n_software);
        print_events("hardware", hardware, n_hardware);
        return 0;
}
