#include "client/perfctl/names/symbol-cache.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/perfd"

static bool is_own(const char *path) {
        struct stat status;

        return stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* False: there is none. As the XDG Base Directory Specification has it: a path that is not absolute is none. */
static bool find_caches(char path[PATH_MAX]) {
        const char *given = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
        int n;

        if (given && given[0] == '/')
                n = snprintf(path, PATH_MAX, "%s", given);
        else if (home && home[0] == '/' && is_own(home))
                n = snprintf(path, PATH_MAX, "%s/.cache", home);
        else
                return false;
        if (n < 0 || (size_t)n >= PATH_MAX - sizeof(FOLDER))
                return false;
        (void)mkdir(path, 0700); /* mostly it is there, and where it cannot be made there is none */
        return is_own(path);
}

void symbol_cache_set_options(perfd_symbolizer_options *options, char path[PATH_MAX]) {
        if (!find_caches(path))
                return;
        (void)snprintf(path + strlen(path), sizeof(FOLDER), FOLDER);
        options->symbol_cache = path;
}
