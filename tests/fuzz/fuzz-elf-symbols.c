/*
 * Bytes as an ELF file, by libelf within our limits: its symbols, its procedure linkage table and what xz made of others. Each piece of the
 * table is found with its name, and memory stays within the limit. And its source lines, by libdw. Or bytes as a compressed file, which is
 * unpacked first.
 */
#include <stdlib.h>
#include <string.h>

#include "client/symbols/dwarf-lines.h"
#include "client/symbols/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define LIMIT ((size_t)4 << 20)
#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

static void check(ElfSymbols *s) {
        uint64_t address;

        MUST(symbol_table_finish(&s->table, false) == 0);
        for (size_t i = 0; i < s->table.n; i++) {
                Symbol *symbol = s->table.symbols + i;

                MUST(symbol_table_find(&s->table, symbol->start) == symbol);
                MUST(symbol_table_name(&s->table, symbol).bytes);
        }
        for (uint64_t offset = 0; offset < 65536; offset += 512)
                elf_symbols_address(s, offset, &address);
}

static void check_lines(const ElfSymbols *s, const ElfFile *f) {
        const char *note = NULL;
        LineIndex x;

        line_index_init(&x, LIMIT, true);
        MUST(dwarf_lines_read(&x, s, f, NULL, &note) == 0 && note);
        MUST(x.bytes + x.kept.bytes <= 2 * LIMIT);
        for (size_t i = 0; i < x.n_rows; i++)
                MUST(x.rows[i].file == 0 || line_index_find_row(&x, x.rows[i].start) == x.rows + i);
        for (size_t i = 0; i < x.n_ranges; i++)
                MUST(line_index_find_scope(&x, x.ranges[i].start) == x.ranges[i].scope);
        line_index_deinit(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        ElfSymbols *s = calloc(1, sizeof(ElfSymbols));
        size_t n = length;
        char *copy = unpack(bytes, length, LIMIT, &n);
        ElfFile f = ELF_FILE_NULL, mini = ELF_FILE_NULL;

        MUST(n <= 2 * LIMIT || !copy);
        if (!copy) {
                copy = malloc(length + 1);
                MUST(copy);
                memcpy(copy, bytes, length);
                n = length;
        }
        MUST(s);
        symbol_table_init(&s->table, LIMIT, true);
        if (elf_file_open_bytes(&f, copy, n, LIMIT)) {
                elf_symbols_read_segments(s, &f);
                MUST(elf_symbols_read(s, &f, SHT_SYMTAB) == 0);
                MUST(elf_symbols_read(s, &f, SHT_DYNSYM) == 0);
                MUST(elf_symbols_read_plt(s, &f) == 0);
                if (elf_file_open_mini(&f, &mini))
                        MUST(elf_symbols_read(s, &mini, SHT_SYMTAB) == 0);
                elf_file_close(&mini);
                check(s);
                check_lines(s, &f);
                elf_file_close(&f);
        }
        symbol_table_deinit(&s->table);
        free(s);
        return 0;
}
