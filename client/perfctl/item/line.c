/* What lines of items are made of: columns, pairs, colours. */
#include "client/perfctl/item/line.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/text.h"

#define LINE_NAME_WIDTH ((size_t)16)

void padding_put(Output *o, size_t n) {
        while (n-- > 0)
                output_put_char(o, ' ');
}

void colour_begin(const ItemText *t, const char *colour) {
        if (!t->has_colours)
                return;
        output_put(t->out, "\033[", 2);
        output_put_string(t->out, colour);
        output_put_char(t->out, 'm');
}

void colour_end(const ItemText *t) {
        if (t->has_colours)
                output_put(t->out, "\033[0m", 4);
}

/* Behind a column that is `length` long. */
void column_end(const ItemText *t, size_t length, size_t width) {
        if (t->is_padded) {
                padding_put(t->out, length < width ? width - length : 0);
                output_put(t->out, "  ", 2);
        } else
                output_put_char(t->out, '\t');
}

void pair_begin(ItemText *t, const char *name) {
        if (t->has_pair)
                output_put_char(t->out, ' ');
        else
                column_end(t, 0, 0);
        t->has_pair = true;
        colour_begin(t, COLOUR_NAME);
        text_put_string(t->out, name);
        colour_end(t);
        output_put_char(t->out, '=');
}

void line_begin(ItemText *t, const char *name) {
        if (t->is_padded) {
                padding_put(t->out, LINE_NAME_WIDTH - strlen(name));
                output_put_string(t->out, name);
                output_put_char(t->out, ' ');
        } else {
                output_put_char(t->out, '\t');
                output_put_string(t->out, name);
                output_put_char(t->out, '\t');
        }
}

void item_value_put(const ItemText *t, const perfd_item *item, size_t i, const perfd_value *v) {
        const perfd_symbols symbols = { .size = sizeof(symbols), .find = kallsyms_find, .userdata = t->symbols };
        char small[512], *text = small;
        size_t n = perfd_item_render(item, i, &symbols, small, sizeof(small));

        if (n >= sizeof(small)) {
                text = must_have(malloc(n + 1));
                n = perfd_item_render(item, i, &symbols, text, n + 1);
        }
        if ((v->field->kind == PERFD_TEXT && !v->fault) || (v->field->kind == PERFD_POINTER && v->field->n_values > 0))
                text_put_value(t->out, (perfd_text){ .bytes = text, .length = n });
        else
                text_put(t->out, text, n);
        if (text != small)
                free(text);
}
