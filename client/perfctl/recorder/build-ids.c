/*
 * Read when a path is seen first, and not at the end, as perf does: until then programs are upgraded, and processes with a root of their own
 * have ended.
 */
#include "client/perfctl/recorder/build-ids.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Its place, or where it has to be. */
static size_t find(const BuildIds *b, const char *path, bool *ret_is_there) {
        size_t from = 0, to = b->n;

        *ret_is_there = false;
        while (from < to) {
                const size_t middle = from + (to - from) / 2;
                const int order = strcmp(b->list[middle].path, path);

                *ret_is_there |= order == 0;
                if (order < 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

static size_t read_file(const char *path, uint64_t ino, uint8_t ret[PERFD_BUILD_ID_MAX]) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* whatever has the path by now */
        struct stat status;
        size_t n = 0;

        if (fd < 0)
                return 0;
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (ino == 0 || status.st_ino == ino))
                n = perfd_build_id_read(fd, ret);
        (void)close(fd);
        return n;
}

/* By its own root first; of a process that has ended, by ours. */
static size_t read_mapped(uint32_t pid, uint64_t ino, const char *path, uint8_t ret[PERFD_BUILD_ID_MAX]) {
        char text[PATH_MAX + 32];
        size_t n;

        (void)snprintf(text, sizeof(text), "/proc/%" PRIu32 "/root%s", pid, path);
        n = read_file(text, ino, ret);
        return n > 0 ? n : read_file(path, ino, ret);
}

static int put(const FileBuildId *f, perfd_recording_writer *w) {
        const perfd_text id = { .bytes = (const char *)f->bytes, .length = f->n }, path = { .bytes = f->path, .length = strlen(f->path) };

        return f->n > 0 ? perfd_recording_writer_add_build_id(w, PERF_RECORD_MISC_USER, id, path) : 0;
}

int build_ids_add(BuildIds *b, perfd_recording_writer *w, uint32_t pid, uint64_t ino, perfd_text path) {
        char text[PATH_MAX];
        FileBuildId *f;
        bool is_there;
        size_t at;

        if (path.length == 0 || path.length >= sizeof(text) || path.bytes[0] != '/' || (path.length > 1 && path.bytes[1] == '/'))
                return 0; /* "[vdso]", "//anon" */
        memcpy(text, path.bytes, path.length);
        text[path.length] = '\0';
        at = find(b, text, &is_there);
        if (is_there)
                return 0;
        if (b->n == b->room) {
                b->room = 2 * b->room + 64;
                b->list = must_have(reallocarray(b->list, b->room, sizeof(*b->list)));
        }
        f = b->list + at;
        memmove(f + 1, f, (b->n++ - at) * sizeof(*f));
        *f = (FileBuildId){ .path = must_have(strdup(text)) };
        f->n = read_mapped(pid, ino, text, f->bytes);
        return put(f, w);
}

int build_ids_put(const BuildIds *b, perfd_recording_writer *w) {
        int code = 0;

        for (size_t i = 0; i < b->n && code == 0; i++)
                code = put(&b->list[i], w);
        return code;
}

void build_ids_deinit(BuildIds *b) {
        for (size_t i = 0; i < b->n; i++)
                free(b->list[i].path);
        free(b->list);
        *b = (BuildIds){ .n = 0 };
}
