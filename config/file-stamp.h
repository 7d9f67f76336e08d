/*
 * What a file was like when it was read: whether it is another one now can be told by stat(2) alone. A folder is one too, whose
 * time changes with the names in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef struct FileStamp {
        char *path;
        bool is_there;
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec modified, changed;
} FileStamp;

typedef struct FileStamps {
        FileStamp *items;
        size_t n;
} FileStamps;

/* st: NULL if there is none. -ENOMEM */
int file_stamps_add(FileStamps *s, const char *path, const struct stat *st);
/* Each file is as it was. One that cannot be looked at is not. */
bool file_stamps_are_current(const FileStamps *s);
void file_stamps_deinit(FileStamps *s);
