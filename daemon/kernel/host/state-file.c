/*
 * The length in the first line is there because a protobuf message that was cut between two fields looks whole. rename(2)
 * never cuts anything, but disks and people do.
 *
 * perfd may be root, and the path is whatever somebody wrote: so the folder has to be one in which nobody else can make or
 * move anything, and then what is there has to be a regular file that begins as one of perfd's, or nothing. Everything goes by the folder's fd, so that
 * what was looked at is what is changed.
 */
#include "daemon/kernel/host/state-file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/fd-limit.h"

#define WORDS "perfd events "
#define VERSION 1
#define FIRST_LINE_MAX 64
#define FOLDER_IS_SET_BY "the key `state` of its configuration, or --runtime-directory"
#define NAMES 100 /* of files set aside */
#define FILE_MAX ((size_t)64 << 20) /* 10,000 events with the longest filters */

/* A path in two: the folder, which is open, and the name in it. */
typedef struct Place {
        const char *path, *name;
        char *folder;
        int fd;
} Place;

#define PLACE_NULL ((Place){ .fd = -1 })

static void place_deinit(Place *p) {
        free(p->folder);
        close_fd(p->fd);
}

/* What lets perfd write, by what Linux said. */
static const char *remedy(int error) {
        switch (error) {
        case ENOSPC:
                return "free space on its file system";
        case EDQUOT:
                return "free space, or raise the disk quota of perfd's user";
        case EROFS:
                return "its file system is read-only: mount it writable, or set another path (" FOLDER_IS_SET_BY ")";
        case EMFILE:
        case ENFILE:
                return "raise the limit of open files";
        case EIO:
                return "check the disk, which the kernel's log says more of";
        default:
                return "give perfd a directory of its own (" FOLDER_IS_SET_BY ")";
        }
}

static int refuse_place(const char *path, int error, const char *what, Explanation *e) {
        Refusal refusal = error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE ? REFUSED_EXHAUSTED
                                                                                                   : REFUSED_DENIED;

        if (error == ENOMEM)
                return refuse_kernel_memory(e, path);
        return refuse(e, refusal, "state-file", "the state file %s cannot be used: %s: %s; %s", path, what, strerror(error),
                      remedy(error));
}

static const char *kind_name(mode_t mode) {
        return S_ISDIR(mode)    ? "a directory"
               : S_ISLNK(mode)  ? "a symbolic link"
               : S_ISSOCK(mode) ? "a socket"
               : S_ISFIFO(mode) ? "a pipe"
                                : "a device";
}

static int refuse_kind(const char *path, mode_t mode, Explanation *e) {
        return refuse(e, REFUSED_DENIED, "state-file", "%s is %s, and perfd stores events only in a regular file: set the key "
                "`state` of its configuration", path, kind_name(mode));
}

/* How far it was written is no matter: a file that was cut in its first word is still one of perfd's. */
static int begin_check(int folder, const char *name, const char *path, Explanation *e) {
        _cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        char begin[sizeof(WORDS) - 1];
        ssize_t n = fd < 0 ? -1 : pread(fd, begin, sizeof(begin), 0);

        if (n < 0 || memcmp(begin, WORDS, (size_t)n) == 0) /* reading it says why it cannot be read */
                return 0;
        return refuse(e, REFUSED_DENIED, "state-file", "%s does not begin like a state file of perfd, and may belong to another "
                "program: set the key `state` of its configuration to a file of perfd's own, or remove this one", path);
}

static int mode_check(const char *folder, mode_t mode, Explanation *e) {
        if (mode & 022 && mode & S_ISVTX) /* as /tmp is: to be shared */
                return refuse(e, REFUSED_DENIED, "state-file", "%s cannot be the directory of the state file: others may write "
                        "to it, as intended (mode %04o); give perfd a directory of its own (" FOLDER_IS_SET_BY ")", folder,
                              (unsigned)mode & 07777);
        if (mode & 022)
                return refuse(e, REFUSED_DENIED, "state-file", "%s cannot be the directory of the state file: others may write "
                        "to it (mode %04o); remove that permission (chmod go-w), or give perfd another directory "
                        "(" FOLDER_IS_SET_BY ")",
                              folder, (unsigned)mode & 07777);
        return 0;
}

/* Whose the folder is, is not for who asks here: it may be another user than that of perfd. */
int state_file_check_place(const char *path, Explanation *e) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
        struct stat st;
        int r = 0;

        if (!folder)
                return error_origin(-ENOMEM);
        if (stat(folder, &st) == 0)
                r = mode_check(folder, st.st_mode, e);
        if (r != 0 || lstat(path, &st) < 0)
                return r;
        return S_ISREG(st.st_mode) ? begin_check(AT_FDCWD, path, path, e) : refuse_kind(path, st.st_mode, e);
}

