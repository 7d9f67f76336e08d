/* What goes wrong, to stderr: one place that knows how a message, a suggestion and a caret look. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/text.h"

/*
 * What is proposed in backquotes, also by the daemon, which does not know how it was reached, is for the same host. Where $PERFD_HOST
 * names that, it is so already.
 */
static void put_message(const Perfctl *p, const char *message) {
        static const char begin[] = "`perfctl ";
        const bool is_named = p->host && !p->is_of_environment && !(p->verb && strcmp(p->verb->name, "fleet") == 0);
        const char *at;

        while (is_named && (at = strstr(message, begin))) {
                char *head = must_have(strndup(message, (size_t)(at - message) + strlen(begin)));

                message = at + strlen(begin);
                text_print_message(head);
                free(head);
                if (strncmp(message, "help", strlen("help")) == 0 || *message == '-')
                        continue;
                fputs("--host ", stderr);
                text_print_message(p->host);
                fputs(p->tls ? " --tls " : "", stderr);
                text_print_message(p->tls ? p->tls : "");
                fputc(' ', stderr);
        }
        text_print_message(message);
}

/* The letter by which an option was given whose name stands at `at`, behind its dashes; 0: it was not given so. Gives the name's length, too. */
static char letter_of(const Perfctl *p, const char *at, size_t *ret_n) {
        *ret_n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
        for (size_t i = 0; p->verb && i < VERB_OPTIONS_MAX && p->verb->options[i].name; i++)
                if (p->letters[i] && strlen(p->verb->options[i].name) == *ret_n && memcmp(p->verb->options[i].name, at, *ret_n) == 0)
                        return p->letters[i];
        return '\0';
}

/* Who typed -p finds no --pid on the command line: options are called as they were typed. In place, as that is shorter. */
static void name_as_typed(const Perfctl *p, char *message) {
        char *to = message;

        for (const char *at = message; *at;) {
                size_t n = 0;
                const bool is_option = at[0] == '-' && at[1] == '-' && (at == message || strchr(" '(", at[-1]));
                const char letter = is_option ? letter_of(p, at + 2, &n) : '\0';

                if (letter) {
                        *to++ = '-';
                        *to++ = letter;
                        at += 2 + n;
                } else
                        *to++ = *at++;
        }
        *to = '\0';
}

int perfctl_fail(const Perfctl *p, int code, const char *format, ...) {
        char *message;
        va_list ap;

        va_start(ap, format);
        must_have(vasprintf(&message, format, ap) < 0 ? NULL : message);
        va_end(ap);
        name_as_typed(p, message);
        fputs("perfctl: ", stderr);
        if (p->verb && !p->verb->hidden)
                fprintf(stderr, "%s: ", p->verb->name);
        put_message(p, message);
        fputc('\n', stderr);
        free(message);
        return code;
}

void report_position(const char *expression, size_t offset) {
        size_t n = strlen(expression), begin, end;

        if (offset > n)
                return;
        for (begin = offset; begin > 0 && expression[begin - 1] != '\n'; begin--)
                ;
        end = begin + strcspn(expression + begin, "\n");
        fputs("  ", stderr);
        for (size_t i = begin, length; i < end; i += length) {
                length = utf8_length(expression + i, end - i);
                if (text_printable_length(expression + i, end - i) == 0) { /* one column, as the caret counts */
                        fputc(length == 1 && (unsigned char)expression[i] < ' ' ? ' ' : '?', stderr);
                        length = length > 0 ? length : 1;
                } else
                        (void)fwrite(expression + i, 1, length, stderr);
        }
        fputs("\n  ", stderr);
        for (size_t i = begin, length; i < offset; i += length ? length : 1) {
                length = utf8_length(expression + i, end - i);
                fputc(' ', stderr);
        }
        fputs("^\n", stderr);
}

int perfctl_fail_client(const Perfctl *p, const char *expression) {
        const perfd_error *e = perfd_client_error(p->client);

        (void)perfctl_fail(p, PERFCTL_FAILED, "%s", e->message);
        if (expression && e->position > 0)
                report_position(expression, e->position - 1);
        switch (e->code) {
        case PERFD_E_UNREACHABLE:
                return PERFCTL_UNREACHABLE;
        case PERFD_E_INVALID:
                return PERFCTL_USAGE;
        default:
                return PERFCTL_FAILED;
        }
}

static size_t option_index(const Perfctl *p, const char *option) {
        for (size_t i = 0; p->verb->options[i].name; i++)
                if (strcmp(p->verb->options[i].name, option) == 0)
                        return i;
        abort(); /* a verb asks for what its own table lacks */
}

const char *perfctl_get(const Perfctl *p, const char *option) {
        return p->options[option_index(p, option)];
}

void perfctl_set(Perfctl *p, const char *option, const char *value) {
        p->options[option_index(p, option)] = value;
}

const OptionValues *perfctl_get_values(const Perfctl *p, const char *option) {
        return &p->repeated[option_index(p, option)];
}

const char *const *perfctl_get_all(const Perfctl *p, const char *option, size_t *ret_n) {
        const OptionValues *values = perfctl_get_values(p, option);

        *ret_n = values->n;
        return values->items;
}
