/* For kernel/: files of tracefs and procfs, which have no size before they are read. */
#pragma once

#include <stddef.h>

#include "daemon/base/error.h"

/* All of it, with a zero behind it, in malloc'ed memory. -errno. Any thread. */
int whole_file_read(const char *path, char **ret_text, size_t *ret_length);
/* The same of a path in an open folder. */
int whole_file_read_at(int folder, const char *path, char **ret_text, size_t *ret_length);
/* The same of a file of many megabytes, with a checkpoint() between two of its pages, as which it may refuse. */
int whole_file_read_long(const char *path, char **ret_text, size_t *ret_length, Explanation *e);
