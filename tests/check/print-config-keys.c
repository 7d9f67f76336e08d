/* Prints the table of keys for config-keys: one line for each row, pattern, default text and range, and the names of
 * software events. */
#include <stdio.h>

#include "config/event-name.h"
#include "config/keys.h"

int main(void) {
        size_t n;
        const NumberedEvent *events = software_events(&n);

        for (size_t i = 0; i < n_config_keys; i++) {
                const Key *k = &config_keys[i];

                printf("key\t%s\t%s\t%s\t", k->pattern, k->default_text ? k->default_text : "", k->range ? k->range : "");
                for (const KeyChoice *c = k->choices; c && c->word; c++)
                        printf("%s%s", c == k->choices ? "" : " ", c->word);
                printf("\n");
        }
        for (size_t i = 0; i < n; i++)
                printf("software\t%s\t%s\n", events[i].name, events[i].alias ? events[i].alias : "");
        return 0;
}
