/*
 * What of an ELF file has to be true before it is looked into: its headers, its segments, where its tables are. Their entries are
 * checked when they are read, by who walks them.
 */
#include "daemon/kernel/elf/layout.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM_HEADERS_SIZE_MAX 65536 /* as the kernel's load_elf_phdrs() */
#define NOTES_SIZE_MAX (UINT64_C(1) << 20)
#define NATIVE_BYTE_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

/* Behind n bytes of a note whose next part is aligned to 8 bytes or, by almost all, to 4; how far that is from its header. */
static uint64_t pad(uint64_t n, uint64_t alignment) {
        uint64_t to = alignment == 8 ? 8 : 4;

        return (n + to - 1) / to * to;
}

int elf_note_next(const ElfFile *f, const ElfRange *notes, uint64_t alignment, uint64_t *at, ElfNote *ret, bool *ret_is_note,
                  Explanation *e) {
        uint64_t left = notes->size - *at, bytes, end;
        Elf64_Nhdr header; /* the same for 32 bits */
        int r = checkpoint(e);

        *ret_is_note = false;
        if (r != 0 || left < sizeof(header))
                return r;
        r = elf_file_read(f, ELF_VIEW_ENTRIES, notes->offset + *at, &header, sizeof(header), e);
        if (r != 0)
                return r;
        bytes = pad(sizeof(header) + (uint64_t)header.n_namesz, alignment);
        end = pad(bytes + header.n_descsz, alignment);
        if (bytes + header.n_descsz > left)
                return 0;
        *ret = (ElfNote){ .type = header.n_type, .owner = notes->offset + *at + sizeof(header), .n_owner = header.n_namesz,
                          .bytes = notes->offset + *at + bytes, .size = header.n_descsz };
        *at += end < left ? end : left; /* nothing is aligned behind the last one */
        *ret_is_note = true;
        return 0;
}

int elf_note_is(const ElfFile *f, const ElfNote *n, const char *owner, uint32_t type, bool *ret, Explanation *e) {
        char found[16];
        int r;

        *ret = n->type == type && n->n_owner == strlen(owner) + 1 && n->n_owner <= sizeof(found);
        if (!*ret)
                return 0;
        r = elf_file_read(f, ELF_VIEW_ENTRIES, n->owner, found, n->n_owner, e);
        *ret = r == 0 && memcmp(found, owner, n->n_owner) == 0;
        return r;
}

/* As the kernel does for PERF_RECORD_MMAP2: the first one in a PT_NOTE, unless it is longer than it would say. */
static int load_build_id(ElfFile *f, const Elf64_Phdr *segment, Explanation *e) {
        ElfRange notes = { segment->p_offset, segment->p_filesz };
        uint64_t at = 0;
        int r;

        if (f->n_build_id > 0 || notes.size == 0 || notes.size > NOTES_SIZE_MAX)
                return 0;
        r = elf_file_check_range(f, notes.offset, notes.size, "the notes", e);
        while (r == 0 && f->n_build_id == 0) {
                bool is_note, is_id = false;
                ElfNote note;

                r = elf_note_next(f, &notes, segment->p_align, &at, &note, &is_note, e);
                if (r != 0 || !is_note)
                        break;
                r = elf_note_is(f, &note, "GNU", NT_GNU_BUILD_ID, &is_id, e);
                if (!is_id || note.size == 0 || note.size > BUILD_ID_SIZE_MAX)
                        continue;
                r = elf_file_read(f, ELF_VIEW_ENTRIES, note.bytes, f->build_id, note.size, e);
                f->n_build_id = note.size;
        }
        return r;
}

/* What maps one byte twice would give two answers to one question. */
static int load_segment(ElfFile *f, const Elf64_Phdr *p, Explanation *e) {
        if (p->p_filesz > p->p_memsz || p->p_vaddr + p->p_memsz < p->p_vaddr)
                return elf_file_refuse(f, e, "segment at 0x%" PRIx64 " has impossible sizes", p->p_vaddr);
        if (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset)
                return elf_file_refuse(f, e, "is truncated, or contains only debug symbols: its segment at 0x%" PRIx64
                                       " would end after the file's %" PRIu64 " bytes", p->p_vaddr, f->size);
        for (size_t i = 0; i < f->n_segments; i++)
                if (p->p_vaddr < f->segments[i].address + f->segments[i].size &&
                    f->segments[i].address < p->p_vaddr + p->p_filesz)
                        return elf_file_refuse(f, e, "segments at 0x%" PRIx64 " and 0x%" PRIx64 " overlap",
                                               f->segments[i].address, p->p_vaddr);
        if (p->p_filesz > 0)
                f->segments[f->n_segments++] = (ElfSegment){ .address = p->p_vaddr, .offset = p->p_offset,
                                                             .size = p->p_filesz, .is_executable = p->p_flags & PF_X,
                                                             .is_writable = p->p_flags & PF_W };
        return 0;
}

