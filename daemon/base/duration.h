/* Times as a user writes them. Any thread. */
#pragma once

#include <stdint.h>

#define DURATION_SIZE 32

/* "100us", "2h", "1500ms": in the largest unit that leaves a whole number; into `to`, which is returned. */
const char *duration_text(uint64_t nsec, char to[static DURATION_SIZE]);
