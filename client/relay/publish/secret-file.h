/* A password or a token in a file of its own, the only thing in it. Any thread. */
#pragma once

#include <stddef.h>

#include "client/relay/publish/server-url.h"

/* One line, with or without its line break. NULL, or what is wrong, to follow the name of the file; `to` is the caller's to overwrite. */
const char *secret_take_line(const char *bytes, size_t n, char to[static SECRET_SIZE]);
/* The same from a file; also what the kernel says. */
const char *secret_file_read(const char *path, char to[static SECRET_SIZE]);