static int folder_check(const Place *p, Explanation *e) {
        struct stat st;

        if (fstat(p->fd, &st) < 0)
                return refuse_place(p->path, errno, p->folder, e);
        if (st.st_uid != geteuid() && st.st_uid != 0)
                return refuse(e, REFUSED_DENIED, "state-file", "%s cannot be the directory of the state file: it belongs to uid "
                        "%u, and not to perfd's, %u, or to root", p->folder, (unsigned)st.st_uid, (unsigned)geteuid());
        return mode_check(p->folder, st.st_mode, e);
}

/* STATE_FILE_E_MISSING: there is no such folder. */
static int place_open(const char *path, bool make, Place *ret, Explanation *e) {
        _cleanup_(place_deinit) Place p = { .path = path, .folder = strdup(path), .fd = -1 };
        char *slash = p.folder ? strrchr(p.folder, '/') : NULL;
        int r;

        if (!p.folder)
                return error_origin(-ENOMEM);
        assert(slash);
        p.name = path + (slash - p.folder) + 1;
        slash[slash == p.folder] = '\0';
        p.fd = open(p.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p.fd < 0 && errno == ENOENT && make && mkdir(p.folder, 0700) == 0)
                p.fd = open(p.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p.fd < 0)
                return errno == ENOENT && !make ? STATE_FILE_E_MISSING : refuse_place(path, errno, p.folder, e);
        r = folder_check(&p, e);
        if (r != 0)
                return r;
        *ret = p;
        p = PLACE_NULL;
        return 0;
}

