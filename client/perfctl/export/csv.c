/*
 * The header has the fields of all events, and which there are is known when the last sample was read: an event says its fields with its
 * first sample, and a pipe is read once. So lines go to a temporary file, and behind the header with what they lack at their ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/print/csv.h"
#include "client/perfctl/export/export.h"

/* What each sample has, in the words of JSON; a field of the same name is called fields.NAME. */
static const char *const fixed[] = { "time",      "event",  "cpu", "pid",     "tid",  "comm",
                                     "container", "period", "ip",  "address", "stack" };

#define N_FIXED (sizeof(fixed) / sizeof(*fixed))
#define NO_FIELD SIZE_MAX

/* Of an event: its field for each column behind the fixed ones that there were when its first sample came. */
typedef struct EventColumns {
        uint32_t id;
        size_t *fields;
        size_t n;
} EventColumns;

typedef struct Csv {
        Output *lines;
        bool is_terminal;
        char **columns; /* names */
        size_t n_columns;
        EventColumns *events;
        size_t n_events, last; /* last: of the sample before */
} Csv;

static size_t column_of(Csv *c, const char *field) {
        char *name = NULL;

        for (size_t i = 0; i < N_FIXED && !name; i++)
                if (strcmp(fixed[i], field) == 0 && asprintf(&name, "fields.%s", field) < 0)
                        name = must_have(NULL);
        name = name ? name : must_have(strdup(field));
        for (size_t i = 0; i < c->n_columns; i++)
                if (strcmp(c->columns[i], name) == 0) {
                        free(name);
                        return i;
                }
        c->columns = must_have(reallocarray(c->columns, c->n_columns + 1, sizeof(*c->columns)));
        c->columns[c->n_columns] = name;
        return c->n_columns++;
}

static void add_event(Csv *c, const perfd_event *event) {
        EventColumns e = { .id = event->id };

        for (size_t i = 0; i < event->n_fields; i++)
                (void)column_of(c, event->fields[i].name);
        e.n = c->n_columns;
        e.fields = must_have(calloc(e.n + 1, sizeof(*e.fields)));
        for (size_t i = 0; i < e.n; i++)
                e.fields[i] = NO_FIELD;
        for (size_t i = 0; i < event->n_fields; i++)
                e.fields[column_of(c, event->fields[i].name)] = i;
        c->events = must_have(reallocarray(c->events, c->n_events + 1, sizeof(*c->events)));
        c->events[c->n_events++] = e;
}

static const EventColumns *find_event(Csv *c, const perfd_event *event) {
        if (c->last < c->n_events && c->events[c->last].id == event->id)
                return &c->events[c->last];
        for (c->last = 0; c->last < c->n_events; c->last++)
                if (c->events[c->last].id == event->id)
                        return &c->events[c->last];
        add_event(c, event);
        return &c->events[c->last];
}

static void put_string(const Csv *c, const char *text) {
        csv_put_text(c->lines, (perfd_text){ .bytes = text, .length = strlen(text) }, c->is_terminal);
}

static void put_one(Output *o, const perfd_field *f, uint64_t number) {
        if (f->kind == PERFD_SIGNED)
                output_put_signed(o, (int64_t)number);
        else if (f->kind == PERFD_BOOL && number <= 1)
                output_put_string(o, number ? "true" : "false");
        else
                output_put_number(o, number);
}

/* As JSON has it. */
static void put_value(const Csv *c, const perfd_value *v) {
        Output *o = c->lines;

        if (v->field->kind == PERFD_TEXT && !v->fault)
                csv_put_text(o, v->text, c->is_terminal);
        else if (v->field->kind == PERFD_BYTES)
                output_put_hex_bytes(o, v->text.bytes, v->text.length);
        else if (v->field->kind != PERFD_TEXT && v->field->count == 1)
                put_one(o, v->field, v->numbers[0]);
        else if (v->field->kind != PERFD_TEXT) {
                output_put_string(o, "\"[");
                for (size_t i = 0; i < v->count; i++) {
                        if (i > 0)
                                output_put_char(o, ',');
                        put_one(o, v->field, v->numbers[i]);
                }
                output_put_string(o, "]\"");
        }
}

static void put_address(Output *o, uint64_t address) {
        output_put_char(o, ',');
        if (address == 0)
                return;
        output_put(o, "0x", 2);
        output_put_hex(o, address);
}

/* As folded stacks have it, the outermost first, without the comm; no value if there are no frames. */
static void put_stack(const Csv *c, const SourceSample *sample) {
        char *text = NULL;
        size_t size = 0;
        FILE *f;

        output_put_char(c->lines, ',');
        if (sample->n_frames == 0)
                return;
        f = must_have(open_memstream(&text, &size));
        for (size_t i = sample->n_frames; i-- > 0;) {
                const NamedFrame *frame = &sample->frames[i];
                char *unnamed = frame->name->symbol.length > 0 ? NULL : frame_name_of_file(frame->name->dso);

                for (const char *at = unnamed ? unnamed : frame->name->symbol.bytes; *at; at++)
                        (void)putc(*at == ';' ? ':' : *at, f);
                (void)fputs(frame->is_kernel ? "_[k]" : "", f);
                (void)fputs(i > 0 ? ";" : "", f);
                free(unnamed);
        }
        if (fclose(f) != 0)
                (void)must_have(NULL);
        csv_put_text(c->lines, (perfd_text){ .bytes = text, .length = size }, c->is_terminal);
        free(text);
}

