/*
 * The kernel that runs lists its functions and those of its modules itself. A recording of an earlier boot has the kernel elsewhere
 * (KASLR): its mapping says where _text was then, and the build id whether it is the same kernel at all. Modules do not move alike: those of
 * an earlier boot, and those that are not what was there when it was recorded, are named by their files, if these are of the same build id.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/symbols/open-file.h"
#include "client/symbols/symbolizer.h"

#define KALLSYMS_MAX ((size_t)256 << 20) /* bytes */
#define TABLE_MAX ((size_t)128 << 20)
#define MODULES_MAX 4096
#define PIECE_SIZE ((size_t)65536)      /* bytes: no line has as many */
#define NOTES_MAX ((size_t)65536)
#define KERNEL_DSO "[kernel.kallsyms]"

typedef struct Module {
        const char *name; /* "[ext4]" */
        uint64_t start, end;
} Module;

typedef struct Modules {
        Module list[MODULES_MAX];
        size_t n;
} Modules;

/* Lines of one follow each other, but need not be sorted. */
static int note_module(Kernel *k, Modules *modules, const char *name, uint64_t address) {
        Module *last = modules->n > 0 ? modules->list + modules->n - 1 : NULL;

        if (!last || strcmp(last->name, name) != 0) {
                if (modules->n == MODULES_MAX)
                        return 0;
                name = symbol_table_keep(&k->modules, name, strlen(name));
                if (!name)
                        return -ENOMEM;
                last = modules->list + modules->n++;
                *last = (Module){ .name = name, .start = address, .end = address };
        }
        last->start = address < last->start ? address : last->start;
        last->end = address > last->end ? address : last->end;
        return 0;
}

/* Hexadecimal digits, without a prefix. Behind them; `at` itself: there is none. */
static char *take_address(char *at, uint64_t *ret) {
        *ret = 0;
        for (;; at++) {
                const unsigned char c = (unsigned char)*at, letter = c | 0x20;

                if (c >= '0' && c <= '9')
                        *ret = *ret << 4 | (unsigned)(c - '0');
                else if (letter >= 'a' && letter <= 'f')
                        *ret = *ret << 4 | (unsigned)(letter - 'a' + 10);
                else
                        return at;
        }
}

/* "ffffffff81000000 T _stext", and behind a tab "[module]". Only what is text. end: where its 0 is. */
static int parse_line(Kernel *k, char *line, char *end, Modules *modules) {
        uint64_t address;
        char *rest = take_address(line, &address), *name, *module;

        if (rest == line || rest[0] != ' ' || !rest[1] || !strchr("tTwW", rest[1]) || rest[2] != ' ' || address == 0)
                return 0;
        name = rest + 3;
        module = memchr(name, '\t', (size_t)(end - name));
        kernel_range_add(&k->range, address, !module);
        if (module) {
                end = module;
                *module++ = '\0';
                if (strcmp(module, "[bpf]") != 0 && note_module(k, modules, module, address) != 0)
                        return -ENOMEM;
        } else if (strcmp(name, "_text") == 0)
                k->text = address;
        return symbol_table_add(&k->table, address, 0, name, (size_t)(end - name), (uint32_t)k->table.n); /* of several the last */
}

/* All that is whole, behind which there is room for a 0; of the last piece the rest, too. What is left moves to the front. 0; -ENOMEM */
static int parse_lines(Kernel *k, char *text, size_t *n, bool is_last, Modules *modules) {
        char *line = text, *const all = text + *n;
        int r = 0;

        while (r == 0 && line < all) {
                char *end = memchr(line, '\n', (size_t)(all - line));

                if (!end && !is_last && (line > text || *n < PIECE_SIZE))
                        break;
                end = end ? end : all;
                *end = '\0';
                r = parse_line(k, line, end, modules);
                line = end + 1;
        }
        *n = line < all ? (size_t)(all - line) : 0;
        memmove(text, line, *n);
        return r;
}

/* 0; -ENOMEM; 1: it cannot be read */
static int read_lines(Kernel *k, int fd, Modules *modules) {
        char text[PIECE_SIZE + 1];
        size_t n = 0, n_all = 0;
        int r = 0;

        while (r == 0) {
                const ssize_t got = read(fd, text + n, PIECE_SIZE - n);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0 || (n_all += (size_t)got) > KALLSYMS_MAX)
                        return 1;
                n += (size_t)got;
                r = parse_lines(k, text, &n, got == 0, modules);
                if (got == 0)
                        break;
        }
        return r;
}

