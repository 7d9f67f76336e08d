/* For the supervisor: whether what it is about to open fits into what Linux lets this process have. Main thread only. */
#pragma once

#include <stddef.h>

#include "daemon/base/error.h"

/*
 * Rings of `size` data bytes each, before the first is opened. Refused: "locked-memory" with what is needed, what is there,
 * and how to get it. What other processes of the same user have locked is not known, so that mmap(2) may still refuse.
 */
int ring_limits_check(size_t n_rings, size_t size, Explanation *e);
