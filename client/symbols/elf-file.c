/*
 * libelf allocates as much as headers say, up to the size of the file, which may be sparse. So the number of sections is looked at before
 * libelf sees the file, and the size of a section before its bytes are asked for.
 */
#include <endian.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/symbols/elf-symbols.h"
#include "client/symbols/open-file.h"
#include "client/symbols/unpack.h"

#define SECTIONS_MAX 100000
#define FILE_MAX (INT64_C(1) << 36)
#define NOTES_MAX 1024

/* An Elf64_Shdr or Elf32_Shdr number 0 has the number of sections where the header has no room for it: that is not for us. */
static bool has_few_sections(const unsigned char *header, size_t n) {
        const bool is_64 = n > EI_CLASS && header[EI_CLASS] == ELFCLASS64;
        const size_t number = is_64 ? offsetof(Elf64_Ehdr, e_shnum) : offsetof(Elf32_Ehdr, e_shnum);
        const size_t table = is_64 ? offsetof(Elf64_Ehdr, e_shoff) : offsetof(Elf32_Ehdr, e_shoff);
        const unsigned char nothing[8] = { 0 };

        if (n < sizeof(Elf32_Ehdr) || (is_64 && n < sizeof(Elf64_Ehdr)) || memcmp(header, ELFMAG, SELFMAG) != 0)
                return false;
        return memcmp(header + number, nothing, 2) != 0 || memcmp(header + table, nothing, is_64 ? 8 : 4) == 0;
}

/* bytes: NULL or notes. True: it was there. */
static bool find_build_id(ElfFile *f, Elf_Data *bytes) {
        size_t at = 0, next, name, text;
        GElf_Nhdr note;

        for (int k = 0; bytes && k < NOTES_MAX && (next = gelf_getnote(bytes, at, &note, &name, &text)) > 0; k++, at = next)
                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((char *)bytes->d_buf + name, "GNU", 4) == 0 &&
                    note.n_descsz <= BUILD_ID_MAX) {
                        f->id.n = note.n_descsz;
                        memcpy(f->id.bytes, (char *)bytes->d_buf + text, note.n_descsz);
                        return true;
                }
        return false;
}

/* Of its segments; a module of the kernel has none, but a section. */
static void read_build_id(ElfFile *f) {
        Elf_Scn *section;
        size_t n;

        if (elf_getphdrnum(f->elf, &n) != 0)
                return;
        for (size_t i = 0; i < n && i < SEGMENTS_MAX; i++) {
                GElf_Phdr header;
                Elf_Data *bytes = NULL;

                if (gelf_getphdr(f->elf, (int)i, &header) && header.p_type == PT_NOTE && header.p_filesz <= f->limit)
                        bytes = elf_getdata_rawchunk(f->elf, (int64_t)header.p_offset, header.p_filesz, header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
                if (find_build_id(f, bytes))
                        return;
        }
        section = n == 0 ? elf_file_section(f, ".note.gnu.build-id", SHT_NOTE) : NULL;
        if (section)
                (void)find_build_id(f, elf_file_section_bytes(f, section));
}

/* Its text, a 0, and aligned to four bytes the CRC of the file. */
static void read_link(ElfFile *f) {
        Elf_Scn *section = elf_file_section(f, ".gnu_debuglink", SHT_NULL);
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL;
        const size_t n = bytes ? strnlen(bytes->d_buf, bytes->d_size) : 0, crc = (n + 4) & ~(size_t)3;
        uint32_t raw;

        if (n == 0 || n >= sizeof(f->link) || crc + sizeof(raw) > bytes->d_size || memchr(bytes->d_buf, '/', n))
                return;
        memcpy(f->link, bytes->d_buf, n + 1);
        memcpy(&raw, (char *)bytes->d_buf + crc, sizeof(raw));
        f->link_crc = elf_getident(f->elf, NULL)[EI_DATA] == ELFDATA2MSB ? be32toh(raw) : le32toh(raw);
}

static bool begin(ElfFile *f) {
        Elf_Scn *section;
        GElf_Ehdr header;

        if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &header)) {
                elf_file_close(f);
                return false;
        }
        section = elf_file_section(f, NULL, SHT_SYMTAB);
        f->has_symbols = section && elf_file_section_bytes(f, section);
        read_build_id(f);
        read_link(f);
        return true;
}

bool elf_file_open(ElfFile *f, int fd, size_t limit) {
        unsigned char header[sizeof(Elf64_Ehdr)];
        const ssize_t n = pread(fd, header, sizeof(header), 0);
        struct stat status;

        *f = (ElfFile){ .limit = limit, .fd = fd };
        if (n < 0 || !has_few_sections(header, (size_t)n) || fstat(fd, &status) != 0 || status.st_size > FILE_MAX)
                return false;
        elf_version(EV_CURRENT);
        f->elf = elf_begin(fd, ELF_C_READ, NULL);
        return begin(f);
}

bool elf_file_open_bytes(ElfFile *f, char *bytes, size_t n, size_t limit) {
        *f = (ElfFile){ .limit = limit, .bytes = bytes };
        if (!bytes || !has_few_sections((unsigned char *)bytes, n)) {
                elf_file_close(f);
                return false;
        }
        elf_version(EV_CURRENT);
        f->elf = elf_memory(bytes, n);
        return begin(f);
}

bool elf_file_open_packed(ElfFile *f, int fd, size_t limit) {
        size_t n = 0, n_plain = 0;
        char *packed = read_file(fd, limit / 2, &n), *plain = packed ? unpack(packed, n, limit / 2, &n_plain) : NULL;

        free(packed);
        return elf_file_open_bytes(f, plain, n_plain, limit);
}

void elf_file_close(ElfFile *f) {
        elf_end(f->elf);
        free(f->bytes);
        *f = (ElfFile)ELF_FILE_NULL;
}

Elf_Scn *elf_file_section(const ElfFile *f, const char *name, uint32_t type) {
        Elf_Scn *section = NULL;
        size_t names, n = 0;
        GElf_Shdr header;

        if (elf_getshdrstrndx(f->elf, &names) != 0)
                names = 0;
        while ((section = elf_nextscn(f->elf, section)) && n++ < SECTIONS_MAX) {
                const char *called;

                if (!gelf_getshdr(section, &header) || (type != SHT_NULL && header.sh_type != type))
                        continue;
                if (!name)
                        return section;
                called = elf_strptr(f->elf, names, header.sh_name);
                if (called && strcmp(called, name) == 0)
                        return section;
        }
        return NULL;
}

Elf_Data *elf_file_section_bytes(const ElfFile *f, Elf_Scn *section) {
        GElf_Shdr header;
        Elf_Data *bytes;

        if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS || header.sh_size > f->limit)
                return NULL;
        bytes = elf_getdata(section, NULL);
        return bytes && bytes->d_buf && bytes->d_size > 0 ? bytes : NULL;
}

bool elf_file_open_mini(const ElfFile *f, ElfFile *ret) {
        Elf_Scn *section = elf_file_section(f, ".gnu_debugdata", SHT_NULL);
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL;
        size_t n = 0;
        char *plain = bytes ? unpack_xz(bytes->d_buf, bytes->d_size, f->limit / 2, &n) : NULL;

        return elf_file_open_bytes(ret, plain, n, f->limit);
}
