/*
 * Where the file of a mapping is. Its path may lead to another one by now, so each place is asked for what identifies the mapping: its build
 * id, or else its inode where the device is the same (overlayfs and btrfs show another one than the kernel records). A file that does not
 * fit is no file: an address has no name rather than a wrong one.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client/symbols/dwarf-lines.h"
#include "client/symbols/open-file.h"
#include "client/symbols/symbolizer.h"

#define DELETED " (deleted)"
#define PAGE 4096
#define VDSO_MAX 65536 /* bytes */

typedef struct Found {
        int fd;          /* -1: none */
        ElfFile file;
        char root[64];   /* of a process's own files; "": that of the options */
        bool is_other;   /* there was one, which does not fit */
} Found;

/* What is read of a file. */
typedef struct Loaded {
        ElfSymbols *symbols;
        LineIndex *lines;      /* NULL: none */
        const char *line_note;
} Loaded;

static bool has_same_id(const Dso *dso, const ElfFile *f) {
        return dso->id.n == f->id.n && memcmp(dso->id.bytes, f->id.bytes, f->id.n) == 0;
}

static bool fits(const perfd_symbolizer *s, const Dso *dso, int fd, const struct stat *status, const ElfFile *f) {
        int generation = 0;

        if (dso->has_mapped_id)
                return has_same_id(dso, f);
        if (s->is_remote && !s->root) /* a path, and numbers of another host's inodes, are no proof */
                return false;
        if (dso->ino == 0 || status->st_dev != makedev(dso->maj, dso->min))
                return true;
        if (status->st_ino != dso->ino)
                return false;
        return dso->ino_generation == 0 || ioctl(fd, FS_IOC_GETVERSION, &generation) != 0 || (uint32_t)generation == (uint32_t)dso->ino_generation;
}

static bool try_path(const perfd_symbolizer *s, const Dso *dso, const char *root, const char *path, Found *found) {
        struct stat status;
        int fd = open_file(root, path, &status);

        if (fd < 0)
                return false;
        if ((elf_file_open(&found->file, fd, s->memory_max) || (dso->module && elf_file_open_packed(&found->file, fd, s->memory_max))) &&
            fits(s, dso, fd, &status, &found->file)) {
                found->fd = fd;
                return true;
        }
        found->is_other = true;
        elf_file_close(&found->file);
        close(fd);
        return false;
}

/* While the process lives, the very file that it maps is there, under whatever name or none. */
static bool try_process(const perfd_symbolizer *s, const Dso *dso, const char *path, Found *found) {
        char text[128];

        snprintf(found->root, sizeof(found->root), "/proc/%u/root", dso->pid);
        if (try_path(s, dso, found->root, path, found))
                return true;
        if (!dso->has_mapped_id && dso->ino == 0) { /* the next two are no more than a pid, which may be another's by now */
                found->root[0] = '\0';
                return false;
        }
        snprintf(text, sizeof(text), "/proc/%u/map_files/%llx-%llx", dso->pid, (unsigned long long)dso->start, (unsigned long long)dso->end);
        if (try_path(s, dso, NULL, text, found))
                return true;
        snprintf(text, sizeof(text), "/proc/%u/exe", dso->pid);
        if (try_path(s, dso, NULL, text, found))
                return true;
        found->root[0] = '\0';
        return false;
}

static bool find_program(const perfd_symbolizer *s, const Dso *dso, const char *path, Found *found) {
        if (dso->id.n > 0 && debug_file_by_id(s, &dso->id, false, &found->fd, &found->file))
                return true;
        if (!s->is_remote && try_process(s, dso, path, found))
                return true;
        return try_path(s, dso, s->root, path, found) ||
               (dso->id.n > 0 && debug_file_of_server(s, &dso->id, false, &found->fd, &found->file));
}

/* objcopy --only-keep-debug leaves no offsets of what it took out: with one executable segment it is the mapping that says where it was. */
static void mend_segments(ElfSymbols *symbols, const Dso *dso) {
        Segment *only = NULL;

        for (size_t i = 0; i < symbols->n_segments; i++)
                if (symbols->segments[i].is_executable) {
                        if (only)
                                return;
                        only = symbols->segments + i;
                }
        if (!only || only->file_size > 0)
                return;
        for (size_t i = 0; i < symbols->n_segments; i++)
                if (symbols->segments + i != only)
                        symbols->segments[i].file_size = 0;
        only->offset = dso->offset + only->address % PAGE;
        only->file_size = only->memory_size;
}

