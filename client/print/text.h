/* For expression.c and format.c: a print format as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/wire/arena.h"

/* Behind the string or character that begins at `at`; NULL: it does not end. */
const char *print_quoted_end(const char *at, const char *end);
/* What a backslash makes of the character behind it. */
char print_unescaped(char c);
/* Adjacent string literals to their text; false: they are something else. *ret_text is of the arena, or NULL: no memory. */
bool print_text_new(Arena *arena, const char *at, const char *end, const char **ret_text, size_t *ret_length);
/* Behind the argument that begins at `at`: a comma outside of brackets and strings, or `end`. NULL: the brackets are wrong. */
const char *print_argument_end(const char *at, const char *end);
