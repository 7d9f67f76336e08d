/* For verbs that take a FILE. */
#pragma once

#include "client/perfctl/base/perfctl.h"

#define INPUT_LENGTH_MAX ((size_t)1 << 20) /* HelloReply.max_request */

/*
 * All of its bytes, malloc, of a regular file, a pipe, or "-", which is stdin. 0, or PERFCTL_FAILED after a message, also if
 * there are more than a request can have.
 */
int input_file_read(const Perfctl *p, const char *path, char **ret_bytes, size_t *ret_n);