/* What was taken out of it: what is here first. */
static bool find_apart(const perfd_symbolizer *s, const char *path, const char *root, const ElfFile *of, int *ret_fd, ElfFile *ret) {
        return debug_file_by_id(s, &of->id, true, ret_fd, ret) || debug_file_by_link(s, root, path, of, ret_fd, ret) ||
               debug_file_of_server(s, &of->id, true, ret_fd, ret);
}

/* They may have been taken out of a file that still has its symbols. */
static int read_lines(perfd_symbolizer *s, const char *path, const char *root, Found *found, ElfFile *apart, int *fd, Loaded *to) {
        const ElfFile *in = dwarf_lines_are_in(&found->file) ? &found->file : apart;

        if (!s->has_lines)
                return 0;
        if (!in->elf && !find_apart(s, path, root, &found->file, fd, apart))
                in = &found->file;
        return lines_read(s, to->symbols, root, in, &to->lines, &to->line_note);
}

/* Of the program itself, and what was taken out of it. */
static int read_program(perfd_symbolizer *s, const char *path, Found *found, Loaded *to) {
        ElfSymbols *symbols = to->symbols;
        const char *root = found->root[0] ? found->root : s->root;
        ElfFile apart = ELF_FILE_NULL;
        int fd = -1, r = 0;

        elf_symbols_read_segments(symbols, &found->file);
        if (found->file.has_symbols)
                r = elf_symbols_read(symbols, &found->file, SHT_SYMTAB);
        else if (find_apart(s, path, root, &found->file, &fd, &apart))
                r = elf_symbols_read(symbols, &apart, SHT_SYMTAB);
        else {
                r = elf_symbols_read(symbols, &found->file, SHT_DYNSYM);
                if (r == 0 && elf_file_open_mini(&found->file, &apart))
                        r = elf_symbols_read(symbols, &apart, SHT_SYMTAB);
        }
        if (r == 0)
                r = read_lines(s, path, root, found, &apart, &fd, to);
        elf_file_close(&apart);
        if (fd >= 0)
                close(fd);
        return r == 0 ? elf_symbols_read_plt(symbols, &found->file) : r;
}

static bool read_alone(perfd_symbolizer *s, Dso *dso, Loaded *to, int *ret) {
        ElfSymbols *symbols = to->symbols;
        ElfFile apart = ELF_FILE_NULL;
        int fd = -1;

        if (!debug_file_by_id(s, &dso->id, true, &fd, &apart) && !debug_file_of_server(s, &dso->id, true, &fd, &apart))
                return false;
        elf_symbols_read_segments(symbols, &apart);
        mend_segments(symbols, dso);
        *ret = elf_symbols_read(symbols, &apart, SHT_SYMTAB);
        if (*ret == 0 && s->has_lines)
                *ret = lines_read(s, symbols, s->root, &apart, &to->lines, &to->line_note);
        elf_file_close(&apart);
        close(fd);
        return true;
}

static void copy_path(const Dso *dso, char to[PATH_LENGTH_MAX + 1]) {
        memcpy(to, dso->path, dso->n_path + 1);
        if (dso->n_path > strlen(DELETED) && strcmp(to + dso->n_path - strlen(DELETED), DELETED) == 0)
                to[dso->n_path - strlen(DELETED)] = '\0';
}

static int read_file_symbols(perfd_symbolizer *s, Dso *dso, Loaded *to) {
        Found found = { .fd = -1, .file = ELF_FILE_NULL };
        char path[PATH_LENGTH_MAX + 1];
        int r = 0;

        copy_path(dso, path);
        if (find_program(s, dso, path, &found)) {
                if (dso->id.n == 0)
                        dso->id = found.file.id;
                r = read_program(s, path, &found, to);
                elf_file_close(&found.file);
                close(found.fd);
        } else if (!read_alone(s, dso, to, &r))
                dso->note = found.is_other ? "the file at its path is not the one that was mapped" : "its file is not there, or cannot be read";
        return r;
}

/* Ours is that of all processes of this kernel with words of as many bits. */
static bool open_vdso(const perfd_symbolizer *s, const Dso *dso, ElfFile *f) {
        const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
        const size_t n = header ? header->e_shoff + (size_t)header->e_shnum * header->e_shentsize : 0;
        char *copy = n > 0 && n <= VDSO_MAX ? malloc(n) : NULL;

        if (copy)
                memcpy(copy, header, n);
        if (!elf_file_open_bytes(f, copy, n, n))
                return false;
        if (dso->has_mapped_id ? has_same_id(dso, f) : !s->is_remote)
                return true;
        elf_file_close(f);
        return false;
}

