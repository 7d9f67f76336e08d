/* For tracefs/format-names.c: constants as print formats write them. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/kernel/tracefs/format-text.h"

/*
 * The value of a constant C expression in 64 bits: integers, character constants, casts (without their narrowing),
 * brackets, - ~ ! + and the binary operators of integers without comparisons. False: it is something else, or divides
 * by zero.
 */
bool format_number(Span expression, uint64_t *ret);
