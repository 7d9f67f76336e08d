/*
 * A daemon follows what a glob of cgroups matches and adds it up; lines of each cgroup need an event of each. So perfctl,
 * which is on the daemon's machine, looks once at what is there.
 */
#include <glob.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/stat/stat.h"

/* Where cgroup v2 is mounted, in malloc'ed memory, or NULL. */
char *stat_places_mount(void) {
        FILE *f = setmntent("/proc/self/mounts", "re");
        char buffer[4096], *found = NULL;
        struct mntent mount;

        while (f && !found && getmntent_r(f, &mount, buffer, sizeof(buffer)))
                if (strcmp(mount.mnt_type, "cgroup2") == 0)
                        found = must_have(strdup(mount.mnt_dir));
        if (f)
                (void)endmntent(f);
        return found;
}

static void add(char ***places, size_t *n, const char *place) {
        *places = must_have(reallocarray(*places, *n + 1, sizeof(**places)));
        (*places)[(*n)++] = must_have(strdup(place));
}

/* One that matches nothing stays as it is: the daemon says what is wrong with it. */
static void add_matches(char ***places, size_t *n, const char *mount, const char *pattern) {
        glob_t found = { .gl_pathc = 0 };
        char *path;

        must_have(asprintf(&path, "%s/%s", mount, pattern + (*pattern == '/')) < 0 ? NULL : path);
        if (strpbrk(pattern, "*?[") && glob(path, GLOB_ONLYDIR, NULL, &found) == 0) {
                for (size_t i = 0; i < found.gl_pathc; i++)
                        add(places, n, found.gl_pathv[i] + strlen(mount) + 1);
        } else
                add(places, n, pattern);
        globfree(&found);
        free(path);
}

char **stat_places_find(const char *const *cgroups, size_t n, size_t *ret_n) {
        char *mount = stat_places_mount(), **places = must_have(calloc(1, sizeof(*places)));

        *ret_n = 0;
        for (size_t i = 0; i < n; i++)
                if (mount)
                        add_matches(&places, ret_n, mount, cgroups[i]);
                else
                        add(&places, ret_n, cgroups[i]);
        free(mount);
        return places;
}
