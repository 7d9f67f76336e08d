/* For print formats: values of expressions, and C's arithmetic on them. Pure. */
#pragma once

#include "client/print/type.h"

typedef struct PrintValue {
        uint64_t number; /* as its type has it, widened to 64 bits */
        PrintType type;  /* of the number; of an element of the bytes */
        bool is_bytes;   /* a text, an array, what lies at a place in the record */
        const char *bytes;
        size_t length;
} PrintValue;

static const PrintType print_type_int = { .size = 4, .is_signed = true };

/* A value of this type, which takes the bits that do not fit away. */
PrintValue print_number_of(uint64_t number, PrintType t);
/* Operators of two numbers, but && and ||, which do not evaluate both. False: a division by 0, a shift by too much. */
bool print_calculate(char code, const PrintValue *a, const PrintValue *b, PrintValue *ret);

/* Elements of arrays lie in the order of this machine, and have 1, 2, 4 or 8 bytes. */
bool print_is_element_size(uint32_t size);
void print_put_element(char *to, uint64_t number, uint32_t size);
/* False: it is no array, or not so long. */
bool print_element_at(const PrintValue *array, uint64_t i, PrintValue *ret);
