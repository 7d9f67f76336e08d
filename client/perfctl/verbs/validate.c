/*
 * The daemon checks files that it need not be able to read: their bytes are sent, and only the daemon knows the host that
 * they have to fit. Errors are the output, so they go to stdout.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/drop-ins.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/text.h"

/* Of all that can be said; only the first makes a configuration wrong. */
static const char *const kinds[] = { "mistake", "warning", "note" };

typedef enum Kind { KIND_ERROR, KIND_WARNING, KIND_NOTE } Kind;

static void print_text(Perfctl *p, Kind kind, const perfd_diagnostic_row *row) {
        text_put(&p->out, row->path, strlen(row->path));
        if (row->line > 0)
                output_print(&p->out, ":%u:%u", row->line, row->column);
        output_print(&p->out, ": %s%s", kind != KIND_ERROR ? kinds[kind] : "", kind != KIND_ERROR ? ": " : "");
        text_put(&p->out, row->text, strlen(row->text));
        output_put_char(&p->out, '\n');
}

static void print_row(Perfctl *p, Kind kind, const perfd_diagnostic_row *row) {
        Json j = json_of(&p->out);

        if (!p->json) {
                print_text(p, kind, row);
                return;
        }
        json_begin(&j, '{');
        JSON_STRING(&j, "kind", kinds[kind]);
        JSON_STRING(&j, "path", row->path);
        JSON_NUMBER(&j, "line", row->line);
        JSON_NUMBER(&j, "column", row->column);
        JSON_STRING(&j, "text", row->text);
        JSON_STRING(&j, "reason", row->reason);
        json_end(&j, '}');
        json_end_line(&j);
}

/* The wire's strings end there, so that nobody would read what is behind. */
static bool has_zero_byte(Perfctl *p, const ConfigFile *f) {
        const char *zero = f->n > 0 ? memchr(f->bytes, '\0', f->n) : NULL;
        perfd_diagnostic_row row = { .path = f->path, .line = 1, .column = 1, .text = "a zero byte: a configuration is text",
                                  .reason = "" };

        if (!zero)
                return false;
        for (const char *c = f->bytes; c < zero; c++) {
                row.column = *c == '\n' ? 1 : row.column + 1;
                row.line += *c == '\n';
        }
        print_row(p, KIND_ERROR, &row);
        return true;
}

static void print_skipped(Perfctl *p, const ConfigFiles *files) {
        for (size_t i = 0; i < files->n_skipped; i++)
                print_row(p, KIND_WARNING,
                          &(perfd_diagnostic_row){
                                  .path = files->skipped[i],
                                  .reason = "",
                                  .text = "it is ignored: only files whose names end with .yaml are read" });
}

typedef struct Row {
        const perfd_diagnostic_row *row;
        Kind kind;
        size_t file, order; /* which of the files; as the daemon has it */
} Row;

static int compare_rows(const void *a, const void *b) {
        const Row *x = a, *y = b;

        if (x->file != y->file)
                return x->file < y->file ? -1 : 1;
        if (x->row->line != y->row->line)
                return x->row->line - 1 < y->row->line - 1 ? -1 : 1; /* 0, which is of no line, is the last one */
        if (x->row->column != y->row->column)
                return x->row->column < y->row->column ? -1 : 1;
        return x->order < y->order ? -1 : 1;
}

static void add_row(Row **rows, size_t *n, const ConfigFiles *files, Kind kind, const perfd_diagnostic_row *row) {
        size_t file = 0;

        while (file < files->n && strcmp(files->items[file].path, row->path) != 0)
                file++;
        *rows = must_have(reallocarray(*rows, *n + 1, sizeof(**rows)));
        (*rows)[*n] = (Row){ .row = row, .kind = kind, .file = file, .order = *n };
        (*n)++;
}

/* By the places in the files, as `perfd --check` has them. */
static int print_result(Perfctl *p, const ConfigFiles *files, const perfd_result *result) {
        bool is_strict = perfctl_get(p, "strict") != NULL, is_wrong = false, has_notes = false;
        const perfd_diagnostic_row *row;
        Row *rows = NULL;
        size_t n = 0;

        for (size_t i = 0; (row = perfd_result_error(result, i)); i++) {
                add_row(&rows, &n, files, KIND_ERROR, row);
                is_wrong = true;
        }
        for (size_t i = 0; (row = perfd_result_warning(result, i)); i++) {
                bool is_note = *row->reason;

                add_row(&rows, &n, files, is_note && is_strict ? KIND_ERROR : is_note ? KIND_NOTE : KIND_WARNING, row);
                is_wrong = is_wrong || (is_note && is_strict);
                has_notes = has_notes || (is_note && !is_strict);
        }
        if (n > 0)
                qsort(rows, n, sizeof(*rows), compare_rows);
        for (size_t i = 0; i < n; i++)
                print_row(p, rows[i].kind, rows[i].row);
        free(rows);
        if (has_notes && !p->json)
                (void)perfctl_fail(
                        p, PERFCTL_OK,
                        "a start and a reload open what a note is about when it can be; `plan` and `apply` refuse it "
                        "without --allow-pending");
        return is_wrong ? PERFCTL_FAILED : PERFCTL_OK;
}

static int validate_files(Perfctl *p, const ConfigFiles *files) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        perfd_config_text *texts;
        bool is_text = true;
        int r;

        for (size_t i = 0; i < files->n; i++)
                is_text = !has_zero_byte(p, &files->items[i]) && is_text;
        print_skipped(p, files);
        if (!is_text)
                return PERFCTL_FAILED;
        r = perfctl_connect(p);
        if (r != 0)
                return r;
        texts = config_files_texts(files);
        r = perfd_validate_all(p->client, texts, files->n, &result);
        free(texts);
        if (r == 0)
                return print_result(p, files, result);
        (void)perfctl_fail_client(p, NULL);
        return PERFCTL_FAILED;
}

static int validate_run(Perfctl *p) {
        ConfigFiles files;
        int r = config_files_read(p, p->arguments[0], !perfctl_get(p, "no-drop-ins"), &files);

        if (r == 0)
                r = validate_files(p, &files);
        config_files_deinit(&files);
        return r;
}

const Verb verb_validate = {
        .name = "validate",
        .arguments = "FILE",
        .help = "check a configuration and its drop-ins against this host",
        .options = {
                { .name = "no-drop-ins", .help = "FILE alone" },
                { .name = "strict", .help = "an event that cannot be opened now is an error" },
        },
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_FILES,
        .hosts = HOSTS_EACH,
        .run = validate_run,
};
