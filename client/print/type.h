/* For expression.c: C types as print formats write them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A C type of a number, or of what a pointer points to; size 0: not known, and left as it is. */
typedef struct PrintType {
        uint8_t size;
        bool is_signed;
        bool is_pointer; /* to a number of this type, if it is known */
} PrintType;

/* at: behind a '('. Behind its ')' if it has nothing but the name of a type in it; NULL: it has something else. */
const char *print_type_read(const char *at, const char *end, PrintType *ret);
