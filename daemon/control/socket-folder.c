/*
 * Who may rename entries of a folder can put a socket of its own in the place of perfd's, and clients of root would talk to that.
 * So a socket is only made where, from the root directory on, none but root and perfd's own user can do so: each folder is theirs,
 * and if all users may write into it, it is sticky (as /tmp). A group that may write is one that an administrator has chosen.
 */
#include "daemon/control/socket-folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

static int check_one(const char *path, const char *folder, Explanation *e) {
        struct stat st;

        if (stat(folder, &st) < 0)
                return 0; /* bind(2) says what is wrong */
        if (st.st_uid != 0 && st.st_uid != geteuid())
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "%s is not created: %s belongs to uid %u, who could replace it; use a directory of root, or of perfd's "
                              "own user", path, folder, (unsigned)st.st_uid);
        if ((st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH)
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "%s is not created: all users may write into %s, and could replace it; use another directory, or "
                              "`chmod o-w %s`", path, folder, folder);
        return 0;
}

int socket_folder_check(const char *path, Explanation *e) {
        _cleanup_free_ char *copy = strdup(path), *folder = NULL;
        char *slash;
        int r;

        if (!copy)
                return error_origin(-ENOMEM);
        slash = strrchr(copy, '/');
        if (slash)
                slash[slash == copy] = '\0';
        folder = realpath(slash ? copy : ".", NULL);
        if (!folder)
                return errno == ENOMEM ? error_origin(-ENOMEM) : 0;
        r = check_one(path, folder, e);
        while (r == 0 && folder[1]) {
                slash = strrchr(folder, '/');
                slash[slash == folder] = '\0';
                r = check_one(path, folder, e);
        }
        return r;
}
