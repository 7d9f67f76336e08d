/*
 * libdw allocates what the sections of debug information have, uncompressed, and follows what they say. So their sizes are added up before
 * it sees the file; the walk goes over each entry once, forwards, whatever siblings a hostile file names; and other files (split DWARF) are
 * looked at first, as libdw would wait for one who writes into a FIFO.
 */
#include "client/symbols/dwarf-lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 256 /* of entries within entries */

typedef struct Walk {
        LineIndex *index;
        const ElfSymbols *symbols;
        const ElfFile *file;
        Dwarf_Die unit;
        Dwarf_Files *files;
        size_t n_files;
        const char *last_file; /* of libdw, and its number in the index */
        uint32_t last_number;
        const char *note;
} Walk;

static bool is_executable(const ElfSymbols *s, uint64_t address) {
        for (size_t i = 0; i < s->n_segments; i++)
                if (s->segments[i].is_executable && address >= s->segments[i].address &&
                    address - s->segments[i].address < s->segments[i].memory_size)
                        return true;
        return false;
}

bool dwarf_lines_are_in(const ElfFile *f) {
        static const char *const names[] = { ".debug_line", ".zdebug_line" };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                Elf_Scn *section = elf_file_section(f, names[i], SHT_NULL);
                GElf_Shdr header;

                if (section && gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS && header.sh_size > 0)
                        return true;
        }
        return false;
}

bool dwarf_lines_other(const ElfFile *f, char *ret_path, size_t room, BuildId *ret_id) {
        Elf_Scn *section = elf_file_section(f, ".gnu_debugaltlink", SHT_NULL);
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL;
        const size_t n = bytes ? strnlen(bytes->d_buf, bytes->d_size) : 0;

        if (n == 0 || n >= room || n + 1 >= bytes->d_size || bytes->d_size - n - 1 > BUILD_ID_MAX)
                return false;
        memcpy(ret_path, bytes->d_buf, n + 1);
        ret_id->n = bytes->d_size - n - 1;
        memcpy(ret_id->bytes, (char *)bytes->d_buf + n + 1, ret_id->n);
        return true;
}

/* What libdw allocates for it. False: more than the limit. */
static bool is_within_limit(const ElfFile *f) {
        Elf_Scn *section = NULL;
        uint64_t sum = 0;

        while ((section = elf_nextscn(f->elf, section))) {
                GElf_Shdr header;
                GElf_Chdr compressed;
                size_t names;
                const char *name;

                if (!gelf_getshdr(section, &header) || elf_getshdrstrndx(f->elf, &names) != 0)
                        return false;
                name = elf_strptr(f->elf, names, header.sh_name);
                if (!name || header.sh_type == SHT_NOBITS || (strncmp(name, ".debug_", 7) != 0 && strncmp(name, ".zdebug_", 8) != 0))
                        continue;
                if (name[1] == 'z') /* of old linkers: its size is not in a header */
                        return false;
                if (header.sh_size > f->limit || sum > f->limit)
                        return false;
                sum += header.sh_size;
                if ((header.sh_flags & SHF_COMPRESSED) == 0)
                        continue;
                if (!gelf_getchdr(section, &compressed) || compressed.ch_size > f->limit)
                        return false;
                sum += compressed.ch_size;
        }
        return sum <= f->limit;
}

static int number_of_file(Walk *w, const char *file, uint32_t *ret) {
        if (file != w->last_file) {
                const int r = line_index_add_text(w->index, file, &w->last_number);

                if (r != 0)
                        return r;
                w->last_file = file;
        }
        *ret = w->last_number;
        return 0;
}

/* Code that the linker left out has its lines at address 0. */
static int read_rows(Walk *w) {
        Dwarf_Lines *lines;
        size_t n;
        int r = 0;

        if (dwarf_getsrclines(&w->unit, &lines, &n) != 0)
                return 0;
        for (size_t i = 0; r == 0 && i < n && !w->index->is_full; i++) {
                Dwarf_Line *line = dwarf_onesrcline(lines, i);
                Dwarf_Addr address;
                uint32_t file = 0;
                bool is_end;
                int number = 0;

                if (!line || dwarf_lineaddr(line, &address) != 0 || dwarf_lineendsequence(line, &is_end) != 0)
                        continue;
                if (!is_executable(w->symbols, is_end && address > 0 ? address - 1 : address))
                        continue;
                if (!is_end && dwarf_lineno(line, &number) == 0)
                        r = number_of_file(w, dwarf_linesrc(line, NULL, NULL), &file);
                if (r == 0)
                        r = line_index_add_row(w->index, address, file, number > 0 ? (uint32_t)number : 0);
        }
        return r;
}

/* The name that a linker knows, which tells those of the same name apart. */
static const char *name_of(Dwarf_Die *die) {
        static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                Dwarf_Attribute attribute;
                const char *name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));

                if (name)
                        return name;
        }
        return NULL;
}

