/*
 * Foreign text in messages and in the log: names, filters and paths of clients, texts of the kernel, file names. Pure, any thread.
 *
 * Text is printable if a terminal, a log and a protobuf string can show it unchanged. Not printable are control characters (C0
 * including line breaks, DEL, C1), line and paragraph separators, annotations, Unicode's default ignorable characters, which are
 * invisible (bidirectional controls, zero-width characters, soft hyphens, fillers, byte order marks, variation selectors, tags: two
 * names that differ only in these look the same), and invalid UTF-8.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The length of the character at `text`, which is zero-terminated; 0: invalid UTF-8, including overlong forms and surrogates. */
size_t utf8_decode(const char *text, uint32_t *ret_character);
/* The same, but also 0 for an unprintable character. */
size_t printable_length(const char *text);
/*
 * Makes `text` printable in its buffer of `size` bytes: each byte of an unprintable character becomes \xNN. A text that no longer
 * fits is cut, and ends with "...".
 */
void printable_make(char *text, size_t size);
/* A printable copy of the whole text. NULL: no memory. */
char *printable_copy(const char *text);
/* For names in protobuf strings: replaces each byte of invalid UTF-8 by '?'. */
void utf8_mend(char *text);
