/*
 * Not dlopen(3): it would run what the library runs when it is loaded, as who calls perfctl.
 *
 *     0        struct cache_file_new                  48                    24 * nlibs
 *     | "glibc-ld.so.cache1.1" | nlibs | len_strings | ... | struct file_entry_new[] | strings, offsets from 0 |
 *
 * What is older (before glibc 2.32, without the option) begins with "ld.so-1.7.0" and entries of its own, and has this behind them.
 */
#include "client/perfctl/connection/library.h"

#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/perfctl/base/perfctl.h"

#define CACHE "/etc/ld.so.cache"
#define CACHE_MAX ((size_t)64 << 20)
#define MAGIC "glibc-ld.so.cache1.1"
#define HEADER_SIZE ((size_t)48)
#define FLAG_LIBC6 3 /* dl-cache.h: FLAG_ELF_LIBC6; the machine stands above */

typedef struct CacheEntry {
        int32_t flags;
        uint32_t key, value; /* of strings: soname, path */
        uint32_t osversion;
        uint64_t hwcap; /* 0: for every CPU */
} CacheEntry;

_Static_assert(sizeof(CacheEntry) == 24, "struct file_entry_new of dl-cache.h");

typedef struct Candidates {
        const char *name;
        char **paths;
        size_t n;
} Candidates;

/* dl-cache.h: FLAG_X8664_LIB64, FLAG_AARCH64_LIB64; 0: not known, any. */
static int32_t machine_flag(void) {
        struct utsname u;

        if (uname(&u) != 0)
                return 0;
        return strcmp(u.machine, "x86_64") == 0 ? 0x0300 : strcmp(u.machine, "aarch64") == 0 ? 0x0a00 : 0;
}

static const char *cache_string(const uint8_t *bytes, size_t n, uint32_t offset) {
        return offset < n && memchr(bytes + offset, '\0', n - offset) ? (const char *)bytes + offset : NULL;
}

int library_cache_walk(const uint8_t *bytes, size_t n, LibraryVisit visit, void *userdata) {
        const uint8_t *begin = memmem(bytes, n, MAGIC, strlen(MAGIC));
        int32_t machine = machine_flag();
        uint32_t n_entries;

        if (!begin)
                return 0;
        n -= (size_t)(begin - bytes);
        if (n < HEADER_SIZE)
                return 0;
        memcpy(&n_entries, begin + strlen(MAGIC), sizeof(n_entries));
        if (n_entries > (n - HEADER_SIZE) / sizeof(CacheEntry))
                return 0;
        for (size_t i = 0; i < n_entries; i++) {
                const char *soname, *path;
                CacheEntry e;
                int r;

                memcpy(&e, begin + HEADER_SIZE + i * sizeof(e), sizeof(e));
                if ((e.flags & 0xff) != FLAG_LIBC6 || (machine && (e.flags & 0xff00) != machine) || e.hwcap)
                        continue;
                soname = cache_string(begin, n, e.key);
                path = cache_string(begin, n, e.value);
                r = soname && path && *path == '/' ? visit(userdata, soname, path) : 0;
                if (r != 0)
                        return r;
        }
        return 0;
}

/* "libc.so.6" is "libc.so.6", "libc.so" and "libc". */
static bool is_named(const char *soname, const char *name) {
        size_t n = strlen(name);

        if (strncmp(soname, name, n) != 0)
                return false;
        if (!strstr(name, ".so"))
                return strncmp(soname + n, ".so", 3) == 0 && (soname[n + 3] == '\0' || soname[n + 3] == '.');
        return soname[n] == '\0';
}

static const char *base_name(const char *path) {
        return strrchr(path, '/') + 1;
}

/*
 * A link for the linker ("libz.so") and one for ld.so ("libz.so.1") are one library; it is called by the longer name. And ld.so
 * takes the first folder of those that have the same name.
 */
