/* For `record`: whose program each mapping was, by what nobody can replace. */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct FileBuildId {
        char *path;
        uint8_t bytes[PERFD_BUILD_ID_MAX];
        size_t n; /* 0: none that can be read */
} FileBuildId;

/* Of each path the first file that was mapped by it. */
typedef struct FileBuildIds {
        FileBuildId *list; /* sorted by path */
        size_t n, room;
} FileBuildIds;

/* A mapping of code by the path that this process has it by. What is new is read, of the file that has this inode yet: else nobody can say. NULL:
 * nothing new. Valid until the next call. */
const FileBuildId *file_build_ids_add(FileBuildIds *b, uint32_t pid, uint64_t ino, perfd_text path);
void file_build_ids_deinit(FileBuildIds *b);
