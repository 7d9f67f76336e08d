/* For output: bytes from the traced host as people and as JSON readers can bear them. */
#pragma once

#include "client/perfctl/base/output.h"
#include "client/perfd.h"

/* Length of the UTF-8 character at `at`, 0 if there is none (overlong forms and surrogates are none). */
size_t utf8_length(const char *at, size_t n);

/* The character of `length` bytes, as utf8_length() found it. */
uint32_t utf8_character(const char *at, size_t length);
/*
 * The same, but 0 also for what a terminal may not get: controls (C0, DEL, C1), separators of lines and paragraphs, and
 * characters that are not seen and change the order or meaning of others (bidirectional controls, marks, tags).
 */
size_t text_printable_length(const char *at, size_t n);

/*
 * Each byte of what does not print as \xHH, so that a traced program cannot write to the terminal of who watches it; a
 * backslash is doubled.
 */
void text_put(Output *o, const char *bytes, size_t n);
/* The same up to a NUL: whatever comes from the daemon goes through one of these, or through a table, JSON or perfctl_fail(). */
void text_put_string(Output *o, const char *string);
/* Columns of a terminal that text_put() makes of it: wide characters have two. */
size_t text_width(const char *bytes, size_t n);
/* Columns of what text_put() has written, among it SGR sequences, which have none. */
size_t text_shown_width(const char *bytes, size_t n);
/*
 * text_put() of as much of the end as fits into `width`, behind an ellipsis if that is not all: it is their ends that tell paths and
 * names of events from each other. Gives the width that this is.
 */
size_t text_put_cut(Output *o, const char *bytes, size_t n, size_t width);
/* The same of its beginning, before an ellipsis: of names of functions. */
size_t text_put_begin(Output *o, const char *bytes, size_t n, size_t width);
/* How many bytes a line of this width takes: up to a space, or as many characters as fit and at least one. */
size_t text_wrap(const char *bytes, size_t n, size_t width);
/* The same as text_put(), in double quotes if it is empty or has spaces, quotes or an equals sign. */
void text_put_value(Output *o, perfd_text text);
/* For messages: to stderr, line breaks and tabs stay. */
void text_print_message(const char *message);
