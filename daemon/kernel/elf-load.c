/*
 * What of an ELF file is read, and what has to be true of it before libelf sees it.
 *
 * libelf trusts a header enough to allocate whatever it asks for, and a mapped file that someone cuts would kill us
 * with SIGBUS. So libelf only ever sees memory: an empty private mapping of the file's size, into which the few ranges
 * that are needed are read, after their bounds were checked. A program of gigabytes costs its symbol tables, and nobody
 * who writes to the file while we look can change what we checked.
 */
#include "daemon/kernel/elf-layout.h"

#include "config/words.h"
#include "daemon/base/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_HEADERS_SIZE_MAX 65536 /* as the kernel's load_elf_phdrs() */
#define NOTES_SIZE_MAX (UINT64_C(1) << 20)
#define READ_AT_ONCE (UINT64_C(1) << 20) /* bytes, between two checkpoints */
#define NATIVE_BYTE_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

int elf_file_refuse(const ElfFile *f, Explanation *e, const char *format, ...) {
        char what[512];
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        return refuse(e, REFUSED_INVALID, "bad-elf", "%s: %s", QUOTE(f->path), what);
}

/* Whole pages, each once: what was read stays as it was when it was checked. */
static int load_page_run(const ElfFile *f, size_t first, size_t end, const char *what, Explanation *e) {
        uint64_t offset = (uint64_t)first * ELF_PAGE_SIZE, stop = (uint64_t)end * ELF_PAGE_SIZE;

        if (stop > f->size)
                stop = f->size;
        while (offset < stop) {
                size_t most = stop - offset < READ_AT_ONCE ? stop - offset : READ_AT_ONCE;
                ssize_t n;
                int r = checkpoint(e);

                if (r != 0)
                        return r;
                n = pread(f->fd, f->image + offset, most, (off_t)offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return elf_file_refuse(f, e, "%s can not be read: %s", what, strerror(errno));
                if (n == 0)
                        return elf_file_refuse(f, e, "was cut off while it was read");
                offset += (uint64_t)n;
        }
        memset(f->pages + first, true, end - first);
        return 0;
}

int elf_file_load(const ElfFile *f, uint64_t offset, uint64_t size, const char *what, Explanation *e) {
        size_t page = offset / ELF_PAGE_SIZE, end;
        int r = 0;

        if (offset > f->size || size > f->size - offset)
                return elf_file_refuse(f, e, "is cut off: %s of %" PRIu64 " bytes at %" PRIu64
                                       " would end behind the file's %zu bytes", what, size, offset, f->size);
        if (size > ELF_TABLE_SIZE_MAX)
                return elf_file_refuse(f, e, "%s of %" PRIu64 " bytes is larger than any of a real program", what,
                                       size);
        if (!f->pages || size == 0)
                return 0;
        end = (offset + size - 1) / ELF_PAGE_SIZE + 1;
        while (page < end && r == 0) {
                size_t first = page;

                while (page < end && !f->pages[page])
                        page++;
                if (page > first)
                        r = load_page_run(f, first, page, what, e);
                while (page < end && f->pages[page])
                        page++;
        }
        return r;
}

int elf_file_load_section(const ElfFile *f, size_t index, Elf_Data **ret, GElf_Shdr *ret_header, Explanation *e) {
        Elf_Scn *section = elf_getscn(f->elf, index);
        Elf_Data *bytes = NULL;
        GElf_Shdr header;
        char what[48];
        int r;

        if (!section || !gelf_getshdr(section, &header))
                return elf_file_refuse(f, e, "names a section %zu that it does not have", index);
        (void)snprintf(what, sizeof(what), "section %zu", index);
        if (header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED))
                return elf_file_refuse(f, e, "%s, which is needed, has no plain bytes here", what);
        if (header.sh_size > 0) {
                r = elf_file_load(f, header.sh_offset, header.sh_size, what, e);
                if (r != 0)
                        return r;
                bytes = elf_getdata(section, NULL);
                if (!bytes || !bytes->d_buf || bytes->d_size != header.sh_size)
                        return elf_file_refuse(f, e, "%s can not be right: %s", what, elf_errmsg(-1));
        }
        *ret = bytes;
        *ret_header = header;
        return 0;
}

bool elf_note_next(Elf_Data *notes, size_t *offset, ElfNote *ret) {
        size_t owner, bytes, next;
        GElf_Nhdr header;

        next = gelf_getnote(notes, *offset, &header, &owner, &bytes);
        if (next == 0)
                return false;
        *ret = (ElfNote){ .type = header.n_type, .owner = (const char *)notes->d_buf + owner,
                          .n_owner = header.n_namesz, .bytes = (const uint8_t *)notes->d_buf + bytes,
                          .size = header.n_descsz };
        *offset = next;
        return true;
}

bool elf_note_is(const ElfNote *n, const char *owner, uint32_t type) {
        return n->type == type && n->n_owner == strlen(owner) + 1 && memcmp(n->owner, owner, n->n_owner) == 0;
}

