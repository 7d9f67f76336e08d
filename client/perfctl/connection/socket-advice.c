/*
 * The group is the socket's own, as the configuration, systemd or an administrator have set it; whether it lets anybody in, its mode
 * says. Nothing of that can be seen through a directory that may not be searched.
 */
#include "client/perfctl/connection/socket-advice.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/base/perfctl.h"

static bool has_member(const struct group *group, const char *user) {
        for (char *const *member = group->gr_mem; *member; member++)
                if (strcmp(*member, user) == 0)
                        return true;
        return false;
}

/* proc_pid_net(5): "...: RefCount Protocol Flags Type St Inode Path"; a listening socket has the flag __SO_ACCEPTCON, 0x10000. */
bool socket_is_removed(const char *path) {
        char *line = NULL;
        size_t size = 0;
        bool found = false;
        FILE *f;

        if (access(path, F_OK) == 0 || errno != ENOENT || !(f = fopen("/proc/net/unix", "re")))
                return false;
        while (!found && getline(&line, &size, f) > 0) {
                unsigned flags;
                int at = 0;

                line[strcspn(line, "\n")] = '\0';
                found = sscanf(line, "%*s %*x %*x %x %*x %*x %*u %n", &flags, &at) == 1 && at > 0 && flags & 0x10000 &&
                        strcmp(line + at, path) == 0;
        }
        free(line);
        (void)fclose(f);
        return found;
}

char *socket_advice(const char *path) {
        const struct passwd *user = getpwuid(geteuid());
        const char *name = user ? user->pw_name : "USER";
        const struct group *group = NULL;
        char *text = NULL;
        struct stat st;
        int r;

        if (stat(path, &st) == 0 && st.st_gid != 0 && st.st_mode & S_IWGRP)
                group = getgrgid(st.st_gid);
        if (!group)
                r = asprintf(&text, "run perfctl as root, or as a member of the stream socket's group (access.stream-group, or "
                             "SocketGroup= and SocketMode= of perfd-stream.socket where systemd creates the socket)");
        else if (has_member(group, name))
                r = asprintf(&text, "%s has joined the group %s after this login began: log in again, or run `newgrp %s`", name,
                             group->gr_name, group->gr_name);
        else
                r = asprintf(&text, "run perfctl as root, or join the group %s by `sudo usermod -aG %s %s`, and log in again",
                             group->gr_name, group->gr_name, name);
        return must_have(r < 0 ? NULL : text);
}
