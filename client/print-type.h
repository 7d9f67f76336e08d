/* For print-expression.c: C types as print formats write them. */
#pragma once

#include "client/print-expression.h"

/* at: behind a '('. Behind its ')' if it has nothing but the name of a type in it; NULL: it has something else. */
const char *print_type_read(const char *at, const char *end, PrintType *ret);
