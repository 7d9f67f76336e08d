/* Help out of the table of verbs; as JSON it is what the check of the man page reads. */
#include "client/perfctl/verbs/help.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/command-line/command-line.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/near.h"
#include "client/perfctl/base/text.h"

/* "  NAME  what it is": a long name has a line of its own, and a long text continues below itself. */
static void print_entry(Output *o, const char *name, size_t width, const char *text) {
        size_t before = 2 + width + 1, n = strlen(text), part;

        output_print(o, "  %-*s", (int)width, name);
        if (strlen(name) > width)
                output_print(o, "\n%*s", (int)before - 1, "");
        for (; n > 0; text += part, n -= part) {
                part = text_wrap(text, n, HELP_WIDTH - before);
                output_put_char(o, ' ');
                output_put(o, text, part);
                output_put_char(o, '\n');
                if (part == n)
                        break;
                output_print(o, "%*s", (int)before - 1, "");
                part += text[part] == ' ';
        }
}

static void print_options(Output *o, const Option *options) {
        for (; options->name; options++) {
                char left[64], letter[] = { '-', options->letter, ',', ' ', '\0' };

                (void)snprintf(left, sizeof(left), "%s--%s%s%s", options->letter ? letter : "", options->name,
                               options->argument ? " " : "", options->argument ? options->argument : "");
                print_entry(o, left, 26, options->help);
        }
}

void help_print_all(Perfctl *p, FILE *instead) {
        Output *o = &p->out;

        if (instead) {
                output_flush(o);
                o->fd = fileno(instead);
        }
        output_print(o, "usage: perfctl [--host HOST] [--socket PATH] [--json | --headings] VERB\n               [ARGUMENT...]\n\nverbs:\n");
        for (size_t i = 0; p->verbs[i]; i++)
                if (!p->verbs[i]->hidden)
                        print_entry(o, p->verbs[i]->name, 12, p->verbs[i]->help);
        output_print(o, "\noptions of all verbs:\n");
        print_options(o, global_options);
        output_print(o, "\nSee `perfctl help VERB` and perfctl(1) for details.\n");
}

static void print_options_json(Json *j, const Option *options) {
        json_put_name(j, "options");
        json_begin(j, '[');
        for (; options->name; options++) {
                json_begin(j, '{');
                JSON_STRING(j, "name", options->name);
                if (options->letter)
                        JSON_STRING(j, "letter", ((const char[]){ options->letter, '\0' }));
                if (options->argument)
                        JSON_STRING(j, "argument", options->argument);
                JSON_STRING(j, "help", options->help);
                json_end(j, '}');
        }
        json_end(j, ']');
}

static void print_verb_json(Perfctl *p, const Verb *verb) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "verb", verb->name);
        JSON_STRING(&j, "arguments", verb->arguments);
        JSON_STRING(&j, "help", verb->help);
        print_options_json(&j, verb->options);
        json_end(&j, '}');
        json_end_line(&j);
}

int help_print_verb(Perfctl *p, const Verb *verb) {
        char *usage;

        if (p->json) {
                print_verb_json(p, verb);
                return PERFCTL_OK;
        }
        usage = command_line_usage(verb);
        output_print(&p->out, "%s: %s\nusage: %s\n", verb->name, verb->help, usage);
        free(usage);
        if (verb->options[0].name)
                output_put_char(&p->out, '\n');
        print_options(&p->out, verb->options);
        return PERFCTL_OK;
}

static int help_run(Perfctl *p) {
        const Verb *verb;

        if (p->n_arguments == 1) {
                verb = verb_find(p->verbs, p->arguments[0]);
                if (!verb) {
                        Near near = near_of(p->arguments[0]);

                        for (size_t i = 0; p->verbs[i]; i++)
                                near_add(&near, p->verbs[i]->name);
                        return perfctl_fail(p, PERFCTL_USAGE, "unknown verb '%s'%s%s%s", p->arguments[0],
                                            near.best ? ", did you mean '" : "", near.best ? near.best : "",
                                            near.best ? "'?" : "");
                }
                return help_print_verb(p, verb);
        }
        if (!p->json) {
                help_print_all(p, NULL);
                return PERFCTL_OK;
        }
        for (size_t i = 0; p->verbs[i]; i++)
                if (!p->verbs[i]->hidden)
                        print_verb_json(p, p->verbs[i]);
        return PERFCTL_OK;
}

const Verb verb_help = {
        .name = "help",
        .arguments = "[VERB]",
        .help = "list the verbs, or show the help of one",
        .max_arguments = 1,
        .words = WORDS_VERBS,
        .run = help_run,
};
