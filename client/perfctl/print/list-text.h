/* For options whose value is a list. */
#pragma once

#include <stddef.h>

/* "a,b" as a list in one piece of malloc'ed memory; of "" one that is empty. */
const char **list_split(const char *text, size_t *ret_n);
