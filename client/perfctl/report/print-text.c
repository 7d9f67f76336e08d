#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfctl/item/columns.h"
#include "client/perfctl/report/print.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/text.h"

#define CALL_INDENT 2
#define COLUMNS_BEFORE_KEYS 5
#define NAME_MAX_SHOWN ((size_t)8192) /* bytes of a call's name: JSON has all of it */
#define PERCENT_SIZE 32

static const char *percent_text(char *to, double percent) {
        (void)snprintf(to, PERCENT_SIZE, "%.2f%%", percent);
        return to;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

typedef struct CallLines {
        const Shown *shown;
        const ShownTable *table;
        FILE *file;
        Output *line; /* one is escaped in it, as all text is */
        const ReportForm *form;
} CallLines;

static void put_name(Output *o, perfd_text t) {
        text_put(o, t.bytes, t.length < NAME_MAX_SHOWN ? t.length : NAME_MAX_SHOWN);
}

static void put_text(Output *o, const Shown *s, uint32_t text) {
        put_name(o, text_ids_get(s->texts, text));
}

/* As perf-report(1) shows files: without their folders. */
static perfd_text file_name(const ReportForm *form, perfd_text path) {
        const char *slash = form->has_paths || path.length == 0 ? NULL : memrchr(path.bytes, '/', path.length - 1);
        const size_t n = slash ? (size_t)(slash + 1 - path.bytes) : 0;

        return (perfd_text){ .bytes = path.bytes + n, .length = path.length - n };
}

/* percent: "" where it is that of the line above. */
static void put_line(const CallLines *l, size_t depth, const char *percent, const CallNode *node) {
        const FrameId *frame = &l->shown->frames->list[node->frame];
        const perfd_text symbol = text_ids_get(l->shown->texts, frame->symbol);

        output_init(l->line, -1);
        if (l->form->is_human)
                output_print(l->line, "%*s%7s  ", (int)(CALL_INDENT * (depth + 4)), "", percent);
        else
                output_print(l->line, "\t%s\t%*s", percent, (int)(CALL_INDENT * depth), "");
        put_text(l->line, l->shown, frame->symbol);
        if (symbol.length > 2 && memcmp(symbol.bytes, "0x", 2) == 0 && frame->dso != ID_NONE) {
                output_put_string(l->line, " (");
                put_name(l->line, file_name(l->form, text_ids_get(l->shown->texts, frame->dso)));
                output_put_char(l->line, ')');
        }
        if (frame->is_inlined)
                output_put_string(l->line, " (inlined)");
        output_put_char(l->line, '\n');
        (void)fwrite(l->line->bytes, 1, l->line->n, l->file);
}

/* Where there is one way on for all of a node's samples, the lines stand below each other without saying so again. */
static void put_nodes(const CallLines *l, size_t depth, CallNodes nodes) {
        const CallNode *list = l->table->calls->nodes;

        for (uint32_t i = nodes.first; i < nodes.first + nodes.n; i++) {
                const CallNode *node = &list[i];
                char percent[PERCENT_SIZE];

                put_line(l, depth, percent_text(percent, shown_share(l->shown, node->sum, l->table->all)), node);
                while (node->below.n == 1 && list[node->below.first].sum.samples == node->sum.samples) {
                        node = &list[node->below.first];
                        put_line(l, depth, "", node);
                }
                put_nodes(l, depth + 1, node->below);
        }
}

static void put_calls_below(Table *t, const CallLines *lines, uint32_t row) {
        CallLines l = *lines;
        size_t size;
        char *text;

        l.file = must_have(open_memstream(&text, &size));
        put_nodes(&l, 0, call_tree_of_row(l.table->calls, row));
        must_have(fclose(l.file) == 0 ? text : NULL);
        table_put_below(t, text);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------------- */

static void put_cell(Table *t, perfd_text text) {
        char *copy = must_have(strndup(text.bytes, text.length));

        table_put(t, copy);
        free(copy);
}

/* "[k] NAME" of the kernel, "[.] NAME" of a program: as perf-report(1). */
static void put_symbol(Table *t, perfd_text name, bool is_kernel) {
        char *text;

        must_have(asprintf(&text, "%s %.*s", is_kernel ? "[k]" : "[.]", (int)name.length, name.bytes) < 0 ? NULL : text);
        table_put(t, text);
        free(text);
}

static void put_value(Table *t, const Shown *s, const Dimension *d, uint64_t value, const ReportForm *form) {
        perfd_text text;

        if (value == DIMENSION_ABSENT) {
                table_put(t, dimension_is_of_frame(d) ? "[unknown]" : "-");
                return;
        }
        if (dimension_is_number(d)) {
                table_put_number(t, value);
                return;
        }
        text = text_ids_get(s->texts, (uint32_t)value);
        if (d->kind == DIMENSION_CONTAINER && text.length > CONTAINER_ID_SHOWN)
                text.length = CONTAINER_ID_SHOWN;
        if (d->kind == DIMENSION_SYMBOL)
                put_symbol(t, text, value & DIMENSION_OF_KERNEL);
        else
                put_cell(t, d->kind == DIMENSION_DSO ? file_name(form, text) : text);
}

static void put_percent(Table *t, double percent) {
        char text[PERCENT_SIZE];

        table_put(t, percent_text(text, percent));
}

static void put_change(Table *t, const Shown *s, const ShownTable *of, const ShownRow *row) {
        char text[PERCENT_SIZE];

        put_percent(t, shown_row_old_share(s, of, row));
        (void)snprintf(text, sizeof(text), "%+.2f%%", shown_row_share(s, of, row) - shown_row_old_share(s, of, row));
        table_put(t, text);
}

/* "cpu-clock", or "cpu-clock#2" of several of that name. */
static void put_event(Table *t, const Shown *s, const ShownTable *of) {
        const perfd_text name = of->event == ID_NONE ? (perfd_text){ .bytes = "all", .length = 3 } : text_ids_get(s->texts, of->event);
        char *text;

        if (of->nth == 0) {
                put_cell(t, name);
                return;
        }
        must_have(asprintf(&text, "%.*s#%" PRIu32, (int)name.length, name.bytes, of->nth) < 0 ? NULL : text);
        table_put(t, text);
        free(text);
}

static void put_rows(Table *t, const Shown *s, const ShownTable *of, const CallLines *lines) {
        const bool has_children = s->options->has_children;

        for (size_t i = 0; i < of->n_rows; i++) {
                const ShownRow *row = &of->rows[i];
                const RowSum *sum = has_children ? &row->total : &row->self;

                if (!lines->form->is_human)
                        put_event(t, s, of);
                if (s->has_old)
                        put_change(t, s, of, row);
                else {
                        put_percent(t, shown_row_share(s, of, row));
                        if (has_children)
                                put_percent(t, shown_share(s, row->self, of->all));
                }
                table_put_number(t, sum->samples);
                table_put_number(t, sum->period);
                for (size_t k = 0; k < s->options->n_keys; k++)
                        put_value(t, s, &s->options->keys[k], row->key[k], lines->form);
                if (of->calls && row->row != ID_NONE)
                        put_calls_below(t, lines, row->row);
        }
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------ */

static void begin_table(Table *t, const Shown *s, bool is_human, char **headings) {
        const char **columns = must_have(calloc(s->options->n_keys + COLUMNS_BEFORE_KEYS, sizeof(*columns)));
        size_t n = 0;

        if (!is_human)
                columns[n++] = "EVENT";
        if (s->has_old) {
                columns[n++] = ">BASELINE";
                columns[n++] = ">DELTA";
        } else if (s->options->has_children) {
                columns[n++] = ">TOTAL";
                columns[n++] = ">SELF";
        } else
                columns[n++] = ">OVERHEAD";
        columns[n++] = ">SAMPLES";
        columns[n++] = ">PERIOD";
        for (size_t i = 0; i < s->options->n_keys; i++)
                columns[n++] = headings[i];
        table_init(t, is_human, columns, n);
        t->continues = false;
        t->is_commented = true;
        for (size_t i = 0; i < s->options->n_keys; i++)
                if (s->options->keys[i].kind == DIMENSION_SYMBOL)
                        t->cut_first = n - s->options->n_keys + i;
        free(columns);
}

static void put_title(const Shown *s, const ShownTable *t, Output *o) {
        if (t->event == ID_NONE)
                output_put_string(o, "all events");
        else
                put_text(o, s, t->event);
        if (t->nth > 0)
                output_print(o, "#%" PRIu32, t->nth);
        if (s->has_old)
                output_print(o, ": %" PRIu64 " samples, periods of %" PRIu64 "; before: %" PRIu64 " samples, periods of %" PRIu64 "\n",
                             t->all.samples, t->all.period, t->old_all.samples, t->old_all.period);
        else
                output_print(o, ": %" PRIu64 " samples, periods of %" PRIu64 "\n", t->all.samples, t->all.period);
}

static char **headings_new(const SumsOptions *options) {
        char **headings = must_have(calloc(options->n_keys, sizeof(*headings)));

        for (size_t i = 0; i < options->n_keys; i++) {
                headings[i] = must_have(strdup(options->keys[i].text));
                for (char *at = headings[i]; *at; at++)
                        *at = (char)toupper((unsigned char)*at);
        }
        return headings;
}

static void print_human(const Shown *s, Output *o, CallLines *lines, char **headings) {
        Table t;

        for (size_t i = 0; i < s->n_tables; i++) {
                lines->table = &s->tables[i];
                begin_table(&t, s, true, headings);
                put_rows(&t, s, lines->table, lines);
                if (i > 0)
                        output_put_char(o, '\n');
                put_title(s, lines->table, o);
                table_print(&t, o);
                table_deinit(&t);
        }
}

static void print_plain(const Shown *s, Output *o, CallLines *lines, char **headings) {
        Table t;

        begin_table(&t, s, false, headings);
        for (size_t i = 0; i < s->n_tables; i++) {
                lines->table = &s->tables[i];
                output_put_string(o, "# ");
                put_title(s, lines->table, o);
                put_rows(&t, s, lines->table, lines);
        }
        table_print(&t, o);
        table_deinit(&t);
}

void report_print_text(const Shown *s, Output *o, const ReportForm *form) {
        CallLines lines = { .shown = s, .line = must_have(malloc(sizeof(*lines.line))), .form = form };
        char **headings = headings_new(s->options);

        (form->is_human ? print_human : print_plain)(s, o, &lines, headings);
        for (size_t i = 0; i < s->options->n_keys; i++)
                free(headings[i]);
        free(headings);
        free(lines.line);
}
