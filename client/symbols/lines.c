/* Which debug information belongs to a file, and the line that it says of an address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/symbols/debuginfod.h"
#include "client/symbols/dwarf-lines.h"
#include "client/symbols/open-file.h"
#include "client/symbols/symbolizer.h"

#define NO_LINES "its file has no source lines: it was built without -g, or its debug file is not there"

/* dwz(1) writes a file without segments: its build id is in a section alone, behind the header of a note and "GNU". */
static bool has_id(const ElfFile *f, const BuildId *id) {
        Elf_Scn *section = elf_file_section(f, ".note.gnu.build-id", SHT_NULL);
        Elf_Data *bytes = section ? elf_file_section_bytes(f, section) : NULL;

        return bytes && bytes->d_size == 16 + id->n && memcmp((char *)bytes->d_buf + 16, id->bytes, id->n) == 0;
}

/* What dwz(1) took out of several files. False: it is not there. */
static bool open_other(const perfd_symbolizer *s, const char *root, const ElfFile *f, int *ret_fd, ElfFile *ret) {
        char path[PATH_LENGTH_MAX + 1];
        char *cached = NULL;
        BuildId id;
        int fd;

        if (!dwarf_lines_other(f, path, sizeof(path), &id))
                return false;
        fd = path[0] == '/' ? open_file(root, path, NULL) : -1;
        if (fd < 0)
                fd = debuginfod_get(s->debuginfod, &id, true, &cached);
        if (fd < 0)
                return false;
        if (elf_file_open(ret, fd, s->memory_max) && has_id(ret, &id)) {
                free(cached);
                *ret_fd = fd;
                return true;
        }
        if (cached)
                debuginfod_refuse(s->debuginfod, &id, cached);
        free(cached);
        elf_file_close(ret);
        close(fd);
        return false;
}

int lines_read(perfd_symbolizer *s, const ElfSymbols *symbols, const char *root, const ElfFile *f, LineIndex **ret, const char **ret_note) {
        ElfFile other = ELF_FILE_NULL;
        int fd = -1, r;
        bool has_other;

        *ret_note = NO_LINES;
        if (!dwarf_lines_are_in(f))
                return 0;
        *ret = calloc(1, sizeof(LineIndex));
        if (!*ret)
                return -ENOMEM;
        line_index_init(*ret, s->memory_max / 2, s->has_parameters);
        has_other = open_other(s, root, f, &fd, &other);
        r = dwarf_lines_read(*ret, symbols, f, has_other ? &other : NULL, ret_note);
        elf_file_close(&other);
        if (fd >= 0)
                close(fd);
        if (r != 0 || (*ret)->n_rows == 0) {
                lines_free(*ret);
                *ret = NULL;
        }
        return r;
}

void lines_free(LineIndex *lines) {
        if (!lines)
                return;
        line_index_deinit(lines);
        free(lines);
}

size_t lines_bytes(const LineIndex *lines) {
        return lines ? sizeof(LineIndex) + lines->bytes + lines->kept.bytes : 0;
}

void lines_set(const Dso *dso, uint64_t address, perfd_frame *frame) {
        const LineRow *row = dso->lines ? line_index_find_row(dso->lines, address) : NULL;

        frame->line_note = dso->lines && !row && !dso->line_note[0] ? "no line is there" : row ? "" : dso->line_note;
        if (!row)
                return;
        frame->file = line_index_text(dso->lines, row->file);
        frame->line = row->line;
}
