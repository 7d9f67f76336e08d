/*
 * For all that puts foreign text into a message or a line of the log: names, filters and paths of clients, what the
 * kernel says, names of files. Pure, any thread.
 *
 * Text is printable if a terminal, a log and a protobuf string take it as it is. What is not: control characters (C0
 * with line breaks, DEL, C1), line and paragraph separators, annotations, what Unicode calls default ignorable, because it is
 * not seen (bidirectional controls, characters of no width, soft hyphens, fillers, byte order marks, variation selectors,
 * tags: two names that differ in these look the same), and bytes that are no UTF-8.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `text`, which ends with a zero; 0 if it is no UTF-8: overlong forms and surrogates are none. */
size_t utf8_decode(const char *text, uint32_t *ret_character);
/* The same, but 0 also if it is not printable. */
size_t printable_length(const char *text);
/*
 * Makes `text` printable in its buffer of `size` bytes: each byte of what is not becomes \xNN. What no longer fits is
 * cut, and ends with "...".
 */
void printable_make(char *text, size_t size);
/* A printable copy of the whole text. NULL: no memory. */
char *printable_copy(const char *text);
/* For a name that is no message but a protobuf string: a byte that begins no whole character becomes '?'. */
void utf8_mend(char *text);
