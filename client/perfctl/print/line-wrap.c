/* The line is made first, as for a pipe, and then parted where it lies: nobody who writes a part of it has to count columns. */
#include "client/perfctl/print/line-wrap.h"

#include <stdlib.h>

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/terminal.h"
#include "client/perfctl/base/text.h"

#define LINE_ROOM (OUTPUT_SIZE / 2)

void line_wrap_begin(LineWrap *w, Output *o) {
        w->width = terminal_width(o->fd); /* it may have another size than at the line before */
        if (w->width > 0 && OUTPUT_SIZE - o->n < LINE_ROOM)
                output_flush(o);
        w->begin = w->rest = o->n;
        w->written = o->n_flushed;
}

void line_wrap_from_here(LineWrap *w, const Output *o) {
        w->rest = o->n;
}

/* Up to the blank that ends the word; those in quotes are part of it, unless the quotes have no end. */
static size_t word_length(const char *at, size_t n) {
        size_t first = n, i = 0;
        bool quoted = false;

        for (; i < n && (quoted || at[i] != ' '); i++) {
                if (at[i] == ' ' && i < first)
                        first = i;
                quoted = quoted != (at[i] == '"');
                i += at[i] == '\\';
        }
        return quoted ? first : i < n ? i : n;
}

static void put_words(Output *o, const char *text, size_t n, size_t column, size_t width) {
        for (size_t i = 0, blanks = 0, length; i < n; i += length, blanks = 0) {
                size_t columns;

                while (i < n && text[i] == ' ') {
                        i++;
                        blanks++;
                }
                length = word_length(text + i, n - i);
                columns = text_shown_width(text + i, length);
                if (length > 0 && column + blanks + columns > width && column > LINE_WRAP_INDENT) {
                        output_print(o, "\n%*s", (int)LINE_WRAP_INDENT, "");
                        column = LINE_WRAP_INDENT;
                } else if (length > 0) {
                        output_print(o, "%*s", (int)blanks, "");
                        column += blanks;
                }
                output_put(o, text + i, length);
                column += columns;
        }
}

void line_wrap_end(LineWrap *w, Output *o) {
        size_t from = w->rest, n;
        char *rest;

        if (w->width == 0 || o->n_flushed != w->written || text_shown_width(o->bytes + w->begin, o->n - w->begin) <= w->width)
                return;
        while (from > w->begin && o->bytes[from - 1] == ' ')
                from--;
        n = o->n - from;
        rest = must_have(malloc(n));
        memcpy(rest, o->bytes + from, n);
        o->n = from;
        put_words(o, rest, n, text_shown_width(o->bytes + w->begin, from - w->begin), w->width);
        free(rest);
}
