/* For format.c: the shape of a tracepoint's format, before anyone parses it. Pure. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool format_text_is_word(char c) {
        return isalnum((unsigned char)c) || c == '_';
}

/*
 * name: WORD, ID: N, format:, lines of fields, and at the end print fmt: "..." with arguments in which every bracket and
 * string is closed. *ret_n_fields counts all field lines, the common ones too.
 */
bool format_text_check(const char *text, size_t length, int *ret_n_fields);

/* Behind the ')' of a call whose '(' is at or behind `from`; NULL if there is none before `end`. */
const char *format_text_call_end(const char *from, const char *end);
