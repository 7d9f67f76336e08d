/* Refusals with their explanation, whose text may quote anybody and is printable all the same. */
#include "daemon/base/error.h"

#include <stdio.h>

#include "daemon/base/printable.h"

int refuse(Explanation *e, Refusal refusal, const char *reason, const char *format, ...) {
        va_list ap;

        assert(refusal > 0 && refusal < _REFUSED_MAX);
        if (e) {
                va_start(ap, format);
                (void)vsnprintf(e->text, sizeof(e->text), format, ap); /* a longer text is cut */
                va_end(ap);
                printable_make(e->text, sizeof(e->text));
                e->reason = reason;
                e->position = 0;
                e->list = NULL;
        }
        return refusal;
}

int refuse_kernel_memory(Explanation *e, const char *what) {
        return refuse(e, REFUSED_EXHAUSTED, "no-memory", "%s: the kernel has no memory for it: request less, or raise the limits "
                "of "
                      "perfd's cgroup (MemoryMax=)", what);
}
