/* For this folder alone: the source lines and inlined functions of an ELF file, by libdw in one walk over its units. */
#pragma once

#include "client/symbols/elf-symbols.h"
#include "client/symbols/line-index.h"

/* .debug_info, or .debug_line alone. */
bool dwarf_lines_are_in(const ElfFile *f);
/*
 * Of code within the executable segments of `symbols`. `other`: the file that dwz(1) has put in it what several share, or NULL. note: why
 * there are none, or not all, or "". 0; -ENOMEM
 */
int dwarf_lines_read(LineIndex *x, const ElfSymbols *symbols, const ElfFile *f, const ElfFile *other, const char **ret_note);
/* What .gnu_debugaltlink names: a path, and the build id of what is there. False: it has none */
bool dwarf_lines_other(const ElfFile *f, char *ret_path, size_t room, BuildId *ret_id);