static int read_vdso(const perfd_symbolizer *s, Dso *dso, ElfSymbols *symbols) {
        ElfFile f = ELF_FILE_NULL;
        int r = 0;

        if (open_vdso(s, dso, &f)) {
                dso->id = f.id;
                elf_symbols_read_segments(symbols, &f);
                r = elf_symbols_read(symbols, &f, f.has_symbols ? SHT_SYMTAB : SHT_DYNSYM);
        } else
                dso->note = "the vdso of this kernel is another one";
        elf_file_close(&f);
        return r;
}

/* No path is a proof: without a build id it may be the module of another kernel. */
static int read_module(const perfd_symbolizer *s, Dso *dso, Loaded *to) {
        Found found = { .fd = -1, .file = ELF_FILE_NULL };
        int r;

        to->line_note = s->has_lines ? "lines are known of files of processes only" : "";
        if (!dso->has_mapped_id) {
                dso->note = "the build id of the module is not known";
                return 0;
        }
        if (!debug_file_by_id(s, &dso->id, false, &found.fd, &found.file) && !try_path(s, dso, s->root, dso->module, &found) &&
            !debug_file_of_server(s, &dso->id, false, &found.fd, &found.file)) {
                dso->note = found.is_other ? "the file of the module is another one now, or none that can be read" : "the file of the module is not there";
                return 0;
        }
        elf_symbols_read_segments(to->symbols, &found.file);
        r = elf_symbols_read(to->symbols, &found.file, SHT_SYMTAB);
        elf_file_close(&found.file);
        close(found.fd);
        return r;
}

bool dso_open(perfd_symbolizer *s, Dso *dso, int *ret_fd, ElfFile *ret) {
        Found found = { .fd = -1, .file = ELF_FILE_NULL };
        char path[PATH_LENGTH_MAX + 1];

        *ret_fd = -1;
        if (dso->kind == DSO_VDSO)
                return open_vdso(s, dso, ret);
        copy_path(dso, path);
        if (!find_program(s, dso, path, &found))
                return false;
        *ret_fd = found.fd;
        *ret = found.file;
        return true;
}

bool dso_open_apart(const perfd_symbolizer *s, const Dso *dso, const ElfFile *of, int *ret_fd, ElfFile *ret) {
        char path[PATH_LENGTH_MAX + 1], root[64];

        if (debug_file_by_id(s, &of->id, true, ret_fd, ret))
                return true;
        if (dso->kind != DSO_FILE)
                return false;
        copy_path(dso, path);
        (void)snprintf(root, sizeof(root), "/proc/%u/root", dso->pid); /* whose it is: the CRC and the build id say whether it fits */
        return (!s->is_remote && debug_file_by_link(s, root, path, of, ret_fd, ret)) || debug_file_by_link(s, s->root, path, of, ret_fd, ret);
}

int dso_load(perfd_symbolizer *s, Dso *dso) {
        Loaded to = { .line_note = "" };
        ElfSymbols *symbols;
        int r;

        if (dso->is_loaded || (dso->kind != DSO_FILE && dso->kind != DSO_VDSO && !dso->module))
                return 0;
        to.symbols = symbols = calloc(1, sizeof(ElfSymbols));
        if (!symbols)
                return -ENOMEM;
        dso->note = "";
        s->counts.loads++;
        symbol_table_init(&symbols->table, s->memory_max / 2, s->has_parameters);
        r = dso->kind == DSO_VDSO ? read_vdso(s, dso, symbols) : dso->module ? read_module(s, dso, &to) : read_file_symbols(s, dso, &to);
        if (r == 0)
                r = symbol_table_finish(&symbols->table, false);
        if (r != 0 || symbols->table.n == 0) {
                if (r == 0 && !dso->note[0])
                        dso->note = symbols->table.is_full ? "its symbols need more than memory_max" : "its file has no symbols";
                dso->is_loaded = r == 0;
                lines_free(to.lines);
                symbol_table_deinit(&symbols->table);
                free(symbols);
                return r;
        }
        dso->is_loaded = true;
        dso->line_note = to.line_note;
        dsos_make_room(s, symbols->table.bytes + lines_bytes(to.lines), NULL);
        dso_set_symbols(s, dso, symbols, to.lines);
        return 0;
}
