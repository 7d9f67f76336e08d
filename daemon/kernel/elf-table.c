/*
 * Symbols with their versions. .symtab says a version in the name ("memcpy@@GLIBC_2.14", and not every linker does),
 * .dynsym in two more sections; here both look the same. All is checked when a table is loaded, so that walking it
 * later can not fail.
 */
#include "daemon/kernel/elf-layout.h"

#include "daemon/base/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#define VERSION_HIDDEN 0x8000 /* not what the name alone means */
#define VERSION_INDEX 0x7fff
#define SYMBOLS_AT_ONCE 1024 /* between two looks at the clock */
#define NAME_MAX_SIZE 65536 /* of a symbol, which else is none: mangled ones have some thousands, and a file of one's own any */

/* The name at `offset` of a string table that ends with a zero byte. */
static bool has_string(const Elf_Data *strings, uint64_t offset) {
        return strings && offset < strings->d_size;
}

static int load_strings(const ElfFile *f, size_t index, Elf_Data **ret, Explanation *e) {
        GElf_Shdr header;
        int r = elf_file_load_section(f, index, ret, &header, e);

        if (r != 0)
                return r;
        if (header.sh_type != SHT_STRTAB || !*ret || ((const char *)(*ret)->d_buf)[(*ret)->d_size - 1] != '\0')
                return elf_file_refuse(f, e, "section %zu should hold names but does not end with one", index);
        return 0;
}

/* Names of versions by index: Verdef -> first Verdaux -> string. The chain only goes forward, so it ends. */
static int load_version_names(const ElfFile *f, size_t index, ElfTable *t, Explanation *e) {
        Elf_Data *definitions, *strings;
        GElf_Shdr header;
        size_t offset = 0;
        int r = elf_file_load_section(f, index, &definitions, &header, e);

        if (r == 0 && definitions)
                r = load_strings(f, header.sh_link, &strings, e);
        if (r != 0 || !definitions)
                return r;
        t->version_names = calloc(VERSION_INDEX + 1, sizeof(*t->version_names));
        if (!t->version_names)
                return error_origin(-ENOMEM);
        t->n_version_names = VERSION_INDEX + 1;
        for (;;) {
                GElf_Verdef definition;
                GElf_Verdaux first;

                r = checkpoint(e);
                if (r != 0)
                        return r;

                if (offset > INT32_MAX || !gelf_getverdef(definitions, (int)offset, &definition) ||
                    offset + definition.vd_aux > INT32_MAX ||
                    !gelf_getverdaux(definitions, (int)(offset + definition.vd_aux), &first) ||
                    !has_string(strings, first.vda_name))
                        return elf_file_refuse(f, e, "the definition of a version, at byte %zu of section %zu, can not"
                                               " be right", offset, index);
                if (!(definition.vd_flags & VER_FLG_BASE))
                        t->version_names[definition.vd_ndx & VERSION_INDEX] =
                                (const char *)strings->d_buf + first.vda_name;
                if (definition.vd_next == 0)
                        return 0;
                offset += definition.vd_next;
        }
}

static int load_versions(const ElfFile *f, size_t symbols, ElfTable *t, Explanation *e) {
        for (size_t i = 1; i < f->header.e_shnum; i++) {
                Elf_Scn *section = elf_getscn(f->elf, i);
                GElf_Shdr header;
                int r = 0;

                if (!section || !gelf_getshdr(section, &header))
                        return elf_file_refuse(f, e, "section header %zu can not be read: %s", i, elf_errmsg(-1));
                if (header.sh_type == SHT_GNU_versym && header.sh_link == symbols && !t->versions) {
                        r = elf_file_load_section(f, i, &t->versions, &header, e);
                        if (r == 0 && (!t->versions || t->versions->d_size / sizeof(GElf_Versym) != t->n))
                                return elf_file_refuse(f, e, "section %zu should hold one version for each of %zu"
                                                       " symbols", i, t->n);
                } else if (header.sh_type == SHT_GNU_verdef && !t->version_names)
                        r = load_version_names(f, i, t, e);
                if (r != 0)
                        return r;
        }
        return 0;
}

int elf_table_load(const ElfFile *f, size_t index, ElfTable *t, Explanation *e) {
        Elf_Data *symbols, *strings;
        GElf_Shdr header;
        int r = elf_file_load_section(f, index, &symbols, &header, e);

        if (r != 0 || !symbols)
                return r;
        if (header.sh_entsize != gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT) ||
            header.sh_size % header.sh_entsize != 0 || header.sh_size / header.sh_entsize > INT32_MAX)
                return elf_file_refuse(f, e, "section %zu should hold symbols, but not of %ju bytes each", index,
                                       (uintmax_t)header.sh_entsize);
        r = load_strings(f, header.sh_link, &strings, e);
        if (r != 0)
                return r;
        t->symbols = symbols;
        t->strings = strings->d_buf;
        t->n = header.sh_size / header.sh_entsize;
        for (size_t i = 0; i < t->n; i++) {
                GElf_Sym symbol;

                r = elf_table_checkpoint(i, e);
                if (r != 0)
                        return r;
                if (!gelf_getsym(symbols, (int)i, &symbol) || !has_string(strings, symbol.st_name))
                        return elf_file_refuse(f, e, "symbol %zu of section %zu has its name where there is none", i,
                                               index);
        }
        return header.sh_type == SHT_DYNSYM ? load_versions(f, index, t, e) : 0;
}

int elf_table_checkpoint(size_t i, Explanation *e) {
        return i % SYMBOLS_AT_ONCE == 0 ? checkpoint(e) : 0;
}

void elf_table_deinit(ElfTable *t) {
        free(t->version_names);
        *t = (ElfTable){ .n = 0 };
}

ElfSymbol elf_table_symbol(const ElfTable *t, size_t i) {
        ElfSymbol s = { .is_default = true };
        GElf_Versym version = VER_NDX_GLOBAL;
        GElf_Sym symbol;
        const char *at;

        (void)gelf_getsym(t->symbols, (int)i, &symbol); /* as in elf_table_load() */
        s.name = t->strings + symbol.st_name;
        s.n_name = strnlen(s.name, NAME_MAX_SIZE);
        s.type = GELF_ST_TYPE(symbol.st_info);
        s.binding = GELF_ST_BIND(symbol.st_info);
        s.address = symbol.st_value;
        s.size = symbol.st_size;
        s.is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS && symbol.st_shndx != SHN_COMMON &&
                       s.type != STT_SECTION && s.type != STT_FILE && s.type != STT_TLS && s.n_name > 0 &&
                       s.n_name < NAME_MAX_SIZE;
        at = s.n_name > 1 ? memchr(s.name + 1, '@', s.n_name - 1) : NULL;
        if (at) {
                s.n_name = (size_t)(at - s.name);
                s.is_default = at[1] == '@';
                s.version = at + 1 + s.is_default;
        } else if (t->versions && gelf_getversym(t->versions, (int)i, &version)) {
                if (t->version_names)
                        s.version = t->version_names[version & VERSION_INDEX];
                s.is_default = !s.version || !(version & VERSION_HIDDEN);
        }
        return s;
}
