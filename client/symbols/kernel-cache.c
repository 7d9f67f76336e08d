#include "client/symbols/kernel-cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "kernel-symbols"
#define NEW_NAME FILE_NAME ".new"
#define FORMAT "perfdks1" /* another one for what is laid out otherwise */
#define BOOT_ID_SIZE 40   /* bytes: 36, and zeros */
#define CACHE_MAX ((size_t)256 << 20)

/* Numbers are as this machine has them: no other one reads them. Behind it are the symbols, sorted, and their names, each with its 0. */
struct CachedHead {
        char format[8];
        char boot[BOOT_ID_SIZE];
        uint64_t text, first, last;
        uint64_t n, n_names; /* n_names: bytes */
};

typedef struct CachedSymbol {
        uint32_t from; /* bytes behind CachedHead.first */
        uint32_t length, into;
        uint32_t name; /* bytes behind the first name */
} CachedSymbol;

void kernel_range_add(KernelRange *range, uint64_t address, bool is_kernel) {
        if (!is_kernel) {
                range->has_ended = true;
                range->is_shared |= address >= range->first && address <= range->last;
                return;
        }
        range->is_shared |= range->has_ended;
        range->first = range->last == 0 || address < range->first ? address : range->first;
        range->last = address > range->last ? address : range->last;
}

static bool read_boot(char boot[BOOT_ID_SIZE]) {
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t n = -1;

        memset(boot, 0, BOOT_ID_SIZE);
        if (fd >= 0) {
                n = read(fd, boot, 36);
                close(fd);
        }
        return n == 36;
}