/* Of a name in the folder: whether it may be read, replaced or renamed. STATE_FILE_E_MISSING. */
static int kind_check(const Place *p, const char *name, const char *path, Explanation *e) {
        struct stat st;

        if (fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? STATE_FILE_E_MISSING : refuse_place(p->path, errno, path, e);
        return S_ISREG(st.st_mode) ? begin_check(p->fd, name, path, e) : refuse_kind(path, st.st_mode, e);
}

static int write_all(int fd, const uint8_t *bytes, size_t n) {
        while (n > 0) {
                ssize_t part = write(fd, bytes, n);

                if (part < 0 && errno == EINTR)
                        continue;
                if (part < 0)
                        return error_origin(-errno);
                bytes += part;
                n -= (size_t)part;
        }
        return 0;
}

/* -errno; what was begun is left to the caller. */
static int write_beside(const Place *p, const char *name, const uint8_t *bytes, size_t n) {
        _cleanup_close_ int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        char line[FIRST_LINE_MAX];
        int length, r;

        if (fd < 0)
                return error_origin(-errno);
        length = snprintf(line, sizeof(line), WORDS "%d %zu\n", VERSION, n);
        r = write_all(fd, (const uint8_t *)line, (size_t)length);
        if (r == 0)
                r = write_all(fd, bytes, n);
        if (r == 0 && fsync(fd) < 0)
                r = error_origin(-errno);
        return r;
}

/* The name itself on the disk. */
static int sync_folder(int folder) {
        return fsync(folder) < 0 && errno != EINVAL ? error_origin(-errno) : 0; /* EINVAL: a file system that has nothing to sync */
}

/* What a perfd left that was killed while it wrote is in nobody's way. */
static int remove_half_written(const Place *p, const char *name, const char *path, Explanation *e) {
        int r = kind_check(p, name, path, e);

        if (r == 0 && unlinkat(p->fd, name, 0) < 0)
                return refuse_place(p->path, errno, path, e);
        return r == STATE_FILE_E_MISSING ? 0 : r;
}

int state_file_write(const char *path, const uint8_t *bytes, size_t n, Explanation *e) {
        WITH_FD_RESERVE; /* or what is kept could not be removed while there are no fds */
        _cleanup_(place_deinit) Place p = PLACE_NULL;
        _cleanup_free_ char *beside = NULL;
        const char *name;
        int r;

        if (n > FILE_MAX - FIRST_LINE_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "state-file", "the persistent events have %zu bytes, and %s may have %zu: "
                        "remove some", n, path,
                              FILE_MAX - FIRST_LINE_MAX);
        if (asprintf(&beside, "%s.new", path) < 0) {
                beside = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        r = place_open(path, true, &p, e);
        if (r == 0)
                r = kind_check(&p, p.name, path, e);
        name = beside + (p.name ? p.name - path : 0);
        if (r == 0 || r == STATE_FILE_E_MISSING)
                r = remove_half_written(&p, name, beside, e);
        if (r != 0)
                return r;
        r = write_beside(&p, name, bytes, n);
        if (r == 0 && renameat(p.fd, name, p.fd, p.name) < 0)
                r = error_origin(-errno);
        if (r < 0) {
                if (r != -EEXIST)
                        (void)unlinkat(p.fd, name, 0);
                return refuse_place(path, -r, beside, e);
        }
        r = sync_folder(p.fd);
        return r < 0 ? refuse_place(path, -r, p.folder, e) : 0;
}

/* "WORDS VERSION LENGTH\n" */
int state_file_check(const char *path, const uint8_t *file, size_t length, size_t *ret_begin, Explanation *e) {
        const uint8_t *end = memchr(file, '\n', length < FIRST_LINE_MAX ? length : FIRST_LINE_MAX);
        char line[FIRST_LINE_MAX + 1] = "", rest;
        unsigned version;
        size_t n, begin;

        if (length == 0) /* there is a first line at least, also of no events */
                return refuse(e, REFUSED_INVALID, "state-file", "%s is empty, as perfd never writes it: what it had is lost", path);
        if (end)
                memcpy(line, file, (size_t)(end - file));
        if (!end || sscanf(line, WORDS "%u %zu%c", &version, &n, &rest) != 2)
                return refuse(e, REFUSED_INVALID, "state-file", "%s does not begin like a state file of perfd", path);
        if (version != VERSION)
                return refuse(e, REFUSED_INVALID, "state-file", "%s is a state file of version %u, and this perfd supports "
                        "%d", path,
                              version, VERSION);
        begin = (size_t)(end - file) + 1;
        if (length - begin != n)
                return refuse(e, REFUSED_INVALID, "state-file", "%s has %zu bytes after its first line, which says %zu", path,
                              length - begin, n);
        *ret_begin = begin;
        return 0;
}

/* All of a regular file. STATE_FILE_E_MISSING. */
static int read_file(const Place *p, char **ret_bytes, size_t *ret_length, Explanation *e) {
        int r = kind_check(p, p->name, p->path, e); /* to open a device can be to do something with it */
        _cleanup_close_ int fd = r == 0 ? openat(p->fd, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        struct stat st;

        if (r != 0)
                return r;
        if (fd < 0)
                return refuse_place(p->path, errno, p->path, e);
        if (fstat(fd, &st) < 0)
                return refuse_place(p->path, errno, p->path, e);
        if (!S_ISREG(st.st_mode))
                return refuse_kind(p->path, st.st_mode, e);
        if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & 022)
                return refuse(e, REFUSED_DENIED, "state-file", "%s may have been written by others than perfd (mode %04o, uid %u): check "
                        "what is in it, then let it belong to uid %u with mode 0600, or remove it", p->path,
                              (unsigned)st.st_mode & 07777, (unsigned)st.st_uid, (unsigned)geteuid());
        if (st.st_size < 0 || (uint64_t)st.st_size > FILE_MAX)
                return refuse(e, REFUSED_INVALID, "state-file", "%s has %lld bytes, more than the limit of a state file, "
                        "%zu", p->path,
                              (long long)st.st_size, FILE_MAX);
        bytes = malloc((size_t)st.st_size + 1);
        if (!bytes)
                return error_origin(-ENOMEM);
        while (length < (size_t)st.st_size) {
                ssize_t n = read(fd, bytes + length, (size_t)st.st_size - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return refuse_place(p->path, errno, p->path, e);
                if (n == 0)
                        break;
                length += (size_t)n;
        }
        *ret_bytes = TAKE_PTR(bytes);
        *ret_length = length;
        return 0;
}

int state_file_read(const char *path, uint8_t **ret_bytes, size_t *ret_n, Explanation *e) {
        _cleanup_(place_deinit) Place p = PLACE_NULL;
        _cleanup_free_ char *file = NULL;
        size_t length = 0, begin;
        int r = place_open(path, false, &p, e);

        if (r == 0)
                r = read_file(&p, &file, &length, e);
        if (r != 0)
                return r;
        r = state_file_check(path, (const uint8_t *)file, length, &begin, e);
        if (r != 0)
                return r;
        memmove(file, file + begin, length - begin);
        *ret_bytes = (uint8_t *)TAKE_PTR(file);
        *ret_n = length - begin;
        return 0;
}

int state_file_set_aside(const char *path, char **ret_name, Explanation *e) {
        _cleanup_(place_deinit) Place p = PLACE_NULL;
        int r = place_open(path, false, &p, e);

        if (r == 0)
                r = kind_check(&p, p.name, path, e);
        if (r == STATE_FILE_E_MISSING)
                return refuse(e, REFUSED_DENIED, "state-file", "%s cannot be renamed: it has been removed", path);
        for (int i = 1; i <= NAMES && r == 0; i++) {
                _cleanup_free_ char *name = NULL;

                if (asprintf(&name, "%s.broken-%d", path, i) < 0) {
                        name = NULL;
                        return error_origin(-ENOMEM);
                }
                if (renameat2(p.fd, p.name, p.fd, name + (p.name - path), RENAME_NOREPLACE) == 0) {
                        *ret_name = TAKE_PTR(name);
                        return 0;
                }
                if (errno != EEXIST)
                        return refuse(e, REFUSED_DENIED, "state-file", "%s cannot be renamed: %s", path, strerror(errno));
        }
        return r != 0 ? r : refuse(e, REFUSED_DENIED, "state-file", "there are already %d broken state files next to "
                "%s", NAMES, path);
}
