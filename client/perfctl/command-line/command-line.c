/*
 * Options stand behind the verb and between its arguments, those of all verbs also before it: whether the word behind another one is its
 * value only the verb says. "--" ends them, or begins a command. Not getopt_long(3): it would need its own copy of each verb's table,
 * takes abbreviations that break when an option is added, and knows no "did you mean".
 */
#include "client/perfctl/command-line/command-line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/command-line/event-options.h"
#include "client/perfctl/base/near.h"
#include "client/perfctl/base/option-advice.h"
#include "client/perfctl/base/text.h"

const Option global_options[] = {
        { .name = "socket", .argument = "PATH", .help = "the daemon's control socket", .words = WORDS_FILES },
        { .name = "host", .argument = "HOST", .help = "of another daemon: HOST by ssh, tls://HOST:PORT by TLS; several: of each" },
        { .name = "tls", .argument = "DIR", .help = "for tls://, ca.crt, client.crt and client.key", .words = WORDS_FILES },
        { .name = "compress", .help = "with --host, have what comes compressed: fewer bytes for more CPU time on both hosts" },
        { .name = "json", .letter = 'j', .help = "print JSON, one document per line" },
        { .name = "headings", .help = "name the columns of tables also where stdout is no terminal" },
        { .name = "help", .help = "show the help of the verb" },
        { .name = "version", .help = "show the version of perfctl" },
        { .name = NULL },
};

