/*
 * For format.c and format-names.c: a tracepoint's format as text, as f_show() of trace_events.c writes it. Pure; parts
 * are spans of the caller's text, which need not end with a zero.
 */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        FORMAT_E_END = 1, /* no more fields; then .print is what stands behind "print fmt: " */
        FORMAT_E_BAD,     /* not a format */
};

typedef struct Span {
        const char *at, *end;
} Span;

typedef struct FormatField {
        Span declaration; /* "unsigned long args[6]" */
        uint32_t offset, size;
        bool is_signed;
} FormatField;

typedef struct FormatText {
        Span name;
        uint32_t id;
        Span print; /* "FORMAT", ARGUMENTS */
        Span rest;
} FormatText;

/* Name and id; then fields, the common ones too, in their order. */
int format_text_init(FormatText *t, const char *text, size_t length);
int format_text_next(FormatText *t, FormatField *ret);

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