static int add_candidate(void *userdata, const char *soname, const char *path) {
        Candidates *c = userdata;
        struct stat own, other;

        if (!is_named(soname, c->name) || stat(path, &own) != 0 || !S_ISREG(own.st_mode))
                return 0;
        for (size_t i = 0; i < c->n; i++) {
                char **kept = &c->paths[i];

                if (strcmp(base_name(*kept), base_name(path)) == 0)
                        return 0;
                if (stat(*kept, &other) != 0 || own.st_dev != other.st_dev || own.st_ino != other.st_ino)
                        continue;
                if (strlen(path) > strlen(*kept)) {
                        free(*kept);
                        *kept = must_have(strdup(path));
                }
                return 0;
        }
        c->paths = must_have(reallocarray(c->paths, c->n + 1, sizeof(*c->paths)));
        c->paths[c->n++] = must_have(strdup(path));
        return 0;
}

/* A library that is not an ELF file, but a script of the linker (libc.so of a development package), is none. */
static bool is_elf(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char magic[4] = "";
        bool is = fd < 0 || (read(fd, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, "\177ELF", 4) == 0);

        if (fd >= 0)
                close(fd);
        return is; /* what cannot be read here is the daemon's to judge */
}

/* Folders with colons between them. */
static void search_folders(Candidates *c, const char *folders) {
        char *copy = must_have(strdup(folders)), *rest = copy, *folder;

        while ((folder = strsep(&rest, ":"))) {
                glob_t found = { .gl_pathc = 0 };
                char *pattern;

                if (*folder != '/')
                        continue;
                if (asprintf(&pattern, "%s/%s*", folder, c->name) < 0)
                        must_have(NULL);
                if (glob(pattern, 0, NULL, &found) == 0)
                        for (size_t i = 0; i < found.gl_pathc; i++)
                                if (is_named(base_name(found.gl_pathv[i]), c->name) && is_elf(found.gl_pathv[i]))
                                        (void)add_candidate(c, base_name(found.gl_pathv[i]), found.gl_pathv[i]);
                globfree(&found);
                free(pattern);
        }
        free(copy);
}

static void search_cache(Candidates *c) {
        int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
        struct stat st;
        uint8_t *bytes;

        if (fd < 0)
                return;
        if (fstat(fd, &st) == 0 && st.st_size > 0 && (size_t)st.st_size <= CACHE_MAX) {
                bytes = must_have(malloc((size_t)st.st_size));
                if (read(fd, bytes, (size_t)st.st_size) == st.st_size)
                        (void)library_cache_walk(bytes, (size_t)st.st_size, add_candidate, c);
                free(bytes);
        }
        close(fd);
}

static char *names_of(const Candidates *c) {
        char *text;
        size_t size;
        FILE *f = must_have(open_memstream(&text, &size));

        for (size_t i = 0; i < c->n; i++)
                fprintf(f, "%s%s", i == 0 ? "" : i + 1 == c->n ? " or " : ", ", base_name(c->paths[i]));
        return must_have(fclose(f) == 0 ? text : NULL);
}

int library_find(const char *name, char **ret_path, char **ret_names) {
        Candidates c = { .name = name };
        const char *own = getenv("LD_LIBRARY_PATH");
        int r = LIBRARY_E_NONE;

        if (!*name || strpbrk(name, "/*?[\\"))
                return LIBRARY_E_NONE;
        if (own)
                search_folders(&c, own);
        if (c.n == 0)
                search_cache(&c);
        if (c.n == 0)
                search_folders(&c, "/lib64:/usr/lib64:/lib:/usr/lib");
        if (c.n == 1) {
                *ret_path = must_have(strdup(c.paths[0]));
                r = 0;
        } else if (c.n > 1) {
                *ret_names = names_of(&c);
                r = LIBRARY_E_SEVERAL;
        }
        for (size_t i = 0; i < c.n; i++)
                free(c.paths[i]);
        free(c.paths);
        return r;
}

int program_find(const char *name, char **ret_path) {
        const char *path = getenv("PATH");
        char *copy = must_have(strdup(path ? path : "/usr/bin:/bin")), *rest = copy, *folder, *file;
        struct stat st;
        int r = LIBRARY_E_NONE;

        while (r != 0 && *name && (folder = strsep(&rest, ":"))) {
                if (*folder != '/')
                        continue;
                if (asprintf(&file, "%s/%s", folder, name) < 0)
                        must_have(NULL);
                if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0) {
                        *ret_path = file;
                        r = 0;
                } else
                        free(file);
        }
        free(copy);
        return r;
}
