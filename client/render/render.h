/* For values: text that may be longer than its room. Like snprintf(3): what does not fit is counted and not written. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Render {
        char *to;
        size_t size, length;
} Render;

void render_some(Render *r, const char *bytes, size_t n);
static inline void render_bytes(Render *r, const char *bytes, size_t n) {
        if (r->length >= r->size || n > r->size - r->length) {
                render_some(r, bytes, n); /* what fits */
                return;
        }
        memcpy(r->to + r->length, bytes, n);
        r->length += n;
}
void render_string(Render *r, const char *s);
/* "-5", "0x1f", without printf(3). */
void render_signed(Render *r, int64_t number);
void render_unsigned(Render *r, uint64_t number);
void render_hex(Render *r, uint64_t number);
/* Of at most 63 characters. */
__attribute__((format(printf, 2, 3))) void render_number(Render *r, const char *format, ...);
/* Ends it by a zero; the length that the whole text has. */
size_t render_end(Render *r);
