/* For print-format.c: one conversion of a print format. */
#pragma once

#include "client/print-evaluate.h"
#include "client/print-format.h"

/* has_base: a hexadecimal number begins with 0x, an octal one with 0. False: it cannot be shown. */
bool print_conversion(const PrintConversion *c, PrintEvaluation *e, bool has_base, const perfd_symbols *symbols, Render *r);
