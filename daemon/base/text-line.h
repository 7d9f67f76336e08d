/* A line of text that is put together in a caller's buffer, as much of it as fits. Any thread. */
#pragma once

#include <stddef.h>

typedef struct TextLine {
        char *text; /* ends with a zero; empty at first */
        size_t size, used; /* bytes; of the text, without its zero */
} TextLine;

/* As printf(3), behind what is there. What does not fit is left out. */
void text_line_add(TextLine *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
