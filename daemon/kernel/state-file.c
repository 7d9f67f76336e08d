/*
 * The length in the first line is there because a protobuf message that was cut between two fields looks whole. rename(2)
 * never cuts anything, but disks and people do.
 */
#include "daemon/kernel/state-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/whole-file.h"

#define WORDS "perfd events "
#define VERSION 1
#define FIRST_LINE_MAX 64
#define NAMES 100 /* of files set aside */

static int refuse_writing(int error, const char *path, const char *what, Explanation *e) {
        Refusal refusal = error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE ? REFUSED_EXHAUSTED
                                                                                                   : REFUSED_DENIED;

        if (error == ENOMEM)
                return -ENOMEM;
        return refuse(e, refusal, "state-file", "the state file %s can not be written: %s: %s; give perfd a folder that it may "
                      "write to (the key `state` of its configuration)", path, what, strerror(error));
}

static int write_all(int fd, const uint8_t *bytes, size_t n) {
        while (n > 0) {
                ssize_t part = write(fd, bytes, n);

                if (part < 0 && errno == EINTR)
                        continue;
                if (part < 0)
                        return -errno;
                bytes += part;
                n -= (size_t)part;
        }
        return 0;
}

/* -errno; what was begun is left to the caller. */
static int write_beside(const char *path, const uint8_t *bytes, size_t n) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        char line[FIRST_LINE_MAX];
        int length, r;

        if (fd < 0)
                return -errno;
        length = snprintf(line, sizeof(line), WORDS "%d %zu\n", VERSION, n);
        r = write_all(fd, (const uint8_t *)line, (size_t)length);
        if (r == 0)
                r = write_all(fd, bytes, n);
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        return r;
}

/* The name itself on the disk. */
static int sync_folder(int folder) {
        return fsync(folder) < 0 && errno != EINVAL ? -errno : 0; /* EINVAL: a file system that has nothing to sync */
}

int state_file_write(const char *path, const uint8_t *bytes, size_t n, Explanation *e) {
        _cleanup_free_ char *beside = NULL, *folder = strdup(path);
        _cleanup_close_ int folder_fd = -1;
        char *slash = folder ? strrchr(folder, '/') : NULL;
        int r;

        if (!folder || asprintf(&beside, "%s.new", path) < 0)
                return -ENOMEM;
        assert(slash);
        slash[slash == folder] = '\0';
        folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd < 0 && errno == ENOENT && mkdir(folder, 0700) == 0)
                folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd < 0)
                return refuse_writing(errno, path, folder, e);
        r = write_beside(beside, bytes, n);
        if (r == 0 && rename(beside, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(beside);
                return refuse_writing(-r, path, beside, e);
        }
        r = sync_folder(folder_fd);
        return r < 0 ? refuse_writing(-r, path, folder, e) : 0;
}

/* "WORDS VERSION LENGTH\n" */
int state_file_check(const char *path, const uint8_t *file, size_t length, size_t *ret_begin, Explanation *e) {
        const uint8_t *end = memchr(file, '\n', length < FIRST_LINE_MAX ? length : FIRST_LINE_MAX);
        char line[FIRST_LINE_MAX + 1] = "", rest;
        unsigned version;
        size_t n, begin;

        if (end)
                memcpy(line, file, (size_t)(end - file));
        if (!end || sscanf(line, WORDS "%u %zu%c", &version, &n, &rest) != 2)
                return refuse(e, REFUSED_INVALID, "state-file", "%s does not begin as perfd's state file does", path);
        if (version != VERSION)
                return refuse(e, REFUSED_INVALID, "state-file", "%s is a state file of version %u, and this perfd knows %d", path,
                              version, VERSION);
        begin = (size_t)(end - file) + 1;
        if (length - begin != n)
                return refuse(e, REFUSED_INVALID, "state-file", "%s has %zu bytes behind its first line, which says %zu", path,
                              length - begin, n);
        *ret_begin = begin;
        return 0;
}

int state_file_read(const char *path, uint8_t **ret_bytes, size_t *ret_n, Explanation *e) {
        _cleanup_free_ char *file = NULL;
        size_t length = 0, begin;
        int r = whole_file_read(path, &file, &length);

        if (r == -ENOENT)
                return STATE_FILE_E_MISSING;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse(e, REFUSED_DENIED, "state-file", "the state file %s can not be read: %s", path, strerror(-r));
        r = state_file_check(path, (const uint8_t *)file, length, &begin, e);
        if (r != 0)
                return r;
        memmove(file, file + begin, length - begin);
        *ret_bytes = (uint8_t *)TAKE_PTR(file);
        *ret_n = length - begin;
        return 0;
}

int state_file_set_aside(const char *path, char **ret_name, Explanation *e) {
        for (int i = 1; i <= NAMES; i++) {
                _cleanup_free_ char *name = NULL;

                if (asprintf(&name, "%s.broken-%d", path, i) < 0)
                        return -ENOMEM;
                if (renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_NOREPLACE) == 0) {
                        *ret_name = TAKE_PTR(name);
                        return 0;
                }
                if (errno != EEXIST)
                        return refuse(e, REFUSED_DENIED, "state-file", "%s can not be renamed: %s", path, strerror(errno));
        }
        return refuse(e, REFUSED_DENIED, "state-file", "there are %d broken state files beside %s already", NAMES, path);
}
