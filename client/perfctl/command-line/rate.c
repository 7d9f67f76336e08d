#include "client/perfctl/command-line/rate.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "client/perfctl/base/number.h"
#include "client/perfctl/base/quantity.h"

#define CLOCK_LEAST 100000 /* ns, of a number that may be meant as another unit */

/* With modifiers, or without. */
static bool is_called(const char *event, const char *name) {
        const size_t n = strlen(name);

        return strncmp(event, name, n) == 0 && (event[n] == '\0' || event[n] == ':');
}

bool rate_is_clock(const char *event) {
        static const char *const clocks[] = { "cpu-clock", "task-clock" };

        for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
                if (is_called(event, clocks[i]))
                        return true;
        return false;
}

/* "r1a8", in hexadecimal digits, and modifiers. */
static bool is_raw(const char *event) {
        const size_t n = event[0] == 'r' ? strspn(event + 1, "0123456789abcdefABCDEF") : 0;

        return n > 0 && (event[n + 1] == '\0' || event[n + 1] == ':');
}

bool rate_is_of_cpu(const char *event) {
        static const char *const names[] = { "cycles", "cpu-cycles", "instructions", "cache-references", "cache-misses", "branches",
                                             "branch-instructions", "branch-misses", "bus-cycles", "ref-cycles",
                                             "stalled-cycles-frontend", "stalled-cycles-backend" };
        static const char *const families[] = { "L1-dcache-", "L1-icache-", "LLC-", "dTLB-", "iTLB-", "cpu/", "cpu_core/", "cpu_atom/" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (is_called(event, names[i]))
                        return true;
        for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
                if (strncmp(event, families[i], strlen(families[i])) == 0)
                        return true;
        return rate_is_clock(event) || is_raw(event);
}

static bool parse_frequency(const char *text, uint64_t *ret) {
        size_t n = strspn(text, "0123456789");
        char digits[24] = "";

        if (n == 0 || n >= sizeof(digits) || strcmp(text + n, "Hz") != 0)
                return false;
        memcpy(digits, text, n);
        return quantity_parse_number(digits, ret) && *ret > 0;
}

/* "1kHz", "0Hz", "2hz": what is meant as a frequency, and is none of its form. */
static bool has_hertz(const char *text) {
        const size_t n = strlen(text);

        return n > 2 && strcasecmp(text + n - 2, "Hz") == 0;
}

int rate_parse(const Perfctl *p, const char *label, const char *text, const char *event, uint64_t *ret_period,
               uint64_t *ret_frequency) {
        int r;

        if (!text || parse_frequency(text, ret_frequency))
                return 0;
        if (quantity_parse_time(text, ret_period) && *ret_period > 0) {
                if (!event || rate_is_clock(event))
                        return 0;
                return perfctl_fail(p, PERFCTL_USAGE, "%s'%s' is a time, which is the period of cpu-clock and task-clock alone: "
                                    "%s is counted by its occurrences, write their number, or a frequency as 99Hz",
                                    label, text, event);
        }
        if (has_hertz(text))
                return perfctl_fail(p, PERFCTL_USAGE, "%s'%s' is no rate: write samples per second as 1000Hz, or with --frequency", label,
                                    text);
        r = number_parse(p, label, text, ret_period);
        if (r != 0 || !event || !rate_is_clock(event) || *ret_period >= CLOCK_LEAST)
                return r;
        return perfctl_fail(p, PERFCTL_USAGE, "%s'%s' is nanoseconds of %s, %" PRIu64 " samples a second on each CPU: write "
                            "%" PRIu64 "Hz for that many samples a second, a time as 1ms, or %" PRIu64 "ns if it is meant",
                            label, text, event, UINT64_C(1000000000) / *ret_period, *ret_period, *ret_period);
}
