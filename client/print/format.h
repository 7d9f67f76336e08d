/*
 * For descriptors and values: a tracepoint's print format, and what it shows of each field. The format comes over a socket and may
 * be any text; what cannot be shown by it is shown without it.
 */
#pragma once

#include "client/perfd.h"
#include "client/print/expression.h"
#include "client/wire/arena.h"

#define PRINT_STARS 2 /* width and precision */

/* %-08.3lx and what it shows */
typedef struct PrintConversion {
        const char *literal; /* what stands before it, since the one before */
        size_t n_literal;
        const PrintNode *stars[PRINT_STARS], *argument; /* NULL: there is none, or it is none that can be shown */
        int width, precision;     /* -1: none, or as the stars have it */
        bool left, zeros, plus, space, alternate, width_is_star, precision_is_star;
        uint8_t size;             /* bytes of the number */
        char code;                /* d u x X o c s p */
        const char *letters;      /* behind a p */
        size_t n_letters;
} PrintConversion;

/* What was shown of a number; length 0: nothing yet. */
typedef struct PrintShown {
        uint64_t number;
        uint8_t length;
        char text[23];
} PrintShown;

#define PRINT_SHOWN 8 /* a power of two */

typedef struct PrintField {
        size_t first, n; /* conversions that show it; n = 0: it is not shown by the format */
        bool is_of_number; /* one number, which alone says what is shown */
        PrintShown *shown; /* by a hash of the number; NULL: none yet */
} PrintField;

typedef struct PrintFormat {
        PrintConversion *conversions;
        size_t n;
        PrintField *fields; /* by field of the event */
        Arena *arena;
} PrintFormat;

/* *ret is NULL if the text is no print format, or shows no field in another way than is known without it. -ENOMEM. */
int print_format_new(Arena *arena, const char *text, const perfd_event *event, PrintFormat **ret);

/* fields.c: chooses what shows each field, into f->fields. */
void print_choose_fields(PrintFormat *f, const perfd_event *event);
