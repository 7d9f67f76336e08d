/* Refusals with their explanation. */
#include "daemon/base/error.h"

#include <stdio.h>

int refuse(Explanation *e, Refusal refusal, const char *reason, const char *format, ...) {
        va_list ap;

        assert(refusal > 0 && refusal < _REFUSED_MAX);
        if (e) {
                va_start(ap, format);
                (void)vsnprintf(e->text, sizeof(e->text), format, ap); /* a longer text is cut */
                va_end(ap);
                e->reason = reason;
                e->position = 0;
        }
        return refusal;
}
