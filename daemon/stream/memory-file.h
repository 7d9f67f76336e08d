/*
 * Files without a name, in memory, that subscribers map: as much of them as their makers lay down can neither be taken away
 * nor grow. Who has mapped one keeps its pages for as long as it wants, and they are charged to perfd's cgroup: so its maker frees
 * them itself when nobody has to read them any more. That is why F_SEAL_FUTURE_WRITE is not among the seals: it would forbid that
 * too. A file that subscribers are only to read is opened for reading, for them.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3 */
#endif

#define MEMORY_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Empty, and still to be sealed. -1 and errno. Any thread. */
static inline int memory_file_open(const char *name) {
        int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

        return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

/* The same file, which can only be read by this fd; nobody but its owner can open it otherwise (proc(5), /proc/PID/fd). -1 and errno. */
static inline int memory_file_open_reader(int file) {
        _cleanup_close_ int fd = -1;
        char path[32];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 && fchmod(file, S_IRUSR) == 0 ? TAKE_FD(fd) : -1;
}

/*
 * Nobody has to read it any more: whoever still maps it reads zeros, in pages of its own cgroup. It does not fail where pages could
 * be laid down before.
 */
static inline void memory_file_free_pages(void *map, size_t length) {
        (void)madvise(map, length, MADV_REMOVE);
}
