/* Whether a directory can be one of a spool. Any thread. */
#pragma once

#include <stdint.h>

#include "daemon/base/error.h"

/* 0, or a Refusal, explained: it is not there, or is none, cannot be written to, or others than its owner can write to it. */
int spool_place_check(const char *path, Explanation *e);
/* Bytes of its file system, also those that are used; UINT64_MAX: not known. */
uint64_t spool_place_size(const char *path);
