/* For command lines and tables: numbers with units, in and out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of the text, or false: "12" or "0xc"; "10s", "500ms", "2m", "1h", "250us" in ns; "64KiB", "2MiB", "1M" in bytes. */
bool quantity_parse_number(const char *text, uint64_t *ret);
/* Of a text that is none of these numbers: whether it is one, but above what 64 bits have room for. */
bool quantity_is_too_large(const char *text);
bool quantity_parse_time(const char *text, uint64_t *ret_nsec);
/* Of a text that is no such time: what is wrong, to be put behind it, or "". */
const char *quantity_lack_of_time(const char *text);
bool quantity_parse_size(const char *text, uint64_t *ret_bytes);

#define QUANTITY_SIZE 32
/* For people: "2.0 MiB", "1.5 s", "2 d 3 h"; into `to`, which is returned. */
char *quantity_show_size(uint64_t bytes, char to[static QUANTITY_SIZE]);
char *quantity_show_time(uint64_t nsec, char to[static QUANTITY_SIZE]);
