/* For refusals of a name: the names that are near it. */
#pragma once

#include <stddef.h>

#define NEAR_TEXT_SIZE 200

/* ": did you mean A, B or C?" for up to three names within a third of the length, or "". */
void near_text(const char *wanted, char *const *names, size_t n, char ret_text[static NEAR_TEXT_SIZE]);
