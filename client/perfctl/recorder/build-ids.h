/* For `record`: of which build each file was that was mapped, which nobody can replace. */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct FileBuildId {
        char *path;
        uint8_t bytes[PERFD_BUILD_ID_MAX];
        size_t n; /* 0: none that can be read */
} FileBuildId;

/* Of each path the first file that was mapped by it. */
typedef struct BuildIds {
        FileBuildId *list; /* sorted by path */
        size_t n, room;
} BuildIds;

/*
 * Code was mapped of the file that this process has by that path. If the path is new, the file is read, and only if it has this inode yet: else
 * nobody can say whose it was. 0, or what perfd_recording_writer_add_build_id() gave.
 */
int build_ids_add(BuildIds *b, perfd_recording_writer *w, uint32_t pid, uint64_t ino, perfd_text path);
/* All of them once more, for another recording. The same. */
int build_ids_put(const BuildIds *b, perfd_recording_writer *w);
void build_ids_deinit(BuildIds *b);
