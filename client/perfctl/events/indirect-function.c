/*
 * An indirect function selects its implementation by the CPU, when a program is linked: in perfctl as in every other program of this
 * machine. Only what perfctl has loaded anyway is asked, because to load a file is to run it.
 */
#include "client/perfctl/events/indirect-function.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/base/perfctl.h"

typedef struct Loaded {
        struct stat wanted;
        char *name; /* as ld.so knows it */
} Loaded;

static int compare_file(struct dl_phdr_info *info, size_t size, void *userdata) {
        Loaded *l = userdata;
        struct stat st;

        if (!*info->dlpi_name || stat(info->dlpi_name, &st) < 0 || st.st_dev != l->wanted.st_dev || st.st_ino != l->wanted.st_ino)
                return 0;
        l->name = must_have(strdup(info->dlpi_name));
        return 1;
}

/* In the file's own terms, which start with its base. */
static bool find_address(const char *name, const char *symbol, uint64_t *ret) {
        void *file = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *code;
        Dl_info info;
        bool is;

        if (!file)
                return false;
        code = dlsym(file, symbol);
        is = code && dladdr(code, &info) != 0 && strcmp(info.dli_fname, name) == 0;
        if (is)
                *ret = (uint64_t)((char *)code - (char *)info.dli_fbase);
        (void)dlclose(file);
        return is;
}

char *indirect_function_find(const char *event) {
        const char *path = strchr(event, ':'), *symbol = strrchr(event, ':');
        Loaded l = { .name = NULL };
        char *file, *found = NULL;
        uint64_t address;

        if (!path || symbol == path)
                return NULL;
        file = must_have(strndup(path + 1, (size_t)(symbol - path - 1)));
        if (stat(file, &l.wanted) == 0)
                (void)dl_iterate_phdr(compare_file, &l);
        if (l.name && find_address(l.name, symbol + 1, &address) &&
            asprintf(&found, "%.*s0x%" PRIx64, (int)(symbol + 1 - event), event, address) < 0)
                found = must_have(NULL);
        free(l.name);
        free(file);
        return found;
}