static int fail_usage(const Perfctl *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail_usage(const Perfctl *p, const char *format, ...) {
        char *usage, *message;
        va_list ap;

        va_start(ap, format);
        must_have(vasprintf(&message, format, ap) < 0 ? NULL : message);
        va_end(ap);
        (void)perfctl_fail(p, PERFCTL_USAGE, "%s", message);
        free(message);
        if (p->verb) {
                usage = command_line_usage(p->verb);
                if (strchr(usage, '\n')) /* several lines hide the one that says what is wrong */
                        fprintf(stderr, "`perfctl help %s` shows its options\n", p->verb->name);
                else
                        fprintf(stderr, "usage: %s\n", usage);
                free(usage);
        } else
                fprintf(stderr, "`perfctl help` lists the verbs and options\n");
        return PERFCTL_USAGE;
}

static void near_add_options(Near *near, const Option *options) {
        for (; options && options->name; options++)
                near_add(near, options->name);
}

/* NULL: there is none. */
static const Option *letter_find(const Option *options, char letter) {
        for (; options && options->name; options++)
                if (options->letter == letter)
                        return options;
        return NULL;
}

static size_t option_find(const Option *options, const char *name, size_t length) {
        size_t i = 0;

        for (; options && options[i].name; i++)
                if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
                        break;
        return i;
}

/* The verbs that have an option of this name, or of this letter if that is NULL: "count, stat, watch". "": none. */
static void list_verbs(const Perfctl *p, const char *name, char letter, char *to, size_t size) {
        size_t n = 0;

        *to = '\0';
        for (size_t i = 0; p->verbs[i]; i++) {
                const Option *options = p->verbs[i]->options;
                bool has = name ? options[option_find(options, name, strlen(name))].name != NULL : letter_find(options, letter) != NULL;

                if (has && !p->verbs[i]->hidden && n < size)
                        n += (size_t)snprintf(to + n, size - n, "%s%s", n > 0 ? ", " : "", p->verbs[i]->name);
        }
}

static int fail_before_verb(const Perfctl *p, const char *dashes, const char *name, const char *verbs_with) {
        return fail_usage(p, "option %s%s stands behind its verb, which is %s%s: only options of all verbs stand before it", dashes, name,
                          strchr(verbs_with, ',') ? "one of " : "", verbs_with);
}

static int fail_unknown_option(const Perfctl *p, const char *name) {
        const char *advice = option_advice_find(p->verb, name, '\0');
        Near near = near_of(name);
        char others[128] = "";

        if (advice)
                return fail_usage(p, "unknown option '--%s', of perf %s: %s", name, p->verb->name, advice);
        if (!p->verb)
                list_verbs(p, name, 0, others, sizeof(others));
        if (*others)
                return fail_before_verb(p, "--", name, others);
        near_add_options(&near, global_options);
        near_add_options(&near, p->verb ? p->verb->options : NULL);
        return fail_usage(p, "unknown option '--%s'%s%s%s", name, near.best ? ", did you mean '--" : "",
                          near.best ? near.best : "", near.best ? "'?" : "");
}

/* What perf(1) and others call it. */
static const char *verb_of_others(const char *name) {
        static const char *const words[][2] = {
                { "trace", "watch" },
                { "report", "count" },
        };

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                if (strcmp(name, words[i][0]) == 0)
                        return words[i][1];
        return NULL;
}

static int fail_unknown_verb(const Perfctl *p, const char *name) {
        const char *ours = verb_of_others(name);
        Near near = near_of(name);

        if (ours)
                return fail_usage(p, "unknown verb '%s': the closest one is `perfctl %s`", name, ours);
        for (size_t i = 0; p->verbs[i]; i++)
                if (!p->verbs[i]->hidden)
                        near_add(&near, p->verbs[i]->name);
        return fail_usage(p, "unknown verb '%s'%s%s%s", name, near.best ? ", did you mean '" : "",
                          near.best ? near.best : "", near.best ? "'?" : "");
}

/* Whose arguments may begin with '-': not events, nor the names of what runs. */
static bool takes_dashes(const Verb *v) {
        for (size_t i = 0; i < VERB_OPTIONS_MAX && v->options[i].name; i++)
                if (strcmp(v->options[i].name, "event") == 0)
                        return false;
        return v->max_arguments > 0 && !v->has_command;
}

static int fail_unknown_letter(const Perfctl *p, char letter) {
        const char *advice = option_advice_find(p->verb, NULL, letter);
        char others[128] = "";

        if (!p->verb)
                list_verbs(p, NULL, letter, others, sizeof(others));
        if (*others)
                return fail_before_verb(p, "-", (const char[]){ letter, '\0' }, others);
        if (!p->verb)
                return fail_usage(p, "unknown option '-%c'", letter);
        if (advice)
                return fail_usage(p, "unknown option '-%c', of perf %s: %s", letter, p->verb->name, advice);
        return fail_usage(p, "unknown option '-%c'%s", letter, takes_dashes(p->verb) ?
                          ": write -- before an argument that begins with '-'" : "");
}

static void set_global(Perfctl *p, const Option *option, const char *value) {
        if (strcmp(option->name, "socket") == 0)
                p->socket = value;
        else if (strcmp(option->name, "host") == 0)
                perfctl_add_host(p, value);
        else if (strcmp(option->name, "tls") == 0)
                p->tls = value;
        else if (strcmp(option->name, "compress") == 0)
                p->compress = true;
        else if (strcmp(option->name, "json") == 0)
                p->json = true;
        else if (strcmp(option->name, "headings") == 0)
                p->headings = true;
        else if (strcmp(option->name, "help") == 0)
                p->help = true;
        else
                p->version = true;
}

static void add_value(Perfctl *p, OptionValues *values, const Option *option, const char *value) {
        values->items = must_have(reallocarray(values->items, values->n + 1, sizeof(*values->items)));
        values->places = must_have(reallocarray(values->places, values->n + 1, sizeof(*values->places)));
        values->places[values->n] = p->n_events;
        values->items[values->n++] = value;
        p->n_events += strcmp(option->name, "event") == 0;
}

static int set_event_option(Perfctl *p, const Option *option, const char *value) {
        switch (event_option_add(p, option, value)) {
        case EVENT_OPTION_E_AGAIN:
                return fail_usage(p, "--%s was already given", option->name);
        case EVENT_OPTION_E_FIRST:
                return fail_usage(p, "--%s was already given, before all events: of several, each stands behind its events", option->name);
        default:
                return 0;
        }
}

/* Of the verb's table, or of the one for all verbs. */
static int set_option(Perfctl *p, const Option *option, const char *value) {
        size_t k;

        if (!p->verb || option < p->verb->options || option >= p->verb->options + VERB_OPTIONS_MAX) {
                set_global(p, option, value);
                return 0;
        }
        k = (size_t)(option - p->verb->options);
        if (option->repeats)
                add_value(p, &p->repeated[k], option, value);
        else if (option->each && set_event_option(p, option, value) != 0)
                return PERFCTL_USAGE;
        else if (option->each)
                p->options[k] = p->options[k] ? p->options[k] : value;
        else if (p->options[k])
                return fail_usage(p, "--%s was already given", option->name);
        else
                p->options[k] = value;
        return 0;
}

/* The word behind argv[*i]. An option that can do without takes it if it is a number, as -z of perf-record(1) has its own in one word. NULL: there is none. */
static const char *value_behind(const Option *option, int argc, char **argv, int *i) {
        const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;

        if (option->otherwise && !(next && *next && strspn(next, "0123456789") == strlen(next)))
                return option->otherwise;
        ++*i;
        return next;
}

/* argv[*i] begins with "--". */
static int take_option(Perfctl *p, int argc, char **argv, int *i) {
        const char *text = argv[*i] + 2, *equals = strchr(text, '='), *value;
        size_t length = equals ? (size_t)(equals - text) : strlen(text);
        const Option *option = NULL;

        if (p->verb)
                option = &p->verb->options[option_find(p->verb->options, text, length)];
        if (!option || !option->name)
                option = &global_options[option_find(global_options, text, length)];
        if (!option->name) {
                char *name = must_have(strndup(text, length));
                int r = fail_unknown_option(p, name);

                free(name);
                return r;
        }
        if (!option->argument && equals)
                return fail_usage(p, "option --%s takes no value", option->name);
        value = !option->argument ? "" : equals ? equals + 1 : value_behind(option, argc, argv, i);
        if (!value)
                return fail_usage(p, "option --%s requires %s", option->name, option->argument);
        return set_option(p, option, value);
}

static void note_letter(Perfctl *p, const Option *option, char letter) {
        if (p->verb && option >= p->verb->options && option < p->verb->options + VERB_OPTIONS_MAX)
                p->letters[option - p->verb->options] = letter;
}

/* argv[*i] is "-x", "-xVALUE", "-x VALUE", or several switches in one word. */
static int take_letters(Perfctl *p, int argc, char **argv, int *i) {
        int r = 0;

        for (const char *at = argv[*i] + 1; *at && r == 0; at++) {
                const Option *option = letter_find(p->verb ? p->verb->options : NULL, *at);

                if (*at == 'h') {
                        p->help = true;
                        continue;
                }
                if (!option)
                        option = letter_find(global_options, *at);
                if (!option)
                        return fail_unknown_letter(p, *at);
                note_letter(p, option, *at);
                if (option->argument) {
                        const char *value = at[1] ? at + 1 : value_behind(option, argc, argv, i);

                        return value ? set_option(p, option, value) : fail_usage(p, "option -%c requires %s", *at, option->argument);
                }
                r = set_option(p, option, "");
        }
        return r;
}

static int take_word(Perfctl *p, char *word) {
        if (!p->verb) {
                p->verb = verb_find(p->verbs, word);
                return p->verb ? 0 : fail_unknown_verb(p, word);
        }
        p->argument_places = must_have(reallocarray(p->argument_places, p->n_arguments + 1, sizeof(*p->argument_places)));
        p->argument_places[p->n_arguments] = p->n_events++;
        p->arguments[p->n_arguments++] = word;
        return 0;
}

/* Which argument of "EVENT [FIELD=VALUE...]" is not there, as the usage calls it. */
static int fail_missing(const Perfctl *p) {
        const char *name = p->verb->arguments;

        for (size_t i = 0; i < p->n_arguments; i++)
                name += strcspn(name, " ") + 1;
        return fail_usage(p, "the argument %.*s is missing", (int)strcspn(name, " ."), name);
}

static int check_arguments(const Perfctl *p) {
        if (!p->verb || p->help || p->version)
                return 0;
        if (p->n_arguments < p->verb->min_arguments)
                return fail_missing(p);
        if (p->n_arguments > p->verb->max_arguments)
                return fail_usage(p, "unexpected argument '%s'", p->arguments[p->verb->max_arguments]);
        return 0;
}

int command_line_parse(Perfctl *p, int argc, char **argv) {
        bool options = true;
        int r = 0;

        p->arguments = argv; /* never more than were read */
        for (int i = 1; i < argc && r == 0; i++) {
                if (p->verb && p->verb->hidden) /* its words are somebody else's command line */
                        options = false;
                if (options && strcmp(argv[i], "--") == 0 && p->verb && p->verb->has_command) {
                        p->command = argv + i + 1;
                        break;
                }
                if (options && strcmp(argv[i], "--") == 0)
                        options = false;
                else if (options && strncmp(argv[i], "--", 2) == 0)
                        r = take_option(p, argc, argv, &i);
                else if (options && argv[i][0] == '-' && argv[i][1] != '\0')
                        r = take_letters(p, argc, argv, &i);
                else
                        r = take_word(p, argv[i]);
        }
        return r == 0 ? check_arguments(p) : r;
}

/* Behind "usage: "; what does not fit stands below the verb. */
#define USAGE_INDENT ((size_t)15)

typedef struct Usage {
        FILE *f;
        size_t column;
} Usage;

static void usage_put(Usage *u, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One word or option, never broken. */
static void usage_put(Usage *u, const char *format, ...) {
        char *text;
        size_t n;
        va_list ap;

        va_start(ap, format);
        must_have(vasprintf(&text, format, ap) < 0 ? NULL : text);
        va_end(ap);
        n = strlen(text);
        if (u->column + 1 + n > HELP_WIDTH) {
                fprintf(u->f, "\n%*s%s", (int)USAGE_INDENT, "", text);
                u->column = USAGE_INDENT + n;
        } else {
                fprintf(u->f, " %s", text);
                u->column += 1 + n;
        }
        free(text);
}

char *command_line_usage(const Verb *verb) {
        static const char program[] = "perfctl";
        Usage u = { .column = strlen("usage: ") + strlen(program) };
        char *usage;
        size_t size;

        u.f = must_have(open_memstream(&usage, &size));
        fputs(program, u.f);
        usage_put(&u, "[--host HOST]");
        usage_put(&u, "[--socket PATH]");
        usage_put(&u, "[--json]");
        usage_put(&u, "%s%s%s", verb->name, *verb->arguments ? " " : "", verb->arguments);
        for (const Option *o = verb->options; o->name; o++)
                usage_put(&u, o->otherwise ? "[--%s%s[%s]]%s" : "[--%s%s%s]%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "",
                          o->repeats ? "..." : "");
        if (verb->has_command)
                usage_put(&u, "[-- COMMAND...]");
        must_have(fclose(u.f) == 0 ? usage : NULL);
        return usage;
}
