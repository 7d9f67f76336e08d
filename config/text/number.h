/* For everyone who takes a number from a user. Pure, any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Digits only: no sign, no space, no overflow. Gives what follows them. */
bool number_decode(const char *text, uint64_t *ret, const char **ret_end);
