/*
 * For this folder alone: files that others wrote, and may have put something else in the place of. Only regular files are opened: what is
 * there is looked at first without opening it, so that nobody who waits at the other end of a FIFO or of a device notices.
 */
#pragma once

#include <stdint.h>
#include <stddef.h>
#include <sys/stat.h>

/* A path below a root, as are its symbolic links; root NULL or "/": of this process. An fd; -1: there is none, or it is no regular file. */
int open_file(const char *root, const char *path, struct stat *ret_status);
/* All of it that an fd has, and a 0 behind it. NULL: more than max, or it cannot be read, or there is no memory. */
char *read_file(int fd, size_t max, size_t *ret_n);
