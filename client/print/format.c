/*
 * Own code beside a library that can do the same: libtraceevent 1.7.1 ends the program on some print formats, leaks on others and
 * gives up on the whole of one if any argument is beyond it; and a format comes over a socket here. The daemon reads names of
 * values out of a format for the same reason without it.
 */
#include "client/print/format.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "client/print/text.h"

#define TEXT_MAX ((size_t)64 * 1024)
#define CONVERSIONS_MAX ((size_t)256)

typedef struct Reader {
        const char *at, *end;     /* of the format's string */
        const char *rest, *text_end; /* arguments that are left */
        const perfd_event *event;
        Arena *arena;
} Reader;

/* The next argument; *ret is NULL if it cannot be shown. PERFD_E_INVALID: there is none. */
static int next_argument(Reader *r, const PrintNode **ret) {
        const char *begin = r->rest, *end = begin ? print_argument_end(begin, r->text_end) : NULL;
        PrintNode *node = NULL;
        int error;

        if (!end || begin == r->text_end)
                return PERFD_E_INVALID;
        r->rest = end < r->text_end ? end + 1 : end;
        error = print_expression_new(r->arena, begin, end, r->event->fields, r->event->n_fields, &node);
        *ret = node;
        return error;
}

static void read_flags(Reader *r, PrintConversion *c) {
        for (; r->at < r->end; r->at++)
                switch (*r->at) {
                case '-':
                        c->left = true;
                        break;
                case '0':
                        c->zeros = true;
                        break;
                case '+':
                        c->plus = true;
                        break;
                case ' ':
                        c->space = true;
                        break;
                case '#':
                        c->alternate = true;
                        break;
                default:
                        return;
                }
}

/* Digits, or a star with its argument. */
static int read_length(Reader *r, const PrintNode **star, bool *ret_is_star, int *ret) {
        int n = 0;

        if (r->at < r->end && *r->at == '*') {
                r->at++;
                *ret_is_star = true;
                return next_argument(r, star);
        }
        for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++) {
                if (n > 9999)
                        return PERFD_E_INVALID;
                n = n * 10 + (*r->at - '0');
        }
        *ret = n;
        return 0;
}

static uint8_t read_size(Reader *r) {
        uint8_t size = sizeof(int);

        for (; r->at < r->end && strchr("hlLqjzt", *r->at) && *r->at; r->at++)
                size = *r->at == 'h' ? size / 2 : 8;
        return size > 0 ? size : 1;
}

/* Behind a '%'. */
static int read_conversion(Reader *r, PrintConversion *c) {
        int error;

        c->width = c->precision = -1;
        read_flags(r, c);
        if (r->at < r->end && (*r->at == '*' || isdigit((unsigned char)*r->at))) {
                error = read_length(r, &c->stars[0], &c->width_is_star, &c->width);
                if (error != 0)
                        return error;
        }
        if (r->at < r->end && *r->at == '.') {
                r->at++;
                error = read_length(r, &c->stars[c->width_is_star], &c->precision_is_star, &c->precision);
                if (error != 0)
                        return error;
        }
        c->size = read_size(r);
        if (r->at == r->end || !strchr("diuxXocsp", *r->at) || !*r->at)
                return PERFD_E_INVALID;
        c->code = *r->at++;
        if (c->code == 'i')
                c->code = 'd';
        c->letters = r->at;
        while (c->code == 'p' && r->at < r->end && isalnum((unsigned char)*r->at))
                r->at++;
        c->n_letters = (size_t)(r->at - c->letters);
        return next_argument(r, &c->argument);
}

static int read_conversions(Reader *r, PrintFormat *f, size_t room) {
        const char *literal = r->at;

        while (r->at < r->end) {
                PrintConversion *c = &f->conversions[f->n];
                int error;

                if (*r->at++ != '%')
                        continue;
                if (r->at < r->end && *r->at == '%') {
                        r->at++;
                        continue;
                }
                if (f->n == room)
                        return PERFD_E_INVALID;
                c->literal = literal;
                c->n_literal = (size_t)(r->at - 1 - literal);
                error = read_conversion(r, c);
                if (error != 0)
                        return error;
                f->n++;
                literal = r->at;
        }
        return 0;
}

/* PERFD_E_INVALID: it is no print format. */
static int read_format(Arena *arena, const char *text, const perfd_event *event, PrintFormat *f) {
        Reader r = { .event = event, .arena = arena, .text_end = text + strlen(text) };
        const char *end = print_argument_end(text, r.text_end);
        size_t n = 0, room = 0;

        if (!end || (size_t)(r.text_end - text) > TEXT_MAX)
                return PERFD_E_INVALID;
        if (!print_text_new(arena, text, end, &r.at, &n))
                return PERFD_E_INVALID;
        if (!r.at)
                return -ENOMEM;
        r.end = r.at + n;
        r.rest = end < r.text_end ? end + 1 : end;
        for (const char *at = r.at; at < r.end; at++)
                room += *at == '%';
        room = room < CONVERSIONS_MAX ? room : CONVERSIONS_MAX;
        f->conversions = arena_push(arena, room + 1, sizeof(*f->conversions));
        f->fields = arena_push(arena, event->n_fields + 1, sizeof(*f->fields));
        if (!f->conversions || !f->fields)
                return -ENOMEM;
        return read_conversions(&r, f, room);
}

int print_format_new(Arena *arena, const char *text, const perfd_event *event, PrintFormat **ret) {
        PrintFormat *f;
        int r;

        *ret = NULL;
        if (!*text || event->n_fields == 0)
                return 0;
        f = arena_push(arena, 1, sizeof(*f));
        if (!f)
                return -ENOMEM;
        f->arena = arena;
        r = read_format(arena, text, event, f);
        if (r != 0)
                return r < 0 ? r : 0;
        print_choose_fields(f, event);
        for (size_t i = 0; i < event->n_fields; i++)
                if (f->fields[i].n > 0)
                        *ret = f;
        return 0;
}
