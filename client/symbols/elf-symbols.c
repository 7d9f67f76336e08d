/* Which symbols are functions: as perf has it, but nothing outside of executable segments. */
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "client/symbols/elf-symbols.h"

#define PAGE 4096
#define MODULE_MAX (UINT64_C(1) << 31)  /* bytes: all architectures have less room for modules */
#define ALIGNMENT_MAX (UINT64_C(1) << 21)

static bool is_module(const ElfFile *f) {
        GElf_Ehdr header;

        return gelf_getehdr(f->elf, &header) && header.e_type == ET_REL;
}

/* The kernel needs these for as long as it loads the module, and puts them elsewhere. */
static bool is_of_begin(const char *section) {
        return strncmp(section, ".init", strlen(".init")) == 0;
}

/* The kernel makes these as large as it needs, which the file does not say. */
static bool is_of_unknown_size(const char *section) {
        return strcmp(section, ".plt") == 0 || strcmp(section, ".text.ftrace_trampoline") == 0;
}

/* As layout_sections() in kernel/module/main.c of Linux: code first, in the order of the file. */
static void lay_out_module(ElfSymbols *s, const ElfFile *f) {
        Elf_Scn *section = NULL;
        uint64_t place = 0;
        size_t names;

        if (elf_getshdrstrndx(f->elf, &names) != 0)
                return;
        while (s->n_segments < SEGMENTS_MAX && (section = elf_nextscn(f->elf, section))) {
                const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
                GElf_Shdr header;
                const char *name;

                if (!gelf_getshdr(section, &header) || (header.sh_flags & code) != code)
                        continue;
                name = elf_strptr(f->elf, names, header.sh_name);
                if (!name || is_of_begin(name))
                        continue;
                if (is_of_unknown_size(name) || header.sh_size > MODULE_MAX - place || header.sh_addralign > ALIGNMENT_MAX)
                        return;
                if (header.sh_addralign > 1)
                        place = (place + header.sh_addralign - 1) / header.sh_addralign * header.sh_addralign;
                s->segments[s->n_segments++] = (Segment){ .offset = place,
                                                          .file_size = header.sh_size,
                                                          .address = place,
                                                          .memory_size = header.sh_size,
                                                          .is_executable = true,
                                                          .section = (uint32_t)elf_ndxscn(section) };
                place += header.sh_size;
        }
}

void elf_symbols_read_segments(ElfSymbols *s, const ElfFile *f) {
        size_t n;

        if (is_module(f)) {
                lay_out_module(s, f);
                return;
        }
        if (elf_getphdrnum(f->elf, &n) != 0)
                return;
        for (size_t i = 0; i < n && i < 4096 && s->n_segments < SEGMENTS_MAX; i++) {
                GElf_Phdr header;

                if (gelf_getphdr(f->elf, (int)i, &header) && header.p_type == PT_LOAD)
                        s->segments[s->n_segments++] = (Segment){ .offset = header.p_offset,
                                                                  .file_size = header.p_filesz,
                                                                  .address = header.p_vaddr,
                                                                  .memory_size = header.p_memsz,
                                                                  .is_executable = (header.p_flags & PF_X) != 0 };
        }
}

/* Memory is mapped by whole pages, which may have more of the file than the segment. */
bool elf_symbols_address(const ElfSymbols *s, uint64_t offset, uint64_t *ret) {
        const Segment *best = NULL;

        for (size_t i = 0; i < s->n_segments; i++) {
                const Segment *g = s->segments + i;
                const uint64_t before = g->offset % PAGE;

                if (g->file_size > 0 && offset >= g->offset - before && offset - (g->offset - before) < g->file_size + before &&
                    (!best || (g->is_executable && !best->is_executable)))
                        best = g;
        }
        if (best)
                *ret = best->address + (offset - best->offset);
        return best != NULL;
}

/* From its place in a section to that in the module. False: it is in none that has a place. */
static bool place_in_module(const ElfSymbols *s, GElf_Sym *symbol) {
        for (size_t i = 0; i < s->n_segments; i++)
                if (s->segments[i].section == symbol->st_shndx && symbol->st_value < s->segments[i].memory_size) {
                        symbol->st_value += s->segments[i].address;
                        return true;
                }
        return false;
}

static bool is_executable(const ElfSymbols *s, uint64_t address) {
        for (size_t i = 0; i < s->n_segments; i++)
                if (s->segments[i].is_executable && address >= s->segments[i].address &&
                    address - s->segments[i].address < s->segments[i].memory_size)
                        return true;
        return false;
}

/* "$x": where which kind of bytes begins, for ARM and RISC-V; ".L": local to an assembler. */
static bool is_mark(const char *name) {
        return (name[0] == '$' && name[1] && strchr("adtx", name[1])) || (name[0] == '.' && name[1] == 'L');
}

static bool is_function(const ElfSymbols *s, const GElf_Sym *symbol, const char *name) {
        const unsigned type = GELF_ST_TYPE(symbol->st_info);

        if (!name || !name[0] || symbol->st_shndx == SHN_UNDEF || !is_executable(s, symbol->st_value))
                return false;
        if (type == STT_NOTYPE)
                return symbol->st_shndx != SHN_ABS && GELF_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT && !is_mark(name);
        return type == STT_FUNC || type == STT_GNU_IFUNC;
}

int elf_symbols_read(ElfSymbols *s, const ElfFile *f, uint32_t type) {
        Elf_Scn *section = elf_file_section(f, NULL, type);
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL;
        Elf_Scn *names;
        GElf_Shdr header;
        GElf_Ehdr elf_header;
        size_t n;

        if (!bytes || !gelf_getshdr(section, &header) || !gelf_getehdr(f->elf, &elf_header))
                return 0;
        names = elf_getscn(f->elf, header.sh_link);
        if (!names || !elf_file_section_bytes(f, names))
                return 0;
        n = bytes->d_size / gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
        for (size_t i = 1; i < n && i <= INT32_MAX && !s->table.is_full; i++) {
                GElf_Sym symbol;
                const char *name;
                unsigned rank;
                int r;

                if (!gelf_getsym(bytes, (int)i, &symbol))
                        break;
                if (elf_header.e_machine == EM_ARM)
                        symbol.st_value &= ~UINT64_C(1); /* Thumb */
                if (elf_header.e_type == ET_REL && !place_in_module(s, &symbol))
                        continue;
                name = elf_strptr(f->elf, header.sh_link, symbol.st_name);
                if (!is_function(s, &symbol, name))
                        continue;
                rank = (GELF_ST_BIND(symbol.st_info) == STB_GLOBAL ? SYMBOL_GLOBAL : 0) |
                       (GELF_ST_BIND(symbol.st_info) != STB_WEAK ? SYMBOL_STRONG : 0) | (SYMBOL_ORDER_MAX - (uint32_t)(i & SYMBOL_ORDER_MAX));
                r = symbol_table_add(&s->table, symbol.st_value, symbol.st_size, name, strnlen(name, SYMBOL_NAME_MAX), rank);
                if (r != 0)
                        return r;
        }
        return 0;
}
