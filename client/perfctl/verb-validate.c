/*
 * The daemon checks files that it need not be able to read: their bytes are sent, and only the daemon knows the host that
 * they have to fit. Mistakes are the output, so they go to stdout.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/drop-ins.h"
#include "client/perfctl/json.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/text.h"

/* Of all that can be said; only the first makes a configuration wrong. */
static const char *const kinds[] = { "mistake", "warning", "note" };

typedef enum Kind { KIND_MISTAKE, KIND_WARNING, KIND_NOTE } Kind;

static void print_text(Perfctl *p, Kind kind, const perfd_mistake_row *row) {
        text_put(&p->out, row->path, strlen(row->path));
        if (row->line > 0)
                output_print(&p->out, ":%u:%u", row->line, row->column);
        output_print(&p->out, ": %s%s", kind != KIND_MISTAKE ? kinds[kind] : "", kind != KIND_MISTAKE ? ": " : "");
        text_put(&p->out, row->text, strlen(row->text));
        output_put_char(&p->out, '\n');
}

static void print_row(Perfctl *p, Kind kind, const perfd_mistake_row *row) {
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
        perfd_mistake_row row = { .path = f->path, .line = 1, .column = 1, .text = "a zero byte: a configuration is text",
                                  .reason = "" };

        if (!zero)
                return false;
        for (const char *c = f->bytes; c < zero; c++) {
                row.column = *c == '\n' ? 1 : row.column + 1;
                row.line += *c == '\n';
        }
        print_row(p, KIND_MISTAKE, &row);
        return true;
}

static void print_skipped(Perfctl *p, const ConfigFiles *files) {
        for (size_t i = 0; i < files->n_skipped; i++)
                print_row(p, KIND_WARNING,
                          &(perfd_mistake_row){
                                  .path = files->skipped[i],
                                  .reason = "",
                                  .text = "it is ignored: only files whose names end with .yaml are read" });
}

static int print_result(Perfctl *p, const perfd_result *result) {
        bool is_strict = perfctl_get(p, "strict") != NULL, is_wrong = false, has_notes = false;
        const perfd_mistake_row *row;

        for (size_t i = 0; (row = perfd_result_mistake(result, i)); i++) {
                print_row(p, KIND_MISTAKE, row);
                is_wrong = true;
        }
        for (size_t i = 0; (row = perfd_result_warning(result, i)); i++) {
                bool is_note = *row->reason;

                print_row(p, is_note && is_strict ? KIND_MISTAKE : is_note ? KIND_NOTE : KIND_WARNING, row);
                is_wrong = is_wrong || (is_note && is_strict);
                has_notes = has_notes || (is_note && !is_strict);
        }
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
        texts = must_have(calloc(files->n, sizeof(*texts)));
        for (size_t i = 0; i < files->n; i++)
                texts[i] = (perfd_config_text){ .path = files->items[i].path,
                                                .yaml = files->items[i].bytes,
                                                .length = files->items[i].n };
        r = perfd_validate_all(p->client, texts, files->n, &result);
        free(texts);
        if (r == 0)
                return print_result(p, result);
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
        .run = validate_run,
};
