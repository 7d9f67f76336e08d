/*
 * For format.c and tracefs/format-names.c: a tracepoint's format as text, as f_show() of trace_events.c writes it. Pure; parts
 * are spans, which need not end with a zero.
 */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Span {
        const char *at, *end;
} Span;

typedef struct FormatText {
        char *head;   /* owned: all but the print format, which is "" here, for libtraceevent */
        Span print;   /* in the caller's text: "FORMAT", ARGUMENTS */
        Span refused; /* what is not as the kernel writes it */
} FormatText;

#define FORMAT_TEXT_NULL ((FormatText){ .head = NULL })

/* REFUSED_INVALID: nothing for libtraceevent; see .refused. -ENOMEM. */
int format_text_init(FormatText *t, const char *text, size_t length);
void format_text_deinit(FormatText *t);
/* The next field in *head as it is declared, "unsigned long args[6]", the common ones too; false: no more. */
bool format_text_next(const char **head, Span *ret_declaration);

static inline bool format_is_word(char c) {
        return isalnum((unsigned char)c) || c == '_';
}

static inline bool span_is_empty(Span s) {
        return s.at >= s.end;
}

/* Without spaces around. */
Span span_trim(Span s);
/* `s` begins with `word`; then *s is what is behind it. */
bool span_skip(Span *s, const char *word);
bool span_equal(Span s, const char *word);
/* Behind the string or character that begins at `at`; `end` if it does not end. */
const char *span_quoted_end(const char *at, const char *end);
/* Behind the bracket that closes the one at `at`; NULL if none does. */
const char *span_bracket_end(const char *at, const char *end);
/* The next of a list of C arguments, up to a comma outside of brackets and strings; false: *s is empty. */
bool span_next_argument(Span *s, Span *ret_argument);
/* Where `c` stands outside of brackets and strings; NULL: nowhere. */
const char *span_find_outside(Span s, char c);
