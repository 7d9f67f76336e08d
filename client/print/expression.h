/*
 * For format.c: one argument of a print format as a tree. It comes over a socket and may be any text: sizes and depth are
 * bounded, and what is not understood makes the argument one that is not shown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfd.h"
#include "client/print/type.h"
#include "client/wire/arena.h"

#define PRINT_DEPTH_MAX 128u /* of a tree: what goes over one may recurse */

typedef enum PrintKind {
        PRINT_NUMBER,
        PRINT_TEXT,         /* adjacent string literals */
        PRINT_FIELD,        /* REC->name, __get_str(name), __get_dynamic_array(name) */
        PRINT_LENGTH,       /* bytes of a field: __get_dynamic_array_len(name), sizeof(REC->name) */
        PRINT_BITMASK,      /* __get_bitmask(name), __get_cpumask(name): hexadecimal */
        PRINT_CAST,
        PRINT_UNARY,
        PRINT_BINARY,
        PRINT_CHOICE,       /* a ? b : c */
        PRINT_INDEX,        /* a[b] */
        PRINT_FLAGS,        /* value, delimiter, PRINT_NAME... */
        PRINT_SYMBOLIC,     /* value, PRINT_NAME... */
        PRINT_NAME,         /* { value, "NAME" } */
        PRINT_HEX,          /* bytes, length: "0f 1f" */
        PRINT_HEX_STRING,   /* the same: "0f1f" */
        PRINT_ARRAY,        /* array, count, bytes of an element: "{0x1,0x2}" */
        PRINT_DYNAMIC_ARRAY, /* array, bytes of an element */
        PRINT_SECONDS,      /* nanoseconds: "1.000000001" is __print_ns_to_secs(), and the fraction alone ... */
        PRINT_FRACTION,     /* ... __print_ns_without_secs() */
        PRINT_UNKNOWN,      /* the value of a name that is told by its enum only */
} PrintKind;

/* Operators of two characters, as PrintNode.code has them. */
enum {
        PRINT_SHIFT_LEFT = 'l', PRINT_SHIFT_RIGHT = 'r', PRINT_AND = 'a', PRINT_OR = 'o', PRINT_EQUAL = 'e', PRINT_NOT_EQUAL = 'n',
        PRINT_AT_MOST = 'm', PRINT_AT_LEAST = 'g',
};

typedef struct PrintNode {
        struct PrintNode *first, *next; /* operands, in order */
        uint64_t number;
        const char *text;
        size_t length, field;
        PrintType type; /* of a number, a cast */
        uint8_t kind;   /* PrintKind */
        char code;      /* operator */
} PrintNode;

/* *ret_node is NULL if the text is no expression that can be shown. -ENOMEM. */
int print_expression_new(Arena *arena, const char *at, const char *end, const perfd_field *fields, size_t n_fields,
                         PrintNode **ret_node);