static int load_segments(ElfFile *f, Explanation *e) {
        int r = 0;

        f->segments = calloc((size_t)f->header.e_phnum + 1, sizeof(*f->segments));
        if (!f->segments)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < f->header.e_phnum && r == 0; i++) {
                Elf64_Phdr p;

                r = elf_file_program_header(f, i, &p, e);
                if (r == 0 && p.p_type == PT_LOAD)
                        r = load_segment(f, &p, e);
                else if (r == 0 && p.p_type == PT_NOTE)
                        r = load_build_id(f, &p, e);
        }
        return r;
}

static int load_tables(ElfFile *f, Explanation *e) {
        int r = 0;

        for (size_t i = 1; i < f->header.e_shnum && r == 0; i++) {
                Elf64_Shdr header;
                ElfTable *t;

                r = elf_file_section_header(f, i, &header, e);
                if (r != 0)
                        return r;
                if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)
                        continue;
                t = &f->tables[header.sh_type == SHT_DYNSYM];
                if (t->n == 0)
                        r = elf_table_load(f, i, t, e);
        }
        return r;
}

/* Of a file for 32 bits or for 64. */
static void widen(ElfFile *f, const Elf32_Ehdr *h) {
        f->header = (Elf64_Ehdr){ .e_type = h->e_type, .e_machine = h->e_machine, .e_phoff = h->e_phoff, .e_shoff = h->e_shoff,
                                  .e_phentsize = h->e_phentsize, .e_phnum = h->e_phnum, .e_shentsize = h->e_shentsize,
                                  .e_shnum = h->e_shnum, .e_shstrndx = h->e_shstrndx };
}

static int load_header(ElfFile *f, Explanation *e) {
        unsigned char ident[EI_NIDENT] = { 0 };
        Elf32_Ehdr narrow;
        size_t size;
        int r = 0;

        if (f->size >= EI_NIDENT)
                r = elf_file_read(f, ELF_VIEW_HEADERS, 0, ident, sizeof(ident), e);
        if (r != 0)
                return r;
        if (f->size < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0)
                return elf_file_refuse(f, e, "is not an ELF file");
        f->is_64 = ident[EI_CLASS] == ELFCLASS64;
        if (ident[EI_DATA] != NATIVE_BYTE_ORDER || (!f->is_64 && ident[EI_CLASS] != ELFCLASS32))
                return elf_file_refuse(f, e, "is for a machine of another byte order or word size than this one");
        size = f->is_64 ? sizeof(f->header) : sizeof(narrow);
        if (f->size < size)
                return elf_file_refuse(f, e, "is truncated in its header");
        r = elf_file_read(f, ELF_VIEW_HEADERS, 0, f->is_64 ? (void *)&f->header : &narrow, size, e);
        if (r == 0 && !f->is_64)
                widen(f, &narrow);
        return r;
}

/* How many other headers there are, and where. */
static int check_header(const ElfFile *f, Explanation *e) {
        const Elf64_Ehdr *h = &f->header;
        int r;

        if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
                return elf_file_refuse(f, e, "is neither a program nor a shared library (ELF type %u)", h->e_type);
        if ((h->e_phnum && h->e_phentsize != (f->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr))) ||
            (h->e_shnum && h->e_shentsize != (f->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr))))
                return elf_file_refuse(f, e, "has headers of a size that ELF does not define");
        if (h->e_phnum == 0 || h->e_phnum * h->e_phentsize > PROGRAM_HEADERS_SIZE_MAX)
                return elf_file_refuse(f, e, "has %u program headers, and cannot be executed", h->e_phnum);
        if (h->e_shnum == 0 && h->e_shoff != 0)
                return elf_file_refuse(f, e, "has section headers but no number of them");
        r = elf_file_check_range(f, h->e_phoff, (uint64_t)h->e_phnum * h->e_phentsize, "its program headers", e);
        if (r == 0)
                r = elf_file_check_range(f, h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize, "its section headers", e);
        return r;
}

int elf_file_load_all(ElfFile *f, Explanation *e) {
        int r = elf_file_make_views(f);

        if (r == -ENOMEM)
                return refuse_kernel_memory(e, f->path);
        if (r == 0)
                r = load_header(f, e);
        if (r == 0)
                r = check_header(f, e);
        if (r == 0)
                r = load_segments(f, e);
        if (r == 0)
                r = load_tables(f, e);
        return r;
}
