/*
 * Symbols with their versions. .symtab says a version in the name ("memcpy@@GLIBC_2.14", and not every linker does),
 * .dynsym in two more sections; here both look the same. Only where a table is, is kept of it: who walks it rereads each symbol,
 * and its name where that may be the one that is looked for.
 */
#include "daemon/kernel/elf/layout.h"

#include "daemon/base/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_HIDDEN 0x8000 /* not what the name alone means */
#define VERSION_INDEX 0x7fff
#define SYMBOLS_AT_ONCE 1024 /* between two looks at the clock */

static int load_strings(const ElfFile *f, size_t index, ElfRange *ret, Explanation *e) {
        Elf64_Shdr header;
        char last = 'x';
        int r = elf_file_section(f, index, &header, e);

        if (r == 0 && header.sh_type == SHT_STRTAB && header.sh_size > 0)
                r = elf_file_read(f, ELF_VIEW_STRINGS, header.sh_offset + header.sh_size - 1, &last, 1, e);
        if (r == 0 && last != '\0')
                return elf_file_refuse(f, e, "section %zu should hold names but does not end with one", index);
        if (r == 0)
                *ret = (ElfRange){ header.sh_offset, header.sh_size };
        return r;
}

/* The definition of a version, and where its name is: Verdef -> first Verdaux -> string. */
static int read_definition(const ElfFile *f, const ElfRange *definitions, uint64_t at, Elf64_Verdef *ret, uint32_t *ret_name,
                           bool *ret_is_one, Explanation *e) {
        uint64_t left = definitions->size - at;
        Elf64_Verdaux first; /* both are the same for 32 bits */
        int r;

        *ret_is_one = false;
        if (at > definitions->size || left < sizeof(*ret))
                return 0;
        r = elf_file_read(f, ELF_VIEW_ENTRIES, definitions->offset + at, ret, sizeof(*ret), e);
        if (r != 0 || ret->vd_aux > left || left - ret->vd_aux < sizeof(first))
                return r;
        r = elf_file_read(f, ELF_VIEW_ENTRIES, definitions->offset + at + ret->vd_aux, &first, sizeof(first), e);
        *ret_name = first.vda_name;
        *ret_is_one = r == 0;
        return r;
}

/* Where the names of versions are, by index. */
static int load_version_names(const ElfFile *f, size_t index, ElfTable *t, Explanation *e) {
        ElfRange definitions;
        Elf64_Shdr header;
        uint64_t at = 0;
        int r = elf_file_section(f, index, &header, e);

        if (r == 0 && header.sh_size > 0)
                r = load_strings(f, header.sh_link, &t->version_strings, e);
        if (r != 0 || header.sh_size == 0)
                return r;
        definitions = (ElfRange){ header.sh_offset, header.sh_size };
        t->version_names = calloc(VERSION_INDEX + 1, sizeof(*t->version_names));
        if (!t->version_names)
                return error_origin(-ENOMEM);
        for (size_t n = 0; n <= VERSION_INDEX; n++) {
                Elf64_Verdef definition;
                uint32_t name = 0;
                bool is_one;

                r = checkpoint(e);
                if (r == 0)
                        r = read_definition(f, &definitions, at, &definition, &name, &is_one, e);
                if (r != 0)
                        return r;
                if (!is_one || name >= t->version_strings.size)
                        return elf_file_refuse(f, e, "the definition of a version, at byte %" PRIu64 " of section %zu, can"
                                               " not be right", at, index);
                if (!(definition.vd_flags & VER_FLG_BASE))
                        t->version_names[definition.vd_ndx & VERSION_INDEX] = name;
                if (definition.vd_next == 0)
                        return 0;
                at += definition.vd_next;
        }
        return elf_file_refuse(f, e, "section %zu defines more versions than ELF allows", index);
}

static int load_versions(const ElfFile *f, size_t symbols, ElfTable *t, Explanation *e) {
        for (size_t i = 1; i < f->header.e_shnum; i++) {
                Elf64_Shdr header;
                int r = elf_file_section_header(f, i, &header, e);

                if (r == 0 && header.sh_type == SHT_GNU_versym && header.sh_link == symbols && !t->versions) {
                        r = elf_file_section(f, i, &header, e);
                        if (r == 0 && header.sh_size / sizeof(Elf64_Versym) != t->n)
                                return elf_file_refuse(f, e, "section %zu should hold one version for each of %zu"
                                                       " symbols", i, t->n);
                        t->versions = header.sh_offset;
                } else if (r == 0 && header.sh_type == SHT_GNU_verdef && !t->version_names)
                        r = load_version_names(f, i, t, e);
                if (r != 0)
                        return r;
        }
        return 0;
}

