/* A cell is made before it is put, because a terminal wants to know how wide it is. */
#include "client/perfctl/samples/sample-columns.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/text.h"
#include "client/perfctl/item/line.h"
#include "client/perfctl/base/time-text.h"
#include "client/perfctl/print/list-text.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[]"
#define VALUE_ROOM ((size_t)512) /* most are shorter */
#define WIDTH_MAX ((size_t)40)   /* a longer cell moves what is behind it */

static const char *const names[N_COLUMN_NAMES] = {
        [COLUMN_COMM] = "comm",     [COLUMN_TID] = "tid",       [COLUMN_PID] = "pid",     [COLUMN_TIME] = "time",
        [COLUMN_CPU] = "cpu",       [COLUMN_EVENT] = "event",   [COLUMN_PERIOD] = "period", [COLUMN_ADDRESS] = "addr",
        [COLUMN_TRACE] = "trace",   [COLUMN_IP] = "ip",         [COLUMN_SYMBOL] = "sym",  [COLUMN_PLACE] = "symoff",
        [COLUMN_DSO] = "dso",       [COLUMN_LINE] = "srcline",
};

/* Of most cells: the first lines stand as those behind them then. */
static const size_t widths[N_COLUMN_NAMES] = {
        [COLUMN_COMM] = 15, [COLUMN_TID] = 7,    [COLUMN_PID] = 7, [COLUMN_TIME] = TIME_WIDTH(TIME_CLOCK), [COLUMN_CPU] = 3,     [COLUMN_EVENT] = 16,
        [COLUMN_PERIOD] = 9, [COLUMN_ADDRESS] = 16, [COLUMN_IP] = 16, [COLUMN_SYMBOL] = 28,                [COLUMN_PLACE] = 32, [COLUMN_DSO] = 20,
};

static bool is_of_frame(const SampleColumn *column) {
        return column->kind >= COLUMN_IP && column->kind <= COLUMN_LINE;
}

/* ---- the command line ------------------------------------------------------------------------------------------------------------ */

static int parse_word(SampleColumn *column, const Perfctl *p, const char *word) {
        *column = (SampleColumn){ .kind = COLUMN_FIELD, .text = word, .width = strlen(word) };
        for (size_t i = 0; i < N_COLUMN_NAMES; i++)
                if (strcmp(names[i], word) == 0) {
                        column->kind = (ColumnKind)i;
                        column->width = column->width > widths[i] ? column->width : widths[i];
                        return 0;
                }
        if (*word == '+' || *word == '-')
                return perfctl_fail(p, PERFCTL_USAGE, "--fields: '%s' changes " SAMPLE_COLUMNS_DEFAULT ", and others name the columns: either all of them "
                                    "begin with + or -, or none", word);
        if (!*word || word[strspn(word, NAME_CHARACTERS)] || !key_name_init(&column->name, word) || !column->name.field)
                return perfctl_fail(p, PERFCTL_USAGE, "--fields: '%s' is not a field, nor an element of one, as args[2], nor any of "
                                    SAMPLE_COLUMN_NAMES, word);
        return 0;
}

static size_t find_column(const SampleColumns *c, const char *text) {
        size_t i = 0;

        while (i < c->n && strcmp(c->list[i].text, text) != 0)
                i++;
        return i;
}

/* "+srcline" or "-ip". */
static int change(SampleColumns *c, const Perfctl *p, const char *word) {
        size_t i = find_column(c, word + 1);

        if (*word == '+')
                return i < c->n ? 0 : parse_word(&c->list[c->n++], p, word + 1);
        if (*word != '-')
                return perfctl_fail(p, PERFCTL_USAGE, "--fields: '%s' names a column, and others change those of " SAMPLE_COLUMNS_DEFAULT ": either all of "
                                    "them begin with + or -, or none", word);
        if (i == c->n)
                return perfctl_fail(p, PERFCTL_USAGE, "--fields: '%s' is not one of " SAMPLE_COLUMNS_DEFAULT ": it cannot be left out", word + 1);
        c->n--;
        memmove(&c->list[i], &c->list[i + 1], (c->n - i) * sizeof(*c->list));
        return c->n > 0 ? 0 : perfctl_fail(p, PERFCTL_USAGE, "--fields: no column is left");
}

static int add_words(SampleColumns *c, const Perfctl *p, const char *const *words, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = parse_word(&c->list[c->n++], p, words[i]);
        return r;
}

