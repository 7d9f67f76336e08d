/* For value.c and value-text.c: refusals. */
#pragma once

#include <stddef.h>

#include "config/keys.h"
#include "daemon/base/error.h"

/* "KEY: found TEXT, expected RANGE" and `more`. */
int refuse_value(const Key *k, const char *text, Explanation *e, const char *more);
/* "KEY: found TEXT, WHY; expected RANGE" */
int refuse_value_at(const Key *k, const char *text, size_t offset, Explanation *e, const char *why);
