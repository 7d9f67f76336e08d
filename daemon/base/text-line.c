#include "daemon/base/text-line.h"

#include <stdarg.h>
#include <stdio.h>

void text_line_add(TextLine *l, const char *format, ...) {
        va_list ap;
        int n;

        if (l->used + 1 >= l->size)
                return;
        va_start(ap, format);
        n = vsnprintf(l->text + l->used, l->size - l->used, format, ap);
        va_end(ap);
        l->used = n < 0 ? l->used : l->used + (size_t)n < l->size ? l->used + (size_t)n : l->size - 1;
}
