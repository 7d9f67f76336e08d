/*
 * The bytes of an ELF file, a few at a time.
 *
 * A mapped file that someone cuts would kill us with SIGBUS, and tables are as large as a file says: so bytes are read, into
 * blocks that later ones take the place of. Tables are walked from one end to the other, for which one block is enough; the names
 * of their symbols lie in about that order too, but a linker may sort or share them, for which there are many, by their number.
 * Who writes to the file while it is read finds each value checked as it is.
 */
#include "daemon/kernel/elf/layout.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct ElfBlock {
        uint64_t number; /* in the file, from 1; 0: nothing was read yet */
        size_t n;
} ElfBlock;

struct ElfBlocks {
        size_t n_blocks, block_size;
        char *bytes; /* of block i: at i * block_size */
        ElfBlock blocks[];
};

static const struct {
        size_t n_blocks, block_size;
} shapes[_ELF_VIEW_MAX] = {
        [ELF_VIEW_HEADERS] = { 1, 16384 },
        [ELF_VIEW_ENTRIES] = { 1, 65536 },
        [ELF_VIEW_VERSIONS] = { 1, 16384 },
        [ELF_VIEW_STRINGS] = { 2048, 4096 },
};

int elf_file_refuse(const ElfFile *f, Explanation *e, const char *format, ...) {
        char what[512];
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        return refuse(e, REFUSED_INVALID, "bad-elf", "%s: %s", QUOTE(f->path), what);
}

static struct ElfBlocks *blocks_new(ElfView view) {
        struct ElfBlocks *b = calloc(1, sizeof(*b) + shapes[view].n_blocks * sizeof(b->blocks[0]));

        if (!b)
                return NULL;
        b->n_blocks = shapes[view].n_blocks;
        b->block_size = shapes[view].block_size;
        b->bytes = mmap(NULL, b->n_blocks * b->block_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b->bytes == MAP_FAILED) { /* not of the heap, which would keep it */
                free(b);
                return NULL;
        }
        return b;
}

int elf_file_make_views(ElfFile *f) {
        for (ElfView v = 0; v < _ELF_VIEW_MAX; v++) {
                f->views[v] = blocks_new(v);
                if (!f->views[v])
                        return error_origin(-ENOMEM);
        }
        f->name = malloc(ELF_NAME_SIZE_MAX);
        f->version = malloc(ELF_VERSION_SIZE_MAX);
        return f->name && f->version ? 0 : error_origin(-ENOMEM);
}

void elf_file_free_views(ElfFile *f) {
        for (ElfView v = 0; v < _ELF_VIEW_MAX; v++) {
                if (f->views[v])
                        (void)munmap(f->views[v]->bytes, f->views[v]->n_blocks * f->views[v]->block_size);
                free(f->views[v]);
        }
        free(f->name);
        free(f->version);
}

static int read_block(const ElfFile *f, ElfBlock *b, uint64_t number, char *to, size_t size, Explanation *e) {
        uint64_t offset = number * size;
        size_t n = 0;

        *b = (ElfBlock){ .number = 0 };
        if (f->memory) {
                n = f->size - offset < size ? f->size - offset : size;
                memcpy(to, f->memory + offset, n);
        }
        while (!f->memory && n < size) {
                int r = checkpoint(e);
                ssize_t more;

                if (r != 0)
                        return r;
                more = pread(f->fd, to + n, size - n, (off_t)(offset + n));
                if (more < 0 && errno == EINTR)
                        continue;
                if (more < 0)
                        return elf_file_refuse(f, e, "its bytes at %" PRIu64 " cannot be read: %s", offset, strerror(errno));
                if (more == 0)
                        break;
                n += (size_t)more;
        }
        *b = (ElfBlock){ .number = number + 1, .n = n };
        return 0;
}

/* The bytes at an offset of the file, at least one, to the end of their block. */
static int view(const ElfFile *f, ElfView view, uint64_t offset, const char **ret, size_t *ret_n, Explanation *e) {
        struct ElfBlocks *v = f->views[view];
        uint64_t number = offset / v->block_size;
        size_t slot = number % v->n_blocks, at = offset % v->block_size;
        ElfBlock *b = &v->blocks[slot];

        if (b->number != number + 1) {
                int r = read_block(f, b, number, v->bytes + slot * v->block_size, v->block_size, e);

                if (r != 0)
                        return r;
        }
        if (at >= b->n)
                return elf_file_refuse(f, e, "was truncated while it was read");
        *ret = v->bytes + slot * v->block_size + at;
        *ret_n = b->n - at;
        return 0;
}

int elf_file_check_range(const ElfFile *f, uint64_t offset, uint64_t size, const char *what, Explanation *e) {
        if (offset > f->size || size > f->size - offset)
                return elf_file_refuse(f, e, "is truncated: %s of %" PRIu64 " bytes at %" PRIu64
                                       " would end after the file's %" PRIu64 " bytes", what, size, offset, f->size);
        if (size > ELF_TABLE_SIZE_MAX)
                return elf_file_refuse(f, e, "%s of %" PRIu64 " bytes is larger than in any real program", what,
                                       size);
        return 0;
}

