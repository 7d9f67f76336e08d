/*
 * perfd reads files that its clients cannot. So that it says nothing of these, a path is walked as the kernel would walk it for
 * the client, one name at a time, and each folder is asked before a name is looked up in it. Nothing is opened on the way but
 * O_PATH, which has no effect on what is there, waits for nobody, and stays the same file when a name leads elsewhere.
 *
 * The other way would be to become the client for the moment of open(2), setfsuid(2). That asks for CAP_SETUID, with which a perfd
 * that was taken over could become anybody (privileges.c, privileges/system-calls.c).
 *
 * What mode bits do not say is refused: files with access control lists but to their owner, and all of procfs, whose links lead
 * into other processes and whose files have rules of their own. Capabilities of the client count for nothing.
 */
#include "daemon/kernel/host/file-access.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#define LINKS_MAX 40 /* as the kernel's MAXSYMLINKS */

typedef struct Walk {
        const char *path;
        const Credentials *who;
        int fd;                  /* of the folder that it is in, and of the file in the end */
        unsigned n_links;
        char rest[2 * PATH_MAX]; /* of the path, links replaced */
} Walk;

static int refuse_access(const Walk *w, Explanation *e) {
        return refuse(e, REFUSED_DENIED, "no-permission",
                      "uid %u may not read %s, or a directory of its path: name a file that it can read, or use the control socket",
                      (unsigned)w->who->uid, QUOTE(w->path));
}

static int refuse_missing(const Walk *w, Explanation *e) {
        return refuse(e, REFUSED_NOT_FOUND, "no-file", "there is no file %s", QUOTE(w->path));
}

static int refuse_error(const Walk *w, int error, Explanation *e) {
        if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG)
                return refuse_missing(w, e);
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "no fd is left to read %s", QUOTE(w->path));
        if (error == ENOMEM)
                return refuse_kernel_memory(e, QUOTE(w->path));
        return refuse_access(w, e);
}

static bool is_member(const Credentials *who, gid_t gid) {
        for (size_t i = 0; i < who->n_groups; i++)
                if (who->groups[i] == gid)
                        return true;
        return who->gid == gid;
}

/* An fd of O_PATH has no attributes of its own, but the file behind it has. In doubt there is one. */
static bool has_access_list(int fd) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0 || (errno != ENODATA && errno != ENOTSUP);
}

/* right: one of R_OK, X_OK, which are the bits of "other" in a mode. */
static bool may(const Walk *w, int fd, const struct stat *s, unsigned right) {
        if (s->st_uid == w->who->uid)
                return s->st_mode >> 6 & right;
        if (has_access_list(fd))
                return false;
        return s->st_mode >> (is_member(w->who, s->st_gid) ? 3 : 0) & right;
}

/* The folder that the walk is in, before a name is looked up in it. */
static int check_folder(const Walk *w, Explanation *e) {
        struct statfs fs;
        struct stat s;

        if (fstat(w->fd, &s) < 0 || fstatfs(w->fd, &fs) < 0)
                return refuse_error(w, errno, e);
        if (!S_ISDIR(s.st_mode))
                return refuse_missing(w, e);
        return fs.f_type != PROC_SUPER_MAGIC && may(w, w->fd, &s, X_OK) ? 0 : refuse_access(w, e);
}

static int enter_root(Walk *w, Explanation *e) {
        close_fd(w->fd);
        w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return w->fd < 0 ? refuse_error(w, errno, e) : 0;
}

/* What a link says comes before the rest of the path. */
static int follow(Walk *w, int link, Explanation *e) {
        char target[PATH_MAX], rest[sizeof(w->rest)];
        ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

        if (n < 0)
                return refuse_error(w, errno, e);
        target[n] = '\0';
        if (++w->n_links > LINKS_MAX || (size_t)snprintf(rest, sizeof(rest), "%s/%s", target, w->rest) >= sizeof(rest))
                return refuse_missing(w, e);
        memcpy(w->rest, rest, sizeof(rest));
        return *target == '/' ? enter_root(w, e) : 0;
}

/* The next name of the path, which is no longer in the rest. "": there is none. */
static int take_name(Walk *w, char name[static NAME_MAX + 1], Explanation *e) {
        size_t begin = strspn(w->rest, "/"), n = strcspn(w->rest + begin, "/");

        if (n > NAME_MAX)
                return refuse_missing(w, e);
        memcpy(name, w->rest + begin, n);
        name[n] = '\0';
        memmove(w->rest, w->rest + begin + n, strlen(w->rest + begin + n) + 1);
        return 0;
}

static int walk(Walk *w, Explanation *e) {
        char name[NAME_MAX + 1];
        int r = enter_root(w, e);

        while (r == 0 && (r = take_name(w, name, e)) == 0 && *name) {
                _cleanup_close_ int next = -1;
                struct stat s;

                r = check_folder(w, e);
                if (r != 0)
                        break;
                next = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0 || fstat(next, &s) < 0)
                        return refuse_error(w, errno, e);
                if (S_ISLNK(s.st_mode))
                        r = follow(w, next, e);
                else {
                        close_fd(w->fd);
                        w->fd = TAKE_FD(next);
                }
        }
        return r;
}

int file_access_open(const char *path, const Credentials *who, int *ret_fd, Explanation *e) {
        Walk w = { .path = path, .who = who, .fd = -1 };
        struct statfs fs;
        struct stat s;
        int r;

        if ((size_t)snprintf(w.rest, sizeof(w.rest), "%s", path) >= PATH_MAX)
                return refuse_missing(&w, e);
        r = walk(&w, e);
        if (r == 0 && (fstat(w.fd, &s) < 0 || fstatfs(w.fd, &fs) < 0))
                r = refuse_error(&w, errno, e);
        if (r == 0 && (fs.f_type == PROC_SUPER_MAGIC || !may(&w, w.fd, &s, R_OK)))
                r = refuse_access(&w, e);
        if (r == 0 && !S_ISREG(s.st_mode))
                r = refuse(e, REFUSED_INVALID, "bad-elf", "%s: is not a regular file", QUOTE(path));
        if (r == 0)
                *ret_fd = TAKE_FD(w.fd);
        close_fd(w.fd);
        return r;
}