int sample_columns_init(SampleColumns *c, const Perfctl *p, const char *words) {
        const bool changes = *words == '+' || *words == '-';
        size_t n, n_default;
        int r;

        *c = (SampleColumns){ .words = list_split(words, &n), .defaults = list_split(SAMPLE_COLUMNS_DEFAULT, &n_default), .is_padded = p->human };
        c->list = must_have(calloc(n + n_default, sizeof(*c->list)));
        c->cell = must_have(malloc(sizeof(*c->cell)));
        r = changes ? add_words(c, p, c->defaults, n_default) : add_words(c, p, c->words, n);
        for (size_t i = 0; changes && i < n && r == 0; i++)
                r = change(c, p, c->words[i]);
        return r;
}

void sample_columns_deinit(SampleColumns *c) {
        for (size_t i = 0; i < c->n; i++)
                key_name_deinit(&c->list[i].name);
        free(c->list);
        free(c->words);
        free(c->defaults);
        free(c->cell);
        *c = (SampleColumns){ .list = NULL };
}

bool sample_columns_have_names(const SampleColumns *c) {
        bool has = c->has_calls;

        for (size_t i = 0; i < c->n; i++)
                has |= is_of_frame(&c->list[i]) && c->list[i].kind != COLUMN_IP;
        return has;
}

bool sample_columns_have_lines(const SampleColumns *c) {
        for (size_t i = 0; i < c->n; i++)
                if (c->list[i].kind == COLUMN_LINE)
                        return true;
        return false;
}

int sample_columns_check(const SampleColumns *c, const Perfctl *p, const char *input) {
        int r = 0;

        for (size_t i = 0; i < c->n && c->has_heading; i++)
                if (c->list[i].kind == COLUMN_FIELD && !c->list[i].was_found)
                        r = perfctl_fail(p, PERFCTL_FAILED, "%s: no sample has a field '%s', and it is none of " SAMPLE_COLUMN_NAMES, input,
                                         c->list[i].text);
        return r;
}

/* ---- cells: none is empty -------------------------------------------------------------------------------------------------------- */

/* As on the line of the item, with which addresses have no names either: those of a print format are of another boot, or another host. */
static void put_whole(Output *o, const perfd_item *item, size_t i, const perfd_value *v) {
        Kallsyms none = KALLSYMS_NULL;
        const ItemText line = { .out = o, .symbols = &none };

        item_value_put(&line, item, i, v);
}

static void put_value(Output *o, const perfd_value *v) {
        char small[VALUE_ROOM], *text = small;
        size_t n = perfd_value_render(v, small, sizeof(small));

        if (n >= sizeof(small)) {
                text = must_have(malloc(n + 1));
                n = perfd_value_render(v, text, n + 1);
        }
        text_put_value(o, (perfd_text){ .bytes = text, .length = n });
        if (text != small)
                free(text);
}

static void put_field(Output *o, SampleColumn *column, const perfd_item *item) {
        const KeyName *name = &column->name;
        perfd_field element;
        perfd_value v;
        size_t i = 0;

        while (perfd_item_get(item, i, &v) && strcmp(v.field->name, name->field) != 0)
                i++;
        if (!perfd_item_get(item, i, &v))
                return;
        column->was_found = true;
        if (name->element < 0) {
                put_whole(o, item, i, &v);
                return;
        }
        if (v.field->kind == PERFD_TEXT || (uint64_t)name->element >= v.count)
                return;
        element = *v.field;
        element.count = 1;
        v = (perfd_value){ .field = &element, .numbers = v.numbers + name->element, .count = 1 };
        put_value(o, &v);
}

static void put_trace(Output *o, const perfd_item *item) {
        perfd_value v;

        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                if (strncmp(v.field->name, "__", 2) == 0)
                        continue; /* the kernel has added it to those of the event */
                output_put_string(o, o->n > 0 ? " " : "");
                text_put_string(o, v.field->name);
                output_put_char(o, '=');
                put_whole(o, item, i, &v);
        }
}

static void put_task(Output *o, uint32_t number) {
        output_put_signed(o, number == UINT32_MAX ? -1 : (int64_t)number); /* of a task that is gone */
}

static void put_cpu(Output *o, uint32_t cpu) {
        if (cpu == PERFD_CPU_NONE)
                output_put_char(o, '-');
        else
                output_put_number(o, cpu);
}

static void put_text(Output *o, perfd_text text) {
        text_put(o, text.bytes, text.length);
}

/* What has no symbol is told by its address in the file, as report does. */
static void put_symbol(Output *o, const NamedFrame *frame, bool has_offset) {
        const FrameName *name = frame->name;

        if (name->symbol.length == 0 && name->dso.length > 0)
                output_print(o, "0x%" PRIx64, frame->address);
        put_text(o, name->symbol);
        if (name->symbol.length > 0 && frame->is_inlined)
                output_put_string(o, " (inlined)");
        else if (name->symbol.length > 0 && has_offset)
                output_print(o, "+0x%" PRIx64, frame->offset);
}

/* A frame, and the one whose source line it is at. */
typedef struct Row {
        const NamedFrame *frame, *line; /* NULL: it is not known */
} Row;

