/* What the daemon's host allows. The same lines as those of `perfd --check-host`, which needs no daemon. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/terminal.h"
#include "client/perfctl/base/text.h"

static void print_json(Perfctl *p, const perfd_doctor_row *row) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "topic", row->topic);
        JSON_STRING(&j, "what", row->what);
        JSON_BOOL(&j, "works", row->works);
        JSON_STRING(&j, "found", row->found);
        JSON_STRING(&j, "remedy", row->remedy);
        json_end(&j, '}');
        json_end_line(&j);
}

static void put_padded(Output *o, const char *text, size_t width) {
        size_t n = text_width(text, strlen(text));

        text_put_string(o, text);
        output_print(o, "%*s", n < width ? (int)(width - n) + 1 : 1, "");
}

/* Continued below itself where a terminal's line ends, from this column on. */
static void put_wrapped(Output *o, const char *text, size_t column) {
        size_t width = terminal_width(STDOUT_FILENO), n = strlen(text), part;

        width = width > column + 20 ? width - column : width > 0 ? 20 : SIZE_MAX;
        for (part = text_wrap(text, n, width);; part = text_wrap(text, n, width)) {
                text_put(o, text, part);
                output_put_char(o, '\n');
                text += part, n -= part;
                for (; n > 0 && *text == ' '; n--)
                        text++;
                if (n == 0)
                        return;
                output_print(o, "%*s", (int)column, "");
        }
}

/* A remedy has a line of its own: a column of them would push the rest off the screen. */
static void print_human(Perfctl *p, const perfd_doctor_row *row) {
        put_padded(&p->out, row->topic, 8);
        output_print(&p->out, "%-3s ", row->works ? "yes" : "NO");
        put_padded(&p->out, row->what, 27);
        put_wrapped(&p->out, row->found, 41);
        if (!*row->remedy)
                return;
        output_print(&p->out, "%41s-> ", "");
        put_wrapped(&p->out, row->remedy, 44);
}

static void print_plain(Perfctl *p, const perfd_result *result) {
        const perfd_doctor_row *row;
        Table t;

        TABLE_INIT(&t, false, "TOPIC", "WHAT", "WORKS", "FOUND", "REMEDY");
        for (size_t i = 0; (row = perfd_result_doctor(result, i)); i++) {
                table_put(&t, row->topic);
                table_put(&t, row->what);
                table_put(&t, row->works ? "yes" : "no");
                table_put(&t, row->found);
                table_put(&t, row->remedy);
        }
        table_print(&t, &p->out);
        table_deinit(&t);
}

static int doctor_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_doctor_row *row;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_doctor(p->client, &result) != 0)
                return perfctl_fail_client(p, NULL);
        if (!p->json && !p->human)
                print_plain(p, result);
        for (size_t i = 0; (p->json || p->human) && (row = perfd_result_doctor(result, i)); i++)
                if (p->json)
                        print_json(p, row);
                else
                        print_human(p, row);
        return PERFCTL_OK;
}

const Verb verb_doctor = {
        .name = "doctor",
        .arguments = "",
        .help = "check what the kernel, privileges and limits allow, with remedies",
        .hosts = HOSTS_EACH,
        .run = doctor_run,
};