/* As the kernel does for PERF_RECORD_MMAP2: the first one in a PT_NOTE, unless it is longer than it would say. */
static int load_build_id(ElfFile *f, const GElf_Phdr *segment, Explanation *e) {
        size_t offset = 0;
        Elf_Data *notes;
        ElfNote note;
        int r;

        if (f->n_build_id > 0 || segment->p_filesz == 0 || segment->p_filesz > NOTES_SIZE_MAX)
                return 0;
        r = elf_file_load(f, segment->p_offset, segment->p_filesz, "the notes", e);
        if (r != 0)
                return r;
        notes = elf_getdata_rawchunk(f->elf, (int64_t)segment->p_offset, segment->p_filesz,
                                     segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
        while (notes && elf_note_next(notes, &offset, &note))
                if (elf_note_is(&note, "GNU", NT_GNU_BUILD_ID) && note.size > 0 && note.size <= BUILD_ID_SIZE_MAX) {
                        memcpy(f->build_id, note.bytes, note.size);
                        f->n_build_id = note.size;
                        break;
                }
        return 0;
}

/* What maps one byte twice would give two answers to one question. */
static int load_segment(ElfFile *f, const GElf_Phdr *p, Explanation *e) {
        if (p->p_filesz > p->p_memsz || p->p_vaddr + p->p_memsz < p->p_vaddr)
                return elf_file_refuse(f, e, "segment at 0x%" PRIx64 " has sizes that can not be right", p->p_vaddr);
        if (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset)
                return elf_file_refuse(f, e, "is cut off, or holds debug symbols only: its segment at 0x%" PRIx64
                                       " would end behind the file's %zu bytes", p->p_vaddr, f->size);
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
        for (int i = 0; i < f->header.e_phnum && r == 0; i++) {
                GElf_Phdr p;

                if (!gelf_getphdr(f->elf, i, &p))
                        return elf_file_refuse(f, e, "program header %d can not be read: %s", i, elf_errmsg(-1));
                if (p.p_type == PT_LOAD)
                        r = load_segment(f, &p, e);
                else if (p.p_type == PT_NOTE)
                        r = load_build_id(f, &p, e);
        }
        return r;
}

static int load_tables(ElfFile *f, Explanation *e) {
        int r = 0;

        for (size_t i = 1; i < f->header.e_shnum && r == 0; i++) {
                Elf_Scn *section = elf_getscn(f->elf, i);
                GElf_Shdr header;
                ElfTable *t;

                if (!section || !gelf_getshdr(section, &header))
                        return elf_file_refuse(f, e, "section header %zu can not be read: %s", i, elf_errmsg(-1));
                if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)
                        continue;
                t = &f->tables[header.sh_type == SHT_DYNSYM];
                if (t->n == 0)
                        r = elf_table_load(f, i, t, e);
        }
        return r;
}

/* All that elf_memory() would believe: how many headers there are, and where. */
static int check_header(ElfFile *f, Explanation *e) {
        const unsigned char *ident = (const unsigned char *)f->image;
        bool is_64 = false;
        union {
                Elf32_Ehdr narrow;
                Elf64_Ehdr wide;
        } h;
        int r = 0;

        if (f->size >= EI_NIDENT)
                r = elf_file_load(f, 0, f->size < sizeof(h) ? f->size : sizeof(h), "the header", e);
        if (r != 0)
                return r;
        if (f->size < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0)
                return elf_file_refuse(f, e, "is no ELF file");
        is_64 = ident[EI_CLASS] == ELFCLASS64;
        if (ident[EI_DATA] != NATIVE_BYTE_ORDER || (!is_64 && ident[EI_CLASS] != ELFCLASS32))
                return elf_file_refuse(f, e, "is for a machine of another byte order or word size than this one");
        if (f->size < (is_64 ? sizeof(h.wide) : sizeof(h.narrow)))
                return elf_file_refuse(f, e, "is cut off in its header");
        memcpy(&h, f->image, is_64 ? sizeof(h.wide) : sizeof(h.narrow));
#define HEADER(field) (is_64 ? h.wide.field : h.narrow.field)
        if (HEADER(e_type) != ET_EXEC && HEADER(e_type) != ET_DYN)
                return elf_file_refuse(f, e, "is neither a program nor a shared library (ELF type %u)", HEADER(e_type));
        if ((HEADER(e_phnum) && HEADER(e_phentsize) != (is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr))) ||
            (HEADER(e_shnum) && HEADER(e_shentsize) != (is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr))))
                return elf_file_refuse(f, e, "has headers of a size that ELF does not know");
        if (HEADER(e_phnum) == 0 || HEADER(e_phnum) * HEADER(e_phentsize) > PROGRAM_HEADERS_SIZE_MAX)
                return elf_file_refuse(f, e, "has %u program headers, with which nothing can run", HEADER(e_phnum));
        if (HEADER(e_shnum) == 0 && HEADER(e_shoff) != 0)
                return elf_file_refuse(f, e, "has section headers but no number of them");
        r = elf_file_load(f, HEADER(e_phoff), HEADER(e_phnum) * HEADER(e_phentsize), "its program headers", e);
        if (r == 0)
                r = elf_file_load(f, HEADER(e_shoff), HEADER(e_shnum) * HEADER(e_shentsize), "its section headers", e);
#undef HEADER
        return r;
}

int elf_file_load_all(ElfFile *f, Explanation *e) {
        int r = check_header(f, e);

        if (r != 0)
                return r;
        (void)elf_version(EV_CURRENT);
        f->elf = elf_memory(f->image, f->size);
        if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->header))
                return elf_file_refuse(f, e, "can not be read as ELF: %s", elf_errmsg(-1));
        r = load_segments(f, e);
        if (r == 0)
                r = load_tables(f, e);
        return r;
}
