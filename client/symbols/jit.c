/*
 * What JIT compilers leave for perf, read while they write it: a list of functions, /tmp/perf-PID.map, which is read again when it has grown,
 * and a jitdump file, whose mapping is the mark of it and which is read on from where it ended. Both lie where anybody may put a file, so
 * only one of root, of this user or of the process's own is believed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/symbols/jitdump.h"
#include "client/symbols/open-file.h"
#include "client/symbols/perf-map.h"
#include "client/symbols/symbolizer.h"

#define LOOK_AGAIN INT64_C(250000000) /* ns */
#define WINDOW ((size_t)256 * 1024)
#define RECORDS_MAX 10000000          /* of one look at a dump */

int64_t symbols_clock(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static bool is_believed(const perfd_symbolizer *s, uint32_t pid, const struct stat *file) {
        char path[64];
        struct stat process;

        if (file->st_uid == 0 || file->st_uid == geteuid())
                return true;
        snprintf(path, sizeof(path), "/proc/%u", pid);
        return !s->is_remote && stat(path, &process) == 0 && process.st_uid == file->st_uid;
}

/* The pid that it has itself, in its container. */
static uint32_t own_pid(uint32_t pid) {
        char path[64], *text, *line, *last;
        uint32_t own = pid;
        size_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%u/status", pid);
        fd = open_file(NULL, path, NULL);
        if (fd < 0)
                return pid;
        text = read_file(fd, 65536, &n);
        close(fd);
        line = text ? strstr(text, "\nNSpid:") : NULL;
        if (line) {
                line[1 + strcspn(line + 1, "\n")] = '\0';
                last = strrchr(line, '\t');
                own = last ? (uint32_t)strtoul(last + 1, NULL, 10) : pid;
        }
        free(text);
        return own;
}

static int open_of_process(const perfd_symbolizer *s, uint32_t pid, const char *path, struct stat *ret) {
        char root[64];
        int fd = -1;

        snprintf(root, sizeof(root), "/proc/%u/root", pid);
        if (!s->is_remote)
                fd = open_file(root, path, ret);
        if (fd < 0)
                fd = open_file(s->root, path, ret);
        if (fd >= 0 && !is_believed(s, pid, ret)) {
                close(fd);
                fd = -1;
        }
        return fd;
}

static int name_perf_map(perfd_symbolizer *s, Process *p) {
        perfd_mapping m = PERFD_MAPPING_INIT;
        char path[64];

        snprintf(path, sizeof(path), "/tmp/perf-%u.map", s->is_remote ? p->pid : own_pid(p->pid));
        m.pid = p->pid;
        m.path = symbols_text(path);
        p->perf_map.dso = dso_get(s, DSO_ANONYMOUS, &m);
        return p->perf_map.dso ? 0 : -ENOMEM;
}

static void forget_perf_map(perfd_symbolizer *s, PerfMap *map) {
        if (!map->table)
                return;
        s->counts.bytes -= map->table->bytes;
        s->table_bytes -= map->table->bytes;
        symbol_table_deinit(map->table);
        free(map->table);
        map->table = NULL;
        s->generation++;
}

static int read_perf_map(perfd_symbolizer *s, Process *p) {
        PerfMap *map = &p->perf_map;
        struct stat status;
        char *text = NULL;
        size_t n;
        int fd, r = map->dso ? 0 : name_perf_map(s, p);

        if (r != 0)
                return r;
        fd = open_of_process(s, p->pid, map->dso->path, &status);
        if (fd < 0)
                return 0;
        if ((size_t)status.st_size != map->size)
                text = read_file(fd, s->memory_max / 2, &n);
        close(fd);
        if (!text)
                return 0;
        forget_perf_map(s, map);
        map->size = (size_t)status.st_size;
        map->table = calloc(1, sizeof(SymbolTable));
        if (map->table) {
                symbol_table_init(map->table, s->memory_max / 4, s->has_parameters);
                r = symbol_table_parse_perf_map(map->table, text);
                s->counts.bytes += map->table->bytes;
                s->table_bytes += map->table->bytes;
                s->counts.loads++;
                s->generation++;
        }
        free(text);
        return map->table ? r : -ENOMEM;
}

static int add_code(perfd_symbolizer *s, Process *p, uint64_t start, uint64_t length, uint64_t time, const char *name, size_t n_name) {
        perfd_mapping m = PERFD_MAPPING_INIT;
        Mapping one = { .start = start, .end = start + length, .time = time };

        if (length == 0 || length > UINT64_MAX - start)
                return 0;
        m.pid = p->pid;
        m.path = symbols_text(p->dump.path);
        one.dso = name ? dso_get(s, DSO_CODE, &m) : NULL;
        one.name = name ? strndup(name, n_name) : NULL;
        if (name && (!one.dso || !one.name)) {
                dso_unref(s, one.dso);
                free(one.name);
                return -ENOMEM;
        }
        return process_add(s, p, &p->jit, &one);
}

static int take_record(perfd_symbolizer *s, Process *p, const JitRecord *record) {
        const uint64_t time = s->is_monotonic && !p->dump.has_other_clock ? record->time : p->dump.time;
        Validity ignored = VALIDITY_ALWAYS;
        const Mapping *old;

        if (record->type == JIT_CODE_LOAD)
                return add_code(s, p, record->address, record->length, time, record->name, record->n_name);
        if (record->type != JIT_CODE_MOVE)
                return 0;
        old = address_map_find(&p->jit, record->old_address, time, 0, &ignored);
        if (old && old->name) {
                char *name = strdup(old->name);
                int r = name ? add_code(s, p, record->old_address, record->length, time, NULL, 0) : -ENOMEM;

                if (r == 0)
                        r = add_code(s, p, record->address, record->length, time, name, strlen(name));
                free(name);
                return r;
        }
        return 0;
}

/* Record by record, through a window that follows them; what is not whole yet is read the next time. */
static int read_records(perfd_symbolizer *s, Process *p, int fd, uint8_t *window) {
        const JitHeader header = { .is_swapped = p->dump.is_swapped };
        uint64_t from = p->dump.offset;
        size_t n = 0;
        int r = 0;

        for (int i = 0; i < RECORDS_MAX && r == 0 && !p->dump.is_over; i++) {
                JitRecord record;
                const size_t at = p->dump.offset - from <= n ? (size_t)(p->dump.offset - from) : n;
                int found = jitdump_read_record(&header, window + at, n - at, &record);

                if (found == 0) {
                        const ssize_t got = pread(fd, window, WINDOW, (off_t)p->dump.offset);

                        from = p->dump.offset;
                        n = got > 0 ? (size_t)got : 0;
                        found = jitdump_read_record(&header, window, n, &record);
                }
                if (found == 0)
                        break;
                p->dump.is_over = found < 0 || record.type == JIT_CODE_CLOSE || record.size > INT64_MAX - p->dump.offset;
                if (p->dump.is_over)
                        break;
                r = take_record(s, p, &record);
                p->dump.offset += record.size;
        }
        return r;
}

static int read_dump(perfd_symbolizer *s, Process *p) {
        uint8_t *window = malloc(WINDOW);
        struct stat status;
        JitHeader header;
        int r = 0, fd = window ? open_of_process(s, p->pid, p->dump.path, &status) : -1;

        if (!window)
                return -ENOMEM;
        if (fd >= 0 && p->dump.offset == 0) {
                const ssize_t n = pread(fd, window, 64, 0);

                if (n > 0 && jitdump_read_header(window, (size_t)n, &header)) {
                        p->dump.offset = header.size;
                        p->dump.is_swapped = header.is_swapped;
                        p->dump.has_other_clock = header.has_other_clock;
                }
        }
        if (fd >= 0 && p->dump.offset > 0)
                r = read_records(s, p, fd, window);
        if (fd >= 0)
                close(fd);
        free(window);
        return r;
}

int jit_read(perfd_symbolizer *s, Process *p, uint64_t ip) {
        const int64_t now = symbols_clock();
        int r = 0;

        if (p->dump.path && !p->dump.is_over && (p->dump.looked == 0 || now - p->dump.looked >= LOOK_AGAIN)) {
                r = read_dump(s, p);
                p->dump.looked = now;
        }
        if (r == 0 && (p->perf_map.looked == 0 || now - p->perf_map.looked >= LOOK_AGAIN) &&
            !(p->perf_map.table && symbol_table_find(p->perf_map.table, ip))) {
                r = read_perf_map(s, p);
                p->perf_map.looked = now;
        }
        return r;
}
