/*
 * How wide they have to be is not known before the stream has ended: each grows with what came, up to a limit, so that it is
 * only the first lines that stand elsewhere.
 */
#include "client/perfctl/item/columns.h"

#include <inttypes.h>
#include <stdio.h>

#include "client/perfctl/base/text.h"

#define WIDTH_MAX ((size_t)48)

bool item_columns_add(ItemColumns *c, ItemColumn column) {
        for (size_t i = 0; i < c->n; i++)
                if (c->list[i] == column)
                        return false;
        c->list[c->n] = column;
        c->widths[c->n] = strlen(item_column_heading(c, c->n));
        c->n++;
        return true;
}

const char *item_column_heading(const ItemColumns *c, size_t i) {
        static const char *const headings[] = {
                [COLUMN_UID] = "UID", [COLUMN_EXE] = "EXE", [COLUMN_CGROUP] = "CGROUP", [COLUMN_CONTAINER] = "CONTAINER",
                [COLUMN_UNIT] = "UNIT",
        };

        return headings[c->list[i]];
}

static perfd_text text_of(const char *s) {
        return (perfd_text){ .bytes = s, .length = strlen(s) };
}

/* number: room for a uid. */
static perfd_text column_text(ItemColumn column, const perfd_process *process, char number[static 16]) {
        switch (column) {
        case COLUMN_UID:
                (void)snprintf(number, 16, "%" PRIu32, process->uid);
                return text_of(process->has_uid ? number : "");
        case COLUMN_EXE:
                return process->executable;
        case COLUMN_CGROUP:
                return process->cgroup;
        case COLUMN_CONTAINER:
                return (perfd_text){ .bytes = process->container, .length = strnlen(process->container, CONTAINER_ID_SHOWN) };
        case COLUMN_UNIT:
                return text_of(process->unit);
        case _ITEM_COLUMN_MAX:
                break;
        }
        return text_of("");
}

size_t item_column_put(ItemColumns *c, size_t i, Output *o, const perfd_process *process) {
        char number[16];
        perfd_text text = process ? column_text(c->list[i], process, number) : text_of("");
        size_t width;

        if (text.length == 0)
                text = text_of("-");
        text_put(o, text.bytes, text.length);
        width = text_width(text.bytes, text.length);
        if (width > c->widths[i])
                c->widths[i] = width < WIDTH_MAX ? width : WIDTH_MAX;
        return width;
}