static uint32_t number_in(Dwarf_Die *die, unsigned name) {
        Dwarf_Attribute attribute;
        Dwarf_Word value;

        return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* A scope for an entry that has code. 0 in ret: it has none. */
static int read_scope(Walk *w, Dwarf_Die *die, uint32_t parent, uint32_t *ret) {
        InlineScope scope = { .parent = parent };
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;
        uint32_t file;
        int r = 0;

        *ret = 0;
        while (r == 0 && !w->index->is_full && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
                if (start >= end || !is_executable(w->symbols, start))
                        continue;
                if (*ret == 0) {
                        r = line_index_add_text(w->index, name_of(die), &scope.name);
                        file = number_in(die, DW_AT_call_file);
                        if (r == 0 && parent != 0 && w->files && file < w->n_files)
                                r = line_index_add_text(w->index, dwarf_filesrc(w->files, file, NULL, NULL), &scope.call_file);
                        scope.call_line = parent != 0 ? number_in(die, DW_AT_call_line) : 0;
                        if (r == 0)
                                r = line_index_add_scope(w->index, &scope, ret);
                }
                if (r == 0)
                        r = line_index_add_range(w->index, start, end, *ret);
        }
        return r;
}

/* Entries come in the order of the file: one that is not behind the last one is no entry. */
static int read_scopes(Walk *w) {
        struct {
                Dwarf_Die die;
                uint32_t scope;
        } stack[DEPTH_MAX] = { { .die = w->unit } };
        Dwarf_Off last = dwarf_dieoffset(&w->unit);
        size_t depth = 0;
        int r = 0;

        for (;;) {
                Dwarf_Die next;
                uint32_t scope = 0;
                bool is_child = depth + 1 < DEPTH_MAX && dwarf_child(&stack[depth].die, &next) == 0;

                while (!is_child && depth > 0 && dwarf_siblingof(&stack[depth].die, &next) != 0)
                        depth--;
                if ((!is_child && depth == 0) || dwarf_dieoffset(&next) <= last || w->index->is_full)
                        return r;
                last = dwarf_dieoffset(&next);
                depth += is_child ? 1 : 0;
                scope = stack[depth - 1].scope;
                if (dwarf_tag(&next) == DW_TAG_subprogram)
                        r = read_scope(w, &next, 0, &scope);
                else if (dwarf_tag(&next) == DW_TAG_inlined_subroutine && scope != 0)
                        r = read_scope(w, &next, scope, &scope);
                if (r != 0)
                        return r;
                stack[depth].die = next;
                stack[depth].scope = scope;
        }
}

/* The folder of a file, which libdw looks into before that of the compiler. */
static bool folder_of(const ElfFile *f, char *ret, size_t room) {
        char link[64];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", f->fd);
        n = f->bytes ? -1 : readlink(link, ret, room - 1);
        if (n <= 0)
                return false;
        ret[n] = '\0';
        *(strrchr(ret, '/') ? strrchr(ret, '/') : ret) = '\0';
        return true;
}

/* 1: a regular file is there; 0: nothing is; -1: what libdw must not open */
static int look_at(const char *folder, const char *name) {
        char path[2 * PATH_MAX];
        struct stat status;

        if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
                return -1;
        return stat(path, &status) != 0 ? 0 : S_ISREG(status.st_mode) ? 1 : -1;
}

/* Where libdw looks for the rest of a unit that was split: no file of another kind may be there. */
static bool is_safe_split(const ElfFile *f, Dwarf_Die *skeleton) {
        Dwarf_Attribute attribute;
        const char *name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_dwo_name, &attribute)), *folder;
        char beside[PATH_MAX];
        int near, there;

        if (!name)
                name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attribute));
        folder = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attribute));
        if (!name)
                return false;
        if (name[0] == '/')
                return look_at("", name) == 1;
        if (!folder_of(f, beside, sizeof(beside)) || (folder && folder[0] != '/'))
                return false;
        near = look_at(beside, name);
        there = folder ? look_at(folder, name) : 0;
        return near >= 0 && there >= 0 && near + there > 0;
}

static int read_unit(Walk *w, Dwarf_Die *unit, uint8_t type, Dwarf_Die *split) {
        int r;

        w->unit = *unit;
        w->files = NULL;
        w->last_file = NULL;
        r = read_rows(w);
        if (r != 0)
                return r;
        if (type == DW_UT_skeleton) {
                if (!split) {
                        w->note = "the files that its debug information was split into are not there";
                        return 0;
                }
                w->unit = *split;
        }
        if (dwarf_getsrcfiles(&w->unit, &w->files, &w->n_files) != 0)
                w->files = NULL;
        return read_scopes(w);
}

static int read_units(Walk *w, Dwarf *dwarf) {
        Dwarf_CU *unit = NULL;
        Dwarf_Off last = 0;
        int r = 0;

        while (r == 0 && !w->index->is_full) {
                Dwarf_Half version;
                uint8_t type;
                Dwarf_Die die, split = { .addr = NULL };
                bool is_split;

                if (dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, NULL) != 0 || (dwarf_dieoffset(&die) <= last && last > 0))
                        break;
                last = dwarf_dieoffset(&die);
                if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_partial)
                        continue;
                is_split = type == DW_UT_skeleton && is_safe_split(w->file, &die) && dwarf_cu_info(unit, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 &&
                           split.addr;
                r = read_unit(w, &die, type, is_split ? &split : NULL);
        }
        return r;
}

int dwarf_lines_read(LineIndex *x, const ElfSymbols *symbols, const ElfFile *f, const ElfFile *other, const char **ret_note) {
        Walk w = { .index = x, .symbols = symbols, .file = f, .note = "" };
        Dwarf *dwarf = NULL, *shared = NULL;
        int r = 0;

        if (!is_within_limit(f) || (other && !is_within_limit(other))) {
                *ret_note = "its debug information needs more than memory_max";
                return 0;
        }
        dwarf = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
        shared = dwarf && other ? dwarf_begin_elf(other->elf, DWARF_C_READ, NULL) : NULL;
        if (!dwarf)
                w.note = "its debug information is damaged";
        else if (elf_file_section(f, ".gnu_debugaltlink", SHT_NULL) && !shared)
                w.note = "the file of dwz that its debug information shares with others is not there";
        else {
                if (shared)
                        dwarf_setalt(dwarf, shared);
                r = read_units(&w, dwarf);
        }
        dwarf_end(dwarf);
        dwarf_end(shared);
        if (r == 0)
                r = line_index_finish(x);
        if (x->is_full)
                w.note = "its source lines need more than memory_max";
        *ret_note = w.note;
        return r;
}
