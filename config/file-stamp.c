/* The time of change (st_ctim) beside that of the bytes: who sets the latter back, as by `cp -p`, changes the former. */
#include "config/file-stamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/error.h"

static void stamp_set(FileStamp *s, const struct stat *st) {
        s->is_there = true;
        s->device = st->st_dev;
        s->inode = st->st_ino;
        s->size = st->st_size;
        s->modified = st->st_mtim;
        s->changed = st->st_ctim;
}

static bool is_same_time(struct timespec a, struct timespec b) {
        return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_current(const FileStamp *s) {
        FileStamp now = { .path = NULL };
        struct stat st;

        if (stat(s->path, &st) < 0)
                return errno == ENOENT && !s->is_there;
        stamp_set(&now, &st);
        return s->is_there && s->device == now.device && s->inode == now.inode && s->size == now.size &&
               is_same_time(s->modified, now.modified) && is_same_time(s->changed, now.changed);
}

int file_stamps_add(FileStamps *s, const char *path, const struct stat *st) {
        FileStamp stamp = { .path = strdup(path) };

        if (!stamp.path || !ARRAY_ROOM(s->items, s->n)) {
                free(stamp.path);
                return error_origin(-ENOMEM);
        }
        if (st)
                stamp_set(&stamp, st);
        s->items[s->n++] = stamp;
        return 0;
}

bool file_stamps_are_current(const FileStamps *s) {
        for (size_t i = 0; i < s->n; i++)
                if (!is_current(&s->items[i]))
                        return false;
        return true;
}

void file_stamps_deinit(FileStamps *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->items[i].path);
        free(s->items);
        *s = (FileStamps){ .items = NULL };
}