/* Piece by piece: of ten million bytes the pages would cost as much as finding the names in them. 0; -ENOMEM; 1: it cannot be read */
static int kernel_read(Kernel *k, int fd) {
        Modules *modules = calloc(1, sizeof(Modules));
        int r = modules ? 0 : -ENOMEM;

        symbol_table_init(&k->table, TABLE_MAX, false);
        symbol_table_init(&k->modules, TABLE_MAX, false);
        if (r == 0)
                r = read_lines(k, fd, modules);
        for (size_t i = 0; r == 0 && i < modules->n; i++)
                r = symbol_table_add(&k->modules, modules->list[i].start, modules->list[i].end - modules->list[i].start + 4096, modules->list[i].name,
                                     strlen(modules->list[i].name), SYMBOL_STRONG);
        if (r == 0)
                r = symbol_table_finish(&k->table, true);
        if (r == 0)
                r = symbol_table_finish(&k->modules, false);
        free(modules);
        return r;
}

void kernel_deinit(Kernel *k) {
        symbol_table_deinit(&k->table);
        symbol_table_deinit(&k->modules);
        kernel_cache_close(&k->cache);
        while (k->module_ids) {
                KnownId *next = k->module_ids->next;

                free(k->module_ids);
                k->module_ids = next;
        }
}

/* Of notes as the kernel shows them, its own and those of modules. */
static BuildId id_in_notes(const char *path) {
        BuildId id = { .n = 0 };
        int fd = open_file(NULL, path, NULL);
        size_t n = 0, at = 0;
        char *bytes = fd >= 0 ? read_file(fd, NOTES_MAX, &n) : NULL;

        while (bytes && n - at >= sizeof(Elf64_Nhdr)) {
                Elf64_Nhdr note;
                size_t name, text;

                memcpy(&note, bytes + at, sizeof(note));
                name = at + sizeof(note);
                text = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
                if (note.n_namesz > n || note.n_descsz > n || text + note.n_descsz > n)
                        break;
                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(bytes + name, "GNU", 4) == 0 && note.n_descsz <= BUILD_ID_MAX) {
                        id.n = note.n_descsz;
                        memcpy(id.bytes, bytes + text, id.n);
                        break;
                }
                at = text + (((size_t)note.n_descsz + 3) & ~(size_t)3);
                if (at > n)
                        break;
        }
        if (fd >= 0)
                close(fd);
        free(bytes);
        return id;
}

/* That of "[ext4]", which is loaded now. 0; -ENOMEM */
static int find_module_id(Kernel *k, perfd_text name, const BuildId **ret) {
        char path[128];
        KnownId *known = k->module_ids;

        while (known && (known->n_path != name.length || memcmp(known->path, name.bytes, name.length) != 0))
                known = known->next;
        if (!known) {
                known = calloc(1, sizeof(*known) + name.length + 1);
                if (!known)
                        return -ENOMEM;
                known->next = k->module_ids;
                known->n_path = name.length;
                memcpy(known->path, name.bytes, name.length);
                if (k->modules_folder && name.length > 2 && !memchr(name.bytes, '/', name.length) &&
                    snprintf(path, sizeof(path), "%s/%.*s/notes/.note.gnu.build-id", k->modules_folder, (int)name.length - 2, name.bytes + 1) < (int)sizeof(path))
                        known->id = id_in_notes(path);
                k->module_ids = known;
        }
        *ret = &known->id;
        return 0;
}

/* Reads the whole list. 0; -ENOMEM */
static int load_list(perfd_symbolizer *s, Kernel *k) {
        int fd = open_file(NULL, s->kallsyms, NULL), r;

        k->has_list = true;
        k->note = "the list of the kernel's symbols cannot be read";
        if (fd < 0)
                return 0;
        r = kernel_read(k, fd);
        close(fd);
        s->counts.loads++;
        if (r == 0)
                k->note = k->table.n > 0 ? "" : "the kernel's list of symbols shows no addresses: kernel.kptr_restrict, or no privilege";
        else
                kernel_deinit(k);
        return r < 0 ? r : 0;
}

