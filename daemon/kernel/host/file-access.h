/* For who opens a file because a client has named it: only what the client could open itself. Any thread. */
#pragma once

#include "daemon/base/credentials.h"
#include "daemon/base/error.h"

/*
 * The file at an absolute path as an fd of O_PATH, if it is a regular file that `who` may read, in folders that `who` may
 * search. REFUSED_DENIED "no-permission", with the same text whatever is there or is not: `who` may not know.
 * REFUSED_NOT_FOUND "no-file", REFUSED_INVALID "bad-elf" (no regular file): `who` can see that too.
 */
int file_access_open(const char *path, const Credentials *who, int *ret_fd, Explanation *e);
