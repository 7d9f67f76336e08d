/* For what writes a file: whether all of it was taken. */
#pragma once

#include <errno.h>
#include <stdio.h>

/* errno was 0 when the first byte was put: so it is that of the write which failed. 0, or a negative errno. */
static inline int file_end(FILE *out) {
        return fflush(out) != 0 || ferror(out) ? -(errno ? errno : EIO) : 0;
}