static int load(perfd_symbolizer *s, Kernel *k) {
        const bool is_running = s->kallsyms && strcmp(s->kallsyms, "/proc/kallsyms") == 0;
        const BuildId id = id_in_notes("/sys/kernel/notes");
        bool has_cache;
        int r;

        k->is_loaded = true;
        if (!k->modules_folder && is_running)
                k->modules_folder = "/sys/module";
        k->note = "there is no list of that kernel's symbols";
        if (!s->kallsyms)
                return 0;
        if (is_running && s->kernel_id.n > 0 && (id.n != s->kernel_id.n || memcmp(id.bytes, s->kernel_id.bytes, id.n) != 0)) {
                k->note = "the kernel that runs is another one";
                return 0;
        }
        has_cache = is_running && s->symbol_cache;
        if (has_cache && kernel_cache_open(&k->cache, s->symbol_cache)) {
                k->text = kernel_cache_text(&k->cache);
                k->note = "";
                s->counts.loads++;
                return 0;
        }
        r = load_list(s, k);
        if (r == 0 && has_cache)
                kernel_cache_write(s->symbol_cache, &k->table, &k->range, k->text);
        return r;
}

/* What its list has at an address of now; *ret_module: the module that it is in. NULL: nothing. 0; -ENOMEM */
static int find_listed(perfd_symbolizer *s, uint64_t address, Symbol **ret, Symbol **ret_module) {
        Kernel *k = &s->kernel;
        int r = 0;

        *ret = *ret_module = NULL;
        if (kernel_cache_covers(&k->cache, address)) {
                *ret = kernel_cache_find(&k->cache, address, &k->cached) ? &k->cached : NULL;
                return 0;
        }
        if (k->cache.head && !k->has_list)
                r = load_list(s, k);
        if (r != 0)
                return r;
        *ret = symbol_table_find(&k->table, address);
        *ret_module = *ret ? symbol_table_find(&k->modules, address) : NULL;
        return 0;
}

static perfd_text id_text(const BuildId *id) {
        return (perfd_text){ .bytes = (const char *)id->bytes, .length = id->n };
}

/* What a record said of that time: a module, or what has a name of its own. NULL: nothing. */
static const Mapping *find_recorded(perfd_symbolizer *s, uint64_t time, uint64_t ip, perfd_frame *frame, Validity *validity) {
        const Mapping *m = s->kernel_process ? address_map_find(&s->kernel_process->maps, ip, time, 0, validity) : NULL;

        if (!m)
                return NULL;
        frame->dso = (perfd_text){ .bytes = m->dso->path, .length = m->dso->n_path };
        frame->build_id = id_text(&m->dso->id);
        if (m->name) {
                frame->symbol = symbols_text(m->name);
                frame->offset = ip - m->start;
        } else
                frame->address = ip - m->start + m->offset;
        return m;
}

static bool is_same_text(perfd_text a, perfd_text b) {
        return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* Whether the kernel that runs has at an address what was recorded there (NULL: nothing was); then `frame` has its module. */
static int check_module(Kernel *k, Symbol *module, const Mapping *recorded, perfd_frame *frame, bool *ret) {
        const perfd_text name = module ? symbol_table_name(&k->modules, module) : symbols_text("");
        const BuildId *id;
        int r;

        *ret = !recorded;
        if (!module)
                return 0;
        r = find_module_id(k, name, &id);
        if (r != 0)
                return r;
        if (recorded && (!is_same_text(frame->dso, name) || (id->n > 0 && frame->build_id.length > 0 && !is_same_text(frame->build_id, id_text(id)))))
                return 0;
        *ret = true;
        frame->dso = name;
        if (!recorded || frame->build_id.length == 0)
                frame->build_id = id_text(id);
        return 0;
}

int kernel_find(perfd_symbolizer *s, uint64_t time, uint64_t ip, perfd_frame *frame, Validity *validity, const Mapping **ret_module) {
        Kernel *k = &s->kernel;
        const Mapping *recorded;
        Symbol *symbol, *module;
        uint64_t moved;
        bool is_there = true;
        int r;

        frame->dso = symbols_text(KERNEL_DSO);
        frame->build_id = id_text(&s->kernel_id);
        *ret_module = NULL;
        recorded = find_recorded(s, time, ip, frame, validity);
        if (recorded && recorded->name)
                return 0;
        r = k->is_loaded ? 0 : load(s, k);
        if (r != 0)
                return r;
        moved = s->recorded_text != 0 && k->text != 0 ? k->text - s->recorded_text : 0;
        r = find_listed(s, ip + moved, &symbol, &module);
        if (r != 0)
                return r;
        if (moved != 0)
                is_there = !module && !recorded;
        else if (symbol)
                r = check_module(k, module, recorded, frame, &is_there);
        if (!symbol || !is_there) {
                frame->note = k->note[0] ? k->note : symbol ? "the kernel has something else there now" : "no symbol is there";
                *ret_module = recorded && recorded->dso->module ? recorded : NULL;
                return r;
        }
        frame->symbol = symbol_table_name(&k->table, symbol);
        frame->offset = ip + moved - symbol->start + symbol->into;
        return r;
}
