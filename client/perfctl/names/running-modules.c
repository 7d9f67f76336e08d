/*
 * /proc/modules has names and places, and modules.dep, which depmod(8) writes, the files that modprobe(8) loads them from. Which file a
 * module was really loaded from the kernel does not keep: who reads symbols of it compares build ids.
 */
#include "client/perfctl/names/running-modules.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define MODULES_MAX 4096
#define NAME_SIZE 64 /* bytes: more than MODULE_NAME_LEN */

typedef struct Loaded {
        uint64_t start, length;
        char name[NAME_SIZE];
        char *path; /* NULL: not known */
} Loaded;

typedef struct Modules {
        Loaded list[MODULES_MAX];
        size_t n;
} Modules;

/* "ext4 1036288 1 - Live 0xffffffffc0400000" */
static void read_loaded(Modules *m) {
        char *line = NULL;
        size_t room = 0;
        FILE *f = fopen("/proc/modules", "re");

        while (f && m->n < MODULES_MAX && getline(&line, &room, f) > 0) {
                Loaded *next = m->list + m->n;

                if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, next->name, &next->length, &next->start) == 3 && next->start != 0)
                        m->n++;
        }
        free(line);
        if (f)
                (void)fclose(f);
}

/* Whether a file, "kernel/fs/nf-log.ko.xz", is of the module "nf_log". */
static bool is_file_of(const char *file, size_t n, const char *name) {
        const char *slash = memrchr(file, '/', n), *at = slash ? slash + 1 : file;
        const size_t n_name = strlen(name), n_left = n - (size_t)(at - file);

        if (n_left < n_name + strlen(".ko") || memcmp(at + n_name, ".ko", strlen(".ko")) != 0)
                return false;
        for (size_t i = 0; i < n_name; i++)
                if ((at[i] == '-' ? '_' : at[i]) != name[i])
                        return false;
        return true;
}

/* "kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko ..." */
static int find_files(Modules *m) {
        char folder[PATH_MAX], path[PATH_MAX], *line = NULL;
        size_t room = 0;
        struct utsname u;
        FILE *f = NULL;
        int code = 0;

        if (m->n > 0 && uname(&u) == 0) {
                (void)snprintf(folder, sizeof(folder), "/lib/modules/%s", u.release);
                (void)snprintf(path, sizeof(path), "%.*s/modules.dep", PATH_MAX - 16, folder);
                f = fopen(path, "re");
        }
        while (f && code == 0 && getline(&line, &room, f) > 0) {
                const size_t n = strcspn(line, ":");

                for (size_t i = 0; i < m->n; i++)
                        if (!m->list[i].path && is_file_of(line, n, m->list[i].name)) {
                                if (asprintf(&m->list[i].path, "%s/%.*s", folder, (int)n, line) < 0) {
                                        m->list[i].path = NULL;
                                        code = -ENOMEM;
                                }
                                break;
                        }
        }
        free(line);
        if (f)
                (void)fclose(f);
        return code;
}

int running_modules_read(int (*take)(void *userdata, const RunningModule *m), void *userdata) {
        Modules *m = calloc(1, sizeof(Modules));
        int code;

        if (!m)
                return -ENOMEM;
        read_loaded(m);
        code = find_files(m);
        for (size_t i = 0; i < m->n; i++) {
                const Loaded *of = m->list + i;
                char shown[NAME_SIZE + 2];

                (void)snprintf(shown, sizeof(shown), "[%s]", of->name);
                if (code == 0)
                        code = take(userdata, &(RunningModule){ .start = of->start, .length = of->length, .path = of->path ? of->path : shown });
                free(of->path);
        }
        free(m);
        return code;
}
