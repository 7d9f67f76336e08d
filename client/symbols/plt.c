/*
 * What a program calls of others goes through its procedure linkage table, which has no symbols. On x86 each entry jumps through a place
 * that a relocation names; that finds those of .plt.sec and .plt.got too, in whatever order a linker wrote them. On others the entries of
 * .plt are in the order of .rela.plt.
 */
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/symbols/elf-symbols.h"

#define NAME_SIZE 1024
#define ENTRIES_MAX 1000000

typedef struct Slot {
        uint64_t address; /* where the function's address is kept */
        const char *name;
} Slot;

typedef struct Slots {
        Slot *list;
        size_t n, room;
} Slots;

static int compare(const void *a, const void *b) {
        const Slot *x = a, *y = b;

        return (x->address > y->address) - (x->address < y->address);
}

static int add_slot(Slots *slots, uint64_t address, const char *name) {
        if (slots->n == slots->room) {
                const size_t room = slots->room ? slots->room * 2 : 64;
                Slot *list = reallocarray(slots->list, room, sizeof(Slot));

                if (!list)
                        return -ENOMEM;
                slots->list = list;
                slots->room = room;
        }
        slots->list[slots->n++] = (Slot){ .address = address, .name = name };
        return 0;
}

static const char *name_of(const ElfFile *f, Elf_Data *symbols, size_t names, uint64_t index) {
        GElf_Sym symbol;
        const char *name = NULL;

        if (index > 0 && index <= INT32_MAX && gelf_getsym(symbols, (int)index, &symbol))
                name = elf_strptr(f->elf, names, symbol.st_name);
        return name && name[0] ? name : NULL;
}

/* Of one section: the name of each place; with has_nameless also of those that have none, NULL. */
static int read_relocations(const ElfFile *f, const char *section_name, bool has_nameless, Slots *slots) {
        Elf_Scn *section = elf_file_section(f, section_name, SHT_NULL), *linked;
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL, *symbols;
        GElf_Shdr header, linked_header;
        bool has_addends;
        size_t n;

        if (!bytes || !gelf_getshdr(section, &header) || (header.sh_type != SHT_RELA && header.sh_type != SHT_REL))
                return 0;
        linked = elf_getscn(f->elf, header.sh_link);
        symbols = linked ? elf_file_section_bytes(f, linked) : NULL;
        if (!symbols || !gelf_getshdr(linked, &linked_header))
                return 0;
        has_addends = header.sh_type == SHT_RELA;
        n = bytes->d_size / gelf_fsize(f->elf, has_addends ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
        for (size_t i = 0; i < n && i < ENTRIES_MAX; i++) {
                GElf_Rela rela = { .r_offset = 0 };
                GElf_Rel rel = { .r_offset = 0 };
                uint64_t symbol;

                if (has_addends ? !gelf_getrela(bytes, (int)i, &rela) : !gelf_getrel(bytes, (int)i, &rel))
                        break;
                symbol = GELF_R_SYM(has_addends ? rela.r_info : rel.r_info);
                if (symbol == 0 && !has_nameless)
                        continue;
                if (add_slot(slots, has_addends ? rela.r_offset : rel.r_offset, name_of(f, symbols, linked_header.sh_link, symbol)) != 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add(ElfSymbols *s, uint64_t start, uint64_t length, const char *name) {
        char text[NAME_SIZE];

        snprintf(text, sizeof(text), "%s@plt", name);
        return symbol_table_add(&s->table, start, length, text, strlen(text), SYMBOL_STRONG);
}

/* jmp *disp32(%rip): ff 25, behind endbr64 and bnd in some. False: it is none. */
static bool jump_target(const uint8_t *code, size_t n, uint64_t address, uint64_t *ret) {
        int32_t distance;

        for (size_t i = 0; i + 6 <= n; i++)
                if (code[i] == 0xff && code[i + 1] == 0x25) {
                        memcpy(&distance, code + i + 2, sizeof(distance));
                        *ret = address + i + 6 + (uint64_t)(int64_t)distance;
                        return true;
                }
        return false;
}

static int read_jumps(ElfSymbols *s, const ElfFile *f, const char *section_name, const Slots *slots) {
        Elf_Scn *section = elf_file_section(f, section_name, SHT_PROGBITS);
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL;
        GElf_Shdr header;
        size_t size;
        int r = 0;

        if (!bytes || !gelf_getshdr(section, &header))
                return 0;
        size = header.sh_entsize == 8 || header.sh_entsize == 16 ? header.sh_entsize : 16;
        for (size_t at = 0; at + size <= bytes->d_size && r == 0; at += size) {
                Slot wanted = { .address = 0 };
                const Slot *slot = NULL;

                if (slots->n > 0 && jump_target((uint8_t *)bytes->d_buf + at, size, header.sh_addr + at, &wanted.address))
                        slot = bsearch(&wanted, slots->list, slots->n, sizeof(Slot), compare);
                if (slot && slot->name)
                        r = add(s, header.sh_addr + at, size, slot->name);
        }
        return r;
}

static int read_in_order(ElfSymbols *s, const ElfFile *f, const Slots *slots, uint64_t before) {
        Elf_Scn *section = elf_file_section(f, ".plt", SHT_PROGBITS);
        GElf_Shdr header;
        int r = 0;

        if (!section || !gelf_getshdr(section, &header))
                return 0;
        for (size_t i = 0; i < slots->n && r == 0; i++)
                if (slots->list[i].name && before + (i + 1) * 16 <= header.sh_size)
                        r = add(s, header.sh_addr + before + i * 16, 16, slots->list[i].name);
        return r;
}

static int read_x86_64(ElfSymbols *s, const ElfFile *f, Slots *slots) {
        int r = read_relocations(f, ".rela.dyn", false, slots); /* nearly all of them only move with the program, and name nothing */

        if (r == 0 && slots->n > 0)
                qsort(slots->list, slots->n, sizeof(Slot), compare);
        if (r == 0)
                r = read_jumps(s, f, ".plt", slots);
        if (r == 0)
                r = read_jumps(s, f, ".plt.sec", slots);
        if (r == 0)
                r = read_jumps(s, f, ".plt.got", slots);
        return r;
}

int elf_symbols_read_plt(ElfSymbols *s, const ElfFile *f) {
        Slots slots = { .list = NULL };
        GElf_Ehdr header;
        int r;

        if (!gelf_getehdr(f->elf, &header))
                return 0;
        r = read_relocations(f, ".rela.plt", true, &slots);
        if (r == 0 && slots.n == 0)
                r = read_relocations(f, ".rel.plt", true, &slots);
        if (r == 0 && header.e_machine == EM_X86_64)
                r = read_x86_64(s, f, &slots);
        else if (r == 0 && (header.e_machine == EM_AARCH64 || header.e_machine == EM_386))
                r = read_in_order(s, f, &slots, header.e_machine == EM_AARCH64 ? 32 : 16);
        free(slots.list);
        return r;
}
