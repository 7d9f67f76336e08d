/* For this folder alone: files of the kernel, whose size nothing says before they are read. */
#pragma once

#include "client/recording-writer/writer.h"

/* All of it, at most `max` bytes. 0; -errno of open(2), read(2); -EFBIG: it has more; -ENOMEM */
int buffer_add_file(const char *path, size_t max, Buffer *b);
