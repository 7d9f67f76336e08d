/* For this folder alone: what others compressed, in memory. What it is when it is unpacked is bounded. */
#pragma once

#include <stddef.h>

/* Of xz(1). NULL: it is none, or more than max bytes, or there is no memory. */
char *unpack_xz(const void *bytes, size_t n, size_t max, size_t *ret_n);
/* Of xz(1) or zstd(1), as its first bytes say. NULL also: of neither */
char *unpack(const void *bytes, size_t n, size_t max, size_t *ret_n);
