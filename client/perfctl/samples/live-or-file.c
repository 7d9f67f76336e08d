/* perf(1) reads perf.data where no file is named; here that is for `script` alone. */
#include "client/perfctl/samples/live-or-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/base/quantity.h"

#define MAGIC_SIZE ((size_t)8)
#define ROTATED_DIGITS ((size_t)16) /* YYYYMMDDhhmmsscc: recorder/files.c */

/* Of a file alone: to open a device can be to do something with it. */
static bool is_recording(const char *path) {
        char magic[MAGIC_SIZE];
        struct stat st;
        bool is = false;
        int fd;

        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return false;
        if (read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic)) /* of either byte order, or before Linux 2.6.31 had an order */
                is = memcmp(magic, "PERFILE2", MAGIC_SIZE) == 0 || memcmp(magic, "2ELIFREP", MAGIC_SIZE) == 0 || memcmp(magic, "PERFFILE", MAGIC_SIZE) == 0;
        close(fd);
        return is;
}

int stray_recording_check(const Perfctl *p) {
        const char *input = perfctl_get(p, "input");

        for (size_t i = 0; i < p->n_arguments; i++)
                if (is_recording(p->arguments[i]))
                        return input ? perfctl_fail(p, PERFCTL_USAGE, "'%s' is a recording, and arguments are events: one recording is read, and -i says %s",
                                                    p->arguments[i], input) :
                                       perfctl_fail(p, PERFCTL_USAGE, "'%s' is a recording, and arguments are events: -i %s reads it",
                                                    p->arguments[i], p->arguments[i]);
        return 0;
}

/* ---- what --rotate has written ---------------------------------------------------------------------------------------------------- */

static bool is_rotated(const char *name, const char *base, size_t n) {
        return strncmp(name, base, n) == 0 && name[n] == '.' && strlen(name + n + 1) == ROTATED_DIGITS &&
               strspn(name + n + 1, "0123456789") == ROTATED_DIGITS;
}

void rotated_files_tell(const Perfctl *p, const char *path) {
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        const int n_folder = (int)(base - path);
        char *folder = NULL, first[NAME_MAX + 1] = "", last[NAME_MAX + 1] = "";
        const struct dirent *e;
        size_t n = 0;
        DIR *files;

        if (access(path, F_OK) == 0 || errno != ENOENT)
                return;
        must_have(asprintf(&folder, "%.*s", n_folder > 0 ? n_folder : 1, n_folder > 0 ? path : ".") < 0 ? NULL : folder);
        files = opendir(folder);
        while (files && (e = readdir(files))) {
                if (!is_rotated(e->d_name, base, strlen(base)))
                        continue;
                if (n == 0 || strcmp(e->d_name, first) < 0)
                        (void)stpcpy(first, e->d_name);
                if (n == 0 || strcmp(e->d_name, last) > 0)
                        (void)stpcpy(last, e->d_name);
                n++;
        }
        if (n == 1)
                (void)perfctl_fail(p, PERFCTL_OK, "there is one of a recorder that rotates its files: -i %.*s%s", n_folder, path, last);
        else if (n > 1)
                (void)perfctl_fail(p, PERFCTL_OK, "there are %zu of a recorder that rotates its files, each a whole recording, from %.*s%s to %.*s%s", n,
                                   n_folder, path, first, n_folder, path, last);
        if (files)
                closedir(files);
        free(folder);
}

void live_host_tell(const Perfctl *p, uint64_t duration) {
        const bool is_here = is_recording("perf.data");
        char shown[QUANTITY_SIZE];

        if (perfctl_get(p, "input") || perfctl_get(p, "for") || p->command || p->n_events > 0)
                return;
        (void)perfctl_fail(p, PERFCTL_OK, "samples of the live host, for %s: -i %s reads %s", quantity_show_time(duration, shown),
                           is_here ? "perf.data" : "FILE", is_here ? "the recording that is here" : "a recording");
}
