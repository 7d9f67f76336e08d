/* Fields of events: of running ones, of those that this host offers, and of those of a stream. Pure types. */
#pragma once

#include "declarations.h"

PERFD_BEGIN_DECLARATIONS

/* Bytes from the traced host: not terminated by a zero, and not always valid UTF-8. Length in bytes. */
typedef struct perfd_text {
        const char *bytes;
        size_t length;
} perfd_text;

/* The kind of a field's elements. */
typedef enum perfd_kind {
        PERFD_UNSIGNED = 0,
        PERFD_SIGNED = 1, /* two's complement: cast to int64_t */
        PERFD_POINTER = 2,
        PERFD_BOOL = 3,
        PERFD_TEXT = 4,   /* up to its terminating zero, which is not part of it */
        PERFD_BYTES = 5,  /* all bytes */
} perfd_kind;

/* What a value is called: of an enum, or one bit of flags. */
typedef struct perfd_value_name {
        uint64_t value;
        const char *name;
} perfd_value_name;

/* A member of the event's record. */
typedef struct perfd_field {
        const char *name;
        const char *type;  /* as declared: "unsigned long args[6]" */
        perfd_kind kind;   /* of the elements, if it is an array */
        uint32_t size;     /* bytes of one element in the kernel's record */
        uint32_t count;    /* 1: scalar, n: fixed array, 0: dynamic array */
        const perfd_value_name *values;
        size_t n_values;
        bool flags;        /* values are bits or'ed together */
        const char *delimiter;
        bool hex;          /* the kernel's own format shows it as hexadecimal */
        size_t index;      /* in the list of fields that it comes from */
} perfd_field;

PERFD_END_DECLARATIONS