int elf_file_read(const ElfFile *f, ElfView v, uint64_t offset, void *to, size_t size, Explanation *e) {
        for (size_t done = 0; done < size;) {
                const char *bytes;
                size_t n;
                int r = view(f, v, offset + done, &bytes, &n, e);

                if (r != 0)
                        return r;
                if (n > size - done)
                        n = size - done;
                memcpy((char *)to + done, bytes, n);
                done += n;
        }
        return 0;
}

int elf_file_read_text(const ElfFile *f, const ElfRange *strings, uint64_t at, char *to, size_t size, size_t *ret_n,
                       Explanation *e) {
        size_t done = 0;

        while (done < size && at + done < strings->size) {
                uint64_t left = strings->size - at - done;
                const char *bytes, *end;
                size_t n;
                int r = view(f, ELF_VIEW_STRINGS, strings->offset + at + done, &bytes, &n, e);

                if (r != 0)
                        return r;
                if (n > left)
                        n = left;
                if (n > size - done)
                        n = size - done;
                end = memchr(bytes, '\0', n);
                if (end)
                        n = (size_t)(end - bytes);
                memcpy(to + done, bytes, n);
                done += n;
                if (end)
                        break;
        }
        to[done < size ? done : size - 1] = '\0';
        *ret_n = done;
        return 0;
}

int elf_file_text_begins(const ElfFile *f, const ElfRange *strings, uint64_t at, const char *with, size_t n, bool *ret,
                         Explanation *e) {
        size_t done = 0;

        *ret = at <= strings->size && n <= strings->size - at;
        while (*ret && done < n) {
                const char *bytes;
                size_t n_bytes;
                int r = view(f, ELF_VIEW_STRINGS, strings->offset + at + done, &bytes, &n_bytes, e);

                if (r != 0)
                        return r;
                if (n_bytes > n - done)
                        n_bytes = n - done;
                *ret = memcmp(bytes, with + done, n_bytes) == 0;
                done += n_bytes;
        }
        return 0;
}

int elf_file_program_header(const ElfFile *f, size_t index, Elf64_Phdr *ret, Explanation *e) {
        Elf32_Phdr narrow;
        int r;

        if (f->is_64)
                return elf_file_read(f, ELF_VIEW_HEADERS, f->header.e_phoff + index * sizeof(*ret), ret, sizeof(*ret), e);
        r = elf_file_read(f, ELF_VIEW_HEADERS, f->header.e_phoff + index * sizeof(narrow), &narrow, sizeof(narrow), e);
        if (r == 0)
                *ret = (Elf64_Phdr){ .p_type = narrow.p_type, .p_flags = narrow.p_flags, .p_offset = narrow.p_offset,
                                     .p_vaddr = narrow.p_vaddr, .p_paddr = narrow.p_paddr, .p_filesz = narrow.p_filesz,
                                     .p_memsz = narrow.p_memsz, .p_align = narrow.p_align };
        return r;
}

int elf_file_section_header(const ElfFile *f, size_t index, Elf64_Shdr *ret, Explanation *e) {
        Elf32_Shdr narrow;
        int r;

        if (index >= f->header.e_shnum)
                return elf_file_refuse(f, e, "refers to a section %zu that it does not have", index);
        if (f->is_64)
                return elf_file_read(f, ELF_VIEW_HEADERS, f->header.e_shoff + index * sizeof(*ret), ret, sizeof(*ret), e);
        r = elf_file_read(f, ELF_VIEW_HEADERS, f->header.e_shoff + index * sizeof(narrow), &narrow, sizeof(narrow), e);
        if (r == 0)
                *ret = (Elf64_Shdr){ .sh_name = narrow.sh_name, .sh_type = narrow.sh_type, .sh_flags = narrow.sh_flags,
                                     .sh_addr = narrow.sh_addr, .sh_offset = narrow.sh_offset, .sh_size = narrow.sh_size,
                                     .sh_link = narrow.sh_link, .sh_info = narrow.sh_info,
                                     .sh_addralign = narrow.sh_addralign, .sh_entsize = narrow.sh_entsize };
        return r;
}

int elf_file_section(const ElfFile *f, size_t index, Elf64_Shdr *ret, Explanation *e) {
        char what[48];
        int r = elf_file_section_header(f, index, ret, e);

        if (r != 0)
                return r;
        (void)snprintf(what, sizeof(what), "section %zu", index);
        if (ret->sh_type == SHT_NOBITS || (ret->sh_flags & SHF_COMPRESSED))
                return elf_file_refuse(f, e, "%s, which is needed, has no uncompressed bytes in this file", what);
        return ret->sh_size > 0 ? elf_file_check_range(f, ret->sh_offset, ret->sh_size, what, e) : 0;
}