int elf_table_load(const ElfFile *f, size_t index, ElfTable *t, Explanation *e) {
        uint64_t size = f->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
        ElfRange strings;
        Elf64_Shdr header;
        int r = elf_file_section(f, index, &header, e);

        if (r != 0 || header.sh_size == 0)
                return r;
        if (header.sh_entsize != size || header.sh_size % size != 0)
                return elf_file_refuse(f, e, "section %zu should hold symbols, but not of %ju bytes each", index,
                                       (uintmax_t)header.sh_entsize);
        r = load_strings(f, header.sh_link, &strings, e);
        if (r != 0)
                return r;
        t->section = index;
        t->offset = header.sh_offset;
        t->strings = strings;
        t->n = header.sh_size / size;
        return header.sh_type == SHT_DYNSYM ? load_versions(f, index, t, e) : 0;
}

void elf_table_deinit(ElfTable *t) {
        free(t->version_names);
        *t = (ElfTable){ .n = 0 };
}

static int read_symbol(const ElfFile *f, const ElfTable *t, size_t i, Elf64_Sym *ret, Explanation *e) {
        Elf32_Sym narrow;
        int r;

        if (f->is_64)
                r = elf_file_read(f, ELF_VIEW_ENTRIES, t->offset + i * sizeof(*ret), ret, sizeof(*ret), e);
        else
                r = elf_file_read(f, ELF_VIEW_ENTRIES, t->offset + i * sizeof(narrow), &narrow, sizeof(narrow), e);
        if (r == 0 && !f->is_64)
                *ret = (Elf64_Sym){ .st_name = narrow.st_name, .st_info = narrow.st_info, .st_other = narrow.st_other,
                                    .st_shndx = narrow.st_shndx, .st_value = narrow.st_value, .st_size = narrow.st_size };
        if (r == 0 && ret->st_name >= t->strings.size)
                return elf_file_refuse(f, e, "symbol %zu of section %zu has its name outside of the names", i, t->section);
        return r;
}

/* What .gnu.version says of the symbol. */
static int read_version(const ElfFile *f, const ElfTable *t, size_t i, ElfSymbol *s, Explanation *e) {
        Elf64_Versym version;
        uint32_t name;
        size_t n;
        int r = elf_file_read(f, ELF_VIEW_VERSIONS, t->versions + i * sizeof(version), &version, sizeof(version), e);

        name = r == 0 && t->version_names ? t->version_names[version & VERSION_INDEX] : 0;
        if (name == 0)
                return r;
        r = elf_file_read_text(f, &t->version_strings, name, f->version, ELF_VERSION_SIZE_MAX, &n, e);
        if (r == 0 && n == ELF_VERSION_SIZE_MAX)
                return elf_file_refuse(f, e, "the version of symbol %zu of section %zu has too long a name", i, t->section);
        s->version = f->version;
        s->is_default = !(version & VERSION_HIDDEN);
        return r;
}

int elf_table_symbol(const ElfFile *f, const ElfTable *t, size_t i, const char *prefix, size_t n_prefix, ElfSymbol *ret,
                     Explanation *e) {
        ElfSymbol s = { .name = "", .is_default = true };
        bool fits = true;
        Elf64_Sym symbol;
        const char *at;
        int r = i % SYMBOLS_AT_ONCE == 0 ? checkpoint(e) : 0;

        if (r == 0)
                r = read_symbol(f, t, i, &symbol, e);
        if (r == 0 && n_prefix > 0)
                r = elf_file_text_begins(f, &t->strings, symbol.st_name, prefix, n_prefix, &fits, e);
        if (r == 0 && fits)
                r = elf_file_read_text(f, &t->strings, symbol.st_name, f->name, ELF_NAME_SIZE_MAX, &s.n_name, e);
        if (r != 0)
                return r;
        s.name = s.n_name > 0 ? f->name : "";
        s.type = ELF64_ST_TYPE(symbol.st_info);
        s.binding = ELF64_ST_BIND(symbol.st_info);
        s.address = symbol.st_value;
        s.size = symbol.st_size;
        s.is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS && symbol.st_shndx != SHN_COMMON &&
                       s.type != STT_SECTION && s.type != STT_FILE && s.type != STT_TLS && s.n_name > 0 &&
                       s.n_name < ELF_NAME_SIZE_MAX;
        at = s.n_name > 1 ? memchr(s.name + 1, '@', s.n_name - 1) : NULL;
        if (at) {
                s.n_name = (size_t)(at - s.name);
                s.is_default = at[1] == '@';
                s.version = at + 1 + s.is_default;
        } else if (fits && t->versions)
                r = read_version(f, t, i, &s, e);
        if (r == 0)
                *ret = s;
        return r;
}