static void put_fixed(const Csv *c, const SourceSample *sample) {
        const perfd_item *item = sample->item;
        const perfd_process *process = perfd_item_process(item);
        const uint64_t numbers[] = { perfd_item_cpu(item), perfd_item_pid(item), perfd_item_tid(item) };
        Output *o = c->lines;

        output_put_number(o, perfd_item_time(item));
        output_put_char(o, ',');
        put_string(c, sample->event);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
                output_put_char(o, ',');
                if (i > 0 || numbers[i] != PERFD_CPU_NONE)
                        output_put_number(o, numbers[i]);
        }
        output_put_char(o, ',');
        csv_put_text(o, perfd_item_comm(item), c->is_terminal);
        output_put_char(o, ',');
        if (process && *process->container)
                put_string(c, process->container);
        output_put_char(o, ',');
        if (perfd_item_period(item) > 0)
                output_put_number(o, perfd_item_period(item));
        put_address(o, perfd_item_ip(item));
        put_address(o, perfd_item_address(item));
        put_stack(c, sample);
}

static bool take(void *userdata, const SourceSample *sample) {
        Csv *c = userdata;
        const EventColumns *e = find_event(c, perfd_item_event(sample->item));
        perfd_value v;

        put_fixed(c, sample);
        for (size_t i = 0; i < e->n; i++) {
                output_put_char(c->lines, ',');
                if (e->fields[i] != NO_FIELD && perfd_item_get(sample->item, e->fields[i], &v))
                        put_value(c, &v);
        }
        output_put_char(c->lines, '\n');
        return c->lines->error == 0;
}

/* The header, and the lines behind it. */
static int put_all(const Csv *c, int lines, Output *out) {
        for (size_t i = 0; i < N_FIXED; i++) {
                output_put_string(out, i > 0 ? "," : "");
                output_put_string(out, fixed[i]);
        }
        for (size_t i = 0; i < c->n_columns; i++) {
                output_put_char(out, ',');
                csv_put_text(out, (perfd_text){ .bytes = c->columns[i], .length = strlen(c->columns[i]) }, c->is_terminal);
        }
        output_put_char(out, '\n');
        return csv_copy(out, lines, N_FIXED + c->n_columns);
}

static int export_lines(Perfctl *p, SampleSource source, Csv *c, int lines, Output *out, bool *ret_is_whole) {
        int code, r = 0;

        source.has_names = true;
        source.order = PERFD_RECORDING_ORDER_TIME;
        source.userdata = c;
        source.take = take;
        code = sample_source_run(p, &source);
        output_flush(c->lines);
        if (c->lines->error != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "a temporary file, which has the lines until all columns are known: %s; TMPDIR says "
                                    "where it is", strerror(c->lines->error));
        r = put_all(c, lines, out);
        output_flush(out);
        if (r != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "a temporary file: %s", strerror(-r));
        *ret_is_whole = out->error == 0 && (code == 0 || c->n_events > 0);
        if (out->error != 0 && out->error != EPIPE) /* nobody reads it any more */
                return perfctl_fail(p, PERFCTL_FAILED, "%s", strerror(out->error));
        return code;
}

static void csv_deinit(Csv *c) {
        for (size_t i = 0; i < c->n_events; i++)
                free(c->events[i].fields);
        for (size_t i = 0; i < c->n_columns; i++)
                free(c->columns[i]);
        free(c->events);
        free(c->columns);
        free(c->lines);
}

/* Without a name, where the library has its own: below TMPDIR. -errno */
static int open_temporary(void) {
        const char *folder = getenv("TMPDIR");
        char *path;
        int fd;

        if (asprintf(&path, "%s/perfctl.XXXXXX", folder && *folder ? folder : "/var/tmp") < 0)
                path = must_have(NULL);
        fd = mkostemp(path, O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
        if (fd >= 0)
                (void)unlink(path);
        free(path);
        return fd;
}

int export_csv(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole) {
        Csv c = { .is_terminal = out == stdout && p->human };
        const int fd = open_temporary();
        Output *copy;
        int code;

        if (fd < 0)
                return perfctl_fail(p, PERFCTL_FAILED, "a temporary file, which has the lines until all columns are known: %s; TMPDIR says "
                                    "where it is", strerror(-fd));
        c.lines = must_have(malloc(sizeof(*c.lines)));
        output_init(c.lines, fd);
        copy = must_have(malloc(sizeof(*copy)));
        output_init(copy, fileno(out));
        code = export_lines(p, source, &c, fd, copy, ret_is_whole);
        (void)close(fd);
        csv_deinit(&c);
        free(copy);
        return code;
}
