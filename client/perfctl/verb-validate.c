/*
 * The daemon checks a file that it need not be able to read: its bytes are sent, and only the daemon knows the host that
 * they have to fit. Mistakes are the output, so they go to stdout.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/input-file.h"
#include "client/perfctl/json.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/text.h"

typedef struct Mistake {
        uint32_t line, column;
        const char *text;
} Mistake;

static void print_mistake(Perfctl *p, Mistake m) {
        const char *path = p->arguments[0];
        Json j = json_of(&p->out);

        if (!p->json) {
                text_put(&p->out, path, strlen(path));
                output_print(&p->out, ":%u:%u: ", m.line, m.column);
                text_put(&p->out, m.text, strlen(m.text));
                output_put_char(&p->out, '\n');
                return;
        }
        json_begin(&j, '{');
        JSON_STRING(&j, "path", path);
        JSON_NUMBER(&j, "line", m.line);
        JSON_NUMBER(&j, "column", m.column);
        JSON_STRING(&j, "text", m.text);
        json_end(&j, '}');
        json_end_line(&j);
}

/* What the library found before it asked: the place is an offset. */
static int print_own_mistake(Perfctl *p, const char *bytes) {
        const perfd_error *e = perfd_client_error(p->client);
        Mistake m = { .line = 1, .column = 1, .text = e->message };

        for (unsigned i = 0; i + 1 < e->position; i++) {
                m.column = bytes[i] == '\n' ? 1 : m.column + 1;
                m.line += bytes[i] == '\n';
        }
        print_mistake(p, m);
        return PERFCTL_FAILED;
}

static int validate_bytes(Perfctl *p, const char *bytes, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_mistake_row *row;
        size_t i;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        r = perfd_validate(p->client, bytes, n, &result);
        if (r == PERFD_E_INVALID && perfd_client_error(p->client)->position > 0)
                return print_own_mistake(p, bytes);
        if (r != 0) {
                (void)perfctl_fail_client(p, NULL);
                return PERFCTL_FAILED;
        }
        for (i = 0; (row = perfd_result_mistake(result, i)); i++)
                print_mistake(p, (Mistake){ .line = row->line, .column = row->column, .text = row->text });
        return i == 0 ? PERFCTL_OK : PERFCTL_FAILED;
}

static int validate_run(Perfctl *p) {
        char *bytes = NULL;
        size_t n = 0;
        int r = input_file_read(p, p->arguments[0], &bytes, &n);

        if (r != 0)
                return r;
        r = validate_bytes(p, bytes, n);
        free(bytes);
        return r;
}

const Verb verb_validate = {
        .name = "validate",
        .arguments = "FILE",
        .help = "check a configuration against this host, without using it",
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_FILES,
        .run = validate_run,
};
