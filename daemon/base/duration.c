/* A message names a time so that it can be written into a configuration as it is: perfd.yaml(5). */
#include "daemon/base/duration.h"

#include <stdio.h>

#include "daemon/base/cleanup.h"

const char *duration_text(uint64_t nsec, char to[static DURATION_SIZE]) {
        static const struct {
                const char *word;
                uint64_t factor; /* to the next one */
        } units[] = { { "ns", 1000 }, { "us", 1000 }, { "ms", 1000 }, { "s", 60 }, { "min", 60 }, { "h", 1 } };
        unsigned unit = 0;

        for (; unit < ARRAY_SIZE(units) - 1 && nsec > 0 && nsec % units[unit].factor == 0; unit++)
                nsec /= units[unit].factor;
        (void)snprintf(to, DURATION_SIZE, "%llu%s", (unsigned long long)nsec, units[unit].word);
        return to;
}