/* The frames from the i-th on that are one row. Behind them. */
static size_t find_row(const SampleColumns *c, const SourceSample *sample, size_t i, Row *ret) {
        if (i >= sample->n_frames) {
                *ret = (Row){ .frame = NULL };
                return i;
        }
        ret->line = &sample->frames[i];
        while (!c->has_inlined && i + 1 < sample->n_frames && sample->frames[i].is_inlined)
                i++;
        ret->frame = &sample->frames[i];
        return i + 1;
}

static void put_frame(Output *o, ColumnKind kind, const Row *row, uint64_t ip) {
        const NamedFrame *frame = row->frame;

        if (kind == COLUMN_IP && (frame || ip != 0))
                output_put_hex(o, frame ? frame->ip : ip);
        if (frame && (kind == COLUMN_SYMBOL || kind == COLUMN_PLACE))
                put_symbol(o, frame, kind == COLUMN_PLACE);
        if (frame && kind == COLUMN_DSO)
                put_text(o, frame->name->dso);
        if (frame && kind == COLUMN_LINE && row->line->name->file.length > 0) {
                put_text(o, row->line->name->file);
                output_print(o, ":%" PRIu32, row->line->name->line);
        }
        if (o->n == 0)
                output_put_string(o, kind == COLUMN_IP || kind == COLUMN_LINE ? "-" : "[unknown]");
}

static void put_sample(Output *o, SampleColumn *column, const SourceSample *sample, const Row *row) {
        const perfd_item *item = sample->item;
        TimeText time = { .form = TIME_CLOCK };

        switch (column->kind) {
        case COLUMN_COMM:
                put_text(o, perfd_item_comm(item));
                break;
        case COLUMN_TID:
                put_task(o, perfd_item_tid(item));
                break;
        case COLUMN_PID:
                put_task(o, perfd_item_pid(item));
                break;
        case COLUMN_TIME:
                time_text_put(&time, o, perfd_item_time(item), false);
                break;
        case COLUMN_CPU:
                put_cpu(o, perfd_item_cpu(item));
                break;
        case COLUMN_EVENT:
                text_put_string(o, sample->event);
                break;
        case COLUMN_PERIOD:
                output_put_number(o, sample->weight);
                break;
        case COLUMN_ADDRESS:
                output_put_hex(o, perfd_item_address(item));
                break;
        case COLUMN_TRACE:
                put_trace(o, item);
                break;
        case COLUMN_FIELD:
                put_field(o, column, item);
                break;
        default:
                put_frame(o, column->kind, row, perfd_item_ip(item));
        }
        if (o->n == 0)
                output_put_char(o, '-');
}

/* ---- lines ----------------------------------------------------------------------------------------------------------------------- */

/* What is in the cell, as the i-th column. */
static void end_cell(SampleColumns *c, Output *o, size_t i) {
        SampleColumn *column = &c->list[i];
        size_t width;

        output_put(o, c->cell->bytes, c->cell->n);
        if (i + 1 == c->n)
                return;
        if (!c->is_padded) {
                output_put_char(o, '\t');
                return;
        }
        width = text_shown_width(c->cell->bytes, c->cell->n);
        if (width > column->width)
                column->width = width < WIDTH_MAX ? width : WIDTH_MAX;
        output_print(o, "%*s", (int)(width < column->width + 2 ? column->width + 2 - width : 2), "");
}

static void put_heading(SampleColumns *c, Output *o) {
        c->has_heading = true;
        for (size_t i = 0; i < c->n; i++) {
                output_init(c->cell, -1);
                for (const char *at = c->list[i].text; *at; at++)
                        output_put_char(c->cell, (char)toupper((unsigned char)*at));
                end_cell(c, o, i);
        }
        output_put_char(o, '\n');
}

/* In the columns of frames; the others are empty. */
static void put_call(SampleColumns *c, Output *o, const Row *row) {
        for (size_t i = 0; i < c->n; i++) {
                output_init(c->cell, -1);
                if (is_of_frame(&c->list[i]))
                        put_frame(c->cell, c->list[i].kind, row, 0);
                end_cell(c, o, i);
        }
        output_put_char(o, '\n');
}

void sample_columns_print(SampleColumns *c, Output *o, const SourceSample *sample) {
        Row row;
        size_t at = find_row(c, sample, 0, &row);

        if (!c->has_heading)
                put_heading(c, o);
        for (size_t i = 0; i < c->n; i++) {
                output_init(c->cell, -1);
                put_sample(c->cell, &c->list[i], sample, &row);
                end_cell(c, o, i);
        }
        output_put_char(o, '\n');
        while (c->has_calls && at < sample->n_frames) {
                at = find_row(c, sample, at, &row);
                put_call(c, o, &row);
        }
}
