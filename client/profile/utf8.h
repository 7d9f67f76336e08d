/* Names as exports may have them: valid UTF-8, whatever the traced program has put into them. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The length of the character at `at`, a string, and the character; 0: there is none (overlong forms and surrogates are none). */
size_t utf8_at(const char *at, uint32_t *ret_character);
/*
 * What a character of a name is written as: a byte that is no UTF-8 is a character of its own, U+EF80 to U+EFFF, as in the JSON of
 * perfctl, and so are the bytes of these characters themselves. Gives how many bytes of the name that is, and the character; of the
 * bytes of such a character the first, for which 1 is given.
 */
size_t utf8_export(const char *at, uint32_t *ret_character);
/* The whole name so; malloc, NULL: no memory. */
char *utf8_export_string(const char *name);
