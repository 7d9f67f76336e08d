/*
 * Whoever can write to the directory can publish what he likes in the name of this host. Root may use one of another user: it is that of
 * the relay, for whom root asks `perfd-relay --check`.
 */
#include "client/relay/publish/spool-place.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int spool_place_check(const char *path, Explanation *e) {
        struct stat st;

        if (stat(path, &st) < 0)
                return errno == ENOENT ? refuse(e, REFUSED_NOT_FOUND, "spool", "%s does not exist: make a directory of that name which belongs "
                                                "to the user of the relay, with mode 0700", path)
                                       : refuse(e, REFUSED_DENIED, "spool", "%s cannot be looked at: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return refuse(e, REFUSED_INVALID, "spool", "%s is no directory", path);
        if (st.st_mode & 022)
                return refuse(e, REFUSED_DENIED, "spool", "others can write to %s (mode %04o), and so publish in the name of this host: remove "
                              "that permission (chmod go-w), or use another directory", path, (unsigned)st.st_mode & 07777);
        if (geteuid() != 0 && st.st_uid != geteuid() && st.st_uid != 0)
                return refuse(e, REFUSED_DENIED, "spool", "%s belongs to uid %u, and not to this one, %u, or to root", path,
                              (unsigned)st.st_uid, (unsigned)geteuid());
        if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) < 0)
                return refuse(e, REFUSED_DENIED, "spool", "%s cannot be written to: %s", path, strerror(errno));
        return 0;
}

uint64_t spool_place_size(const char *path) {
        struct statvfs st;

        return statvfs(path, &st) < 0 || st.f_blocks == 0 ? UINT64_MAX : (uint64_t)st.f_blocks * st.f_frsize; /* 0: it does not say */
}
