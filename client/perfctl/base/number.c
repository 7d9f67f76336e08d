/* How large a number may be is the daemon's to say, in its own words, as long as it fits on the wire at all. */
#include "client/perfctl/base/number.h"

#include <inttypes.h>

#include "client/perfctl/base/quantity.h"

int number_parse(const Perfctl *p, const char *label, const char *text, uint64_t *ret) {
        if (!text || (quantity_parse_number(text, ret) && *ret > 0))
                return 0;
        if (quantity_is_too_large(text))
                return perfctl_fail(p, PERFCTL_USAGE, "%s'%s' is too large: the maximum is %" PRIu64, label, text, UINT64_MAX);
        return perfctl_fail(p, PERFCTL_USAGE, "%s'%s' is not a number above 0", label, text);
}
