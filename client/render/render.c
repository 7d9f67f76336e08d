#include "client/render/render.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void render_bytes(Render *r, const char *bytes, size_t n) {
        if (r->length < r->size) {
                size_t room = r->size - r->length;

                memcpy(r->to + r->length, bytes, n < room ? n : room);
        }
        r->length += n;
}

void render_string(Render *r, const char *s) {
        render_bytes(r, s, strlen(s));
}

void render_number(Render *r, const char *format, ...) {
        char text[64];
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        render_string(r, text);
}

size_t render_end(Render *r) {
        if (r->size > 0)
                r->to[r->length < r->size ? r->length : r->size - 1] = '\0';
        return r->length;
}
