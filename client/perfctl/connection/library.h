/* For names of probes: the file that a library's or a program's name leads to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
        LIBRARY_E_NONE = 1,
        LIBRARY_E_SEVERAL,
};

/*
 * "libc.so.6", or "libc", which is any version of it if there is one only: where ld.so(8) looks, which is $LD_LIBRARY_PATH, the
 * cache of ldconfig(8), and the usual folders. ret_path, and with LIBRARY_E_SEVERAL ret_names, "libx.so.1 and libx.so.2", are
 * malloc'ed. Builds for certain CPUs only (glibc-hwcaps) are left out: which of them runs is ld.so's choice at run time.
 */
int library_find(const char *name, char **ret_path, char **ret_names);
/* In $PATH. LIBRARY_E_NONE. */
int program_find(const char *name, char **ret_path);

/*
 * ld.so.cache(5) as bytes that may be wrong: calls back for each library of this machine, with its soname and path, until that
 * gives something else than 0, which is returned.
 */
typedef int (*LibraryVisit)(void *userdata, const char *soname, const char *path);
int library_cache_walk(const uint8_t *bytes, size_t n, LibraryVisit visit, void *userdata);