static bool is_own(const struct stat *status) {
        return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* An fd; -1: it is not this user's alone, or not there */
static int open_folder(const char *folder) {
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;

        if (fd >= 0 && (fstat(fd, &status) != 0 || !is_own(&status))) {
                close(fd);
                return -1;
        }
        return fd;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------ */

static const CachedSymbol *symbols_of(const CachedHead *head) {
        return (const CachedSymbol *)(const void *)(head + 1);
}

static const char *names_of(const CachedHead *head) {
        return (const char *)(symbols_of(head) + head->n);
}

static bool is_whole(const CachedHead *head, size_t size) {
        char boot[BOOT_ID_SIZE];

        return size > sizeof(*head) && memcmp(head->format, FORMAT, sizeof(head->format)) == 0 && read_boot(boot) &&
               memcmp(head->boot, boot, sizeof(boot)) == 0 && head->n > 0 && head->n <= CACHE_MAX / sizeof(CachedSymbol) && head->n_names > 0 &&
               head->n_names <= CACHE_MAX && size == sizeof(*head) + head->n * sizeof(CachedSymbol) + head->n_names &&
               ((const char *)head)[size - 1] == '\0';
}

static void map(KernelCache *c, int fd) {
        struct stat status;
        void *bytes;

        if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_own(&status) || status.st_size <= 0 || (uint64_t)status.st_size > 3 * CACHE_MAX)
                return;
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
                return;
        *c = (KernelCache){ .head = bytes, .size = (size_t)status.st_size };
        if (!is_whole(c->head, c->size))
                kernel_cache_close(c);
}

bool kernel_cache_open(KernelCache *c, const char *folder) {
        const int folder_fd = open_folder(folder);
        int fd;

        *c = (KernelCache){ .head = NULL };
        if (folder_fd < 0)
                return false;
        fd = openat(folder_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        close(folder_fd);
        if (fd < 0)
                return false;
        map(c, fd);
        close(fd);
        return c->head;
}

void kernel_cache_close(KernelCache *c) {
        if (c->head)
                (void)munmap((void *)c->head, c->size);
        *c = (KernelCache){ .head = NULL };
}

uint64_t kernel_cache_text(const KernelCache *c) {
        return c->head ? c->head->text : 0;
}

bool kernel_cache_covers(const KernelCache *c, uint64_t address) {
        return c->head && address >= c->head->first && address < c->head->last;
}

bool kernel_cache_find(const KernelCache *c, uint64_t address, Symbol *ret) {
        const CachedSymbol *list = symbols_of(c->head), *found;
        size_t from = 0, to = c->head->n; /* the last one that does not begin behind it is in between */
        const uint64_t at = address - c->head->first;

        while (to - from > 1) {
                const size_t middle = from + (to - from) / 2;

                if (list[middle].from <= at)
                        from = middle;
                else
                        to = middle;
        }
        found = list + from;
        if (at < found->from || at - found->from >= found->length || found->name >= c->head->n_names)
                return false;
        *ret = (Symbol){ .start = c->head->first + found->from, .length = found->length & SYMBOL_LENGTH_MAX, .into = found->into,
                         .name = names_of(c->head) + found->name, .is_demangled = true };
        return true;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------ */

/* Those that begin before the last one, whose end is where something else begins that may go. Their number; *ret_names: bytes of their names */
static size_t measure(SymbolTable *t, uint64_t last, size_t *ret_names) {
        size_t n = 0;

        for (*ret_names = 0; n < t->n && t->symbols[n].start < last; n++)
                *ret_names += symbol_table_name(t, t->symbols + n).length + 1;
        return n;
}

static void fill(CachedHead *head, const SymbolTable *t) {
        CachedSymbol *to = (CachedSymbol *)(void *)(head + 1);
        char *const names = (char *)(to + head->n), *name = names;

        for (size_t i = 0; i < head->n; i++) {
                const Symbol *s = t->symbols + i;

                to[i] = (CachedSymbol){ .from = (uint32_t)(s->start - head->first), .length = s->length, .into = s->into,
                                        .name = (uint32_t)(name - names) };
                name = stpcpy(name, s->name) + 1;
        }
}

static bool put(int fd, const char *bytes, size_t n) {
        for (ssize_t done; n > 0; bytes += done, n -= (size_t)done) {
                done = write(fd, bytes, n);
                if (done <= 0)
                        return false;
        }
        return true;
}

/* Two at a time do not write the same file, and none writes one that has its name already. */
static bool is_only_writer(int folder, int fd) {
        struct stat status, there;

        return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && is_own(&status) && status.st_nlink == 1 &&
               fstatat(folder, NEW_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_ino == status.st_ino && there.st_dev == status.st_dev;
}

static void write_file(int folder, const CachedHead *head, size_t size) {
        const int fd = openat(folder, NEW_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

        if (fd < 0)
                return;
        if (is_only_writer(folder, fd) &&
            (ftruncate(fd, 0) != 0 || !put(fd, (const char *)head, size) || renameat(folder, NEW_NAME, folder, FILE_NAME) != 0))
                (void)unlinkat(folder, NEW_NAME, 0);
        close(fd);
}

void kernel_cache_write(const char *folder, SymbolTable *table, const KernelRange *range, uint64_t text) {
        size_t n, n_names, size;
        CachedHead *head;
        int fd;

        if (text == 0 || range->is_shared || table->is_full || range->last <= range->first || range->last - range->first > UINT32_MAX)
                return;
        if (table->n == 0 || table->symbols[0].start != range->first)
                return;
        (void)mkdir(folder, 0700);
        fd = open_folder(folder);
        if (fd < 0)
                return;
        n = measure(table, range->last, &n_names);
        size = sizeof(*head) + n * sizeof(CachedSymbol) + n_names;
        head = n_names <= CACHE_MAX ? calloc(1, size) : NULL;
        if (head && read_boot(head->boot)) {
                memcpy(head->format, FORMAT, sizeof(head->format));
                head->text = text;
                head->first = range->first;
                head->last = range->last;
                head->n = n;
                head->n_names = n_names;
                fill(head, table);
                write_file(fd, head, size);
        }
        free(head);
        close(fd);
}
