/* For values: text that may be longer than its room. Like snprintf(3): what does not fit is counted and not written. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Render {
        char *to;
        size_t size, length;
} Render;

void render_bytes(Render *r, const char *bytes, size_t n);
void render_string(Render *r, const char *s);
/* Of at most 63 characters. */
__attribute__((format(printf, 2, 3))) void render_number(Render *r, const char *format, ...);
/* Ends it by a zero; the length that the whole text has. */
size_t render_end(Render *r);
