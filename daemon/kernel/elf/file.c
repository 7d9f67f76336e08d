/* Opening an ELF file, and where its addresses lie in it. What is believed of it: elf/load.c. */
#include "daemon/kernel/elf/layout.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

DEFINE_CLEANUP(ElfFile *, elf_file_close)

static int explain_open(const char *path, int error, Explanation *e) {
        if (error == ENOENT || error == ENOTDIR)
                return refuse(e, REFUSED_NOT_FOUND, "no-file", "there is no file %s", QUOTE(path));
        if (error == EACCES || error == EPERM)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s cannot be opened: %s", QUOTE(path),
                              strerror(error));
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "no fd is left to read %s", QUOTE(path));
        if (error == ENOMEM)
                return refuse_kernel_memory(e, QUOTE(path));
        return refuse(e, REFUSED_NOT_FOUND, "no-file", "%s cannot be opened: %s", QUOTE(path), strerror(error));
}

static ElfFile *elf_file_new(const char *path) {
        ElfFile *f = calloc(1, sizeof(*f));

        if (!f)
                return NULL;
        f->fd = -1;
        f->path = strdup(path);
        if (!f->path)
                return elf_file_close(f);
        return f;
}

/* To be read, what O_PATH has found. */
static int reopen(int fd) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int elf_file_open(const char *path, ElfFile **ret, Explanation *e) {
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

        return fd < 0 ? explain_open(path, errno, e) : elf_file_open_fd(fd, path, ret, e);
}

int elf_file_open_fd(int fd, const char *path, ElfFile **ret, Explanation *e) {
        _cleanup_(elf_file_closep) ElfFile *f = elf_file_new(path);
        struct stat status;
        int r;

        if (!f)
                return error_origin(-ENOMEM);
        if (fstat(fd, &status) < 0)
                return explain_open(path, errno, e);
        if (!S_ISREG(status.st_mode)) /* not even opened: a FIFO waits for a writer, a device may do anything */
                return elf_file_refuse(f, e, "is not a regular file");
        f->fd = reopen(fd);
        if (f->fd < 0 || fstat(f->fd, &status) < 0)
                return explain_open(path, errno, e);
        if (status.st_size == 0)
                return elf_file_refuse(f, e, "is not an ELF file: it has %jd bytes", (intmax_t)status.st_size);
        f->device = status.st_dev;
        f->inode = status.st_ino;
        f->size = (uint64_t)status.st_size;
        r = elf_file_load_all(f, e);
        if (r == 0)
                *ret = TAKE_PTR(f);
        return r;
}

int elf_file_open_memory(const void *bytes, size_t size, const char *path, ElfFile **ret, Explanation *e) {
        _cleanup_(elf_file_closep) ElfFile *f = elf_file_new(path);
        int r;

        if (!f)
                return error_origin(-ENOMEM);
        f->memory = bytes;
        f->size = size;
        r = elf_file_load_all(f, e);
        if (r == 0)
                *ret = TAKE_PTR(f);
        return r;
}

ElfFile *elf_file_close(ElfFile *f) {
        if (!f)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(f->tables); i++)
                elf_table_deinit(&f->tables[i]);
        elf_file_free_views(f);
        f->fd = close_fd(f->fd);
        free(f->segments);
        free(f->path);
        free(f);
        return NULL;
}

size_t elf_file_build_id(const ElfFile *f, uint8_t ret_id[static BUILD_ID_SIZE_MAX]) {
        memcpy(ret_id, f->build_id, f->n_build_id);
        return f->n_build_id;
}

void elf_file_inode(const ElfFile *f, dev_t *ret_device, ino_t *ret_inode) {
        *ret_device = f->device;
        *ret_inode = f->inode;
}

const ElfSegment *elf_file_segment(const ElfFile *f, uint64_t address) {
        for (size_t i = 0; i < f->n_segments; i++)
                if (address - f->segments[i].address < f->segments[i].size)
                        return &f->segments[i];
        return NULL;
}

int elf_file_find_address(const ElfFile *f, uint64_t address, ElfPlace *ret, Explanation *e) {
        const ElfSegment *s = elf_file_segment(f, address);

        if (!s || !s->is_executable)
                return refuse(e, REFUSED_INVALID, "bad-address", "0x%" PRIx64 " is not an address of code in %s%s", address,
                              QUOTE(f->path), s ? ": it is in data" : "");
        *ret = (ElfPlace){ .address = address, .begin = address, .file_offset = address - s->address + s->offset };
        return 0;
}
