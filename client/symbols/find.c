/*
 * From an address to its name. Samples of a process are at few addresses, so what was found is kept in a cache of one entry a hash, with the
 * times between which it holds; whatever changes a map or a table makes all of them void.
 */
#include <errno.h>
#include <string.h>

#include "client/symbols/symbolizer.h"

#define NOTHING_MAPPED "nothing is known to be mapped there"

static void set_dso(perfd_frame *frame, const Dso *dso) {
        frame->dso = (perfd_text){ .bytes = dso->path, .length = dso->n_path };
        frame->build_id = (perfd_text){ .bytes = (const char *)dso->id.bytes, .length = dso->id.n };
}

static int find_in_file(perfd_symbolizer *s, const Mapping *m, perfd_frame *frame) {
        Dso *dso = m->dso;
        const int r = dso_load(s, dso);
        uint64_t address;
        size_t bytes;
        Symbol *symbol = NULL;

        set_dso(frame, dso);
        frame->address = frame->ip - m->start + m->offset;
        frame->line_note = s->has_lines ? "no line is there" : "";
        if (!dso->symbols) {
                frame->note = dso->note;
                frame->line_note = s->has_lines ? dso->note : "";
                return r;
        }
        dso_touch(s, dso);
        if (elf_symbols_address(dso->symbols, frame->address, &address)) {
                symbol = symbol_table_find(&dso->symbols->table, address);
                if (s->has_lines)
                        lines_set(dso, address, frame);
        }
        if (!symbol) {
                frame->note = "no symbol is there";
                return r;
        }
        bytes = dso->symbols->table.bytes;
        frame->symbol = symbol_table_name(&dso->symbols->table, symbol);
        symbolizer_count_table(s, bytes, dso->symbols->table.bytes);
        frame->offset = address - symbol->start + symbol->into;
        return r;
}

/* Code without a file: a JIT compiler's, whose process may have had it from the one that it was forked of. */
static int find_code(perfd_symbolizer *s, uint32_t pid, uint64_t time, const Mapping *around, Process *owner, perfd_frame *frame, Validity *validity) {
        int r;
        const Mapping *m;
        Symbol *symbol;

        set_dso(frame, around->dso);
        frame->note = "no file, and no list of a JIT compiler has it";
        r = jit_read(s, owner, frame->ip);
        if (r != 0)
                return r;
        m = process_find(s, pid, time, frame->ip, true, validity, &owner);
        if (m && m->name) {
                set_dso(frame, m->dso);
                frame->symbol = symbols_text(m->name);
                frame->offset = frame->ip - m->start;
                return 0;
        }
        symbol = owner->perf_map.table ? symbol_table_find(owner->perf_map.table, frame->ip) : NULL;
        if (symbol) {
                set_dso(frame, owner->perf_map.dso);
                frame->symbol = symbol_table_name(owner->perf_map.table, symbol);
                frame->offset = frame->ip - symbol->start + symbol->into;
        }
        return 0;
}

int user_mapping(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, Validity *validity, Process **ret_owner, const Mapping **ret) {
        Process *process;
        int r = 0;

        *ret = process_find(s, pid, time, ip, false, validity, ret_owner);
        if (!*ret && !s->is_remote && (process = process_get(s, pid, true)) && process->n_lives == 0 && !process->was_looked_at) {
                r = proc_maps_read(s, process);
                if (r == 0)
                        *ret = process_find(s, pid, time, ip, false, validity, ret_owner);
        }
        return r;
}

static int find_user(perfd_symbolizer *s, uint32_t pid, uint64_t time, perfd_frame *frame, Validity *validity, Dso **ret_dso) {
        Process *owner = NULL;
        const Mapping *m;
        int r = user_mapping(s, pid, time, frame->ip, validity, &owner, &m);

        if (r != 0)
                return r;
        if (!m) {
                frame->note = NOTHING_MAPPED;
                return 0;
        }
        *ret_dso = m->dso;
        return m->dso->kind == DSO_ANONYMOUS ? find_code(s, pid, time, m, owner, frame, validity) : find_in_file(s, m, frame);
}

static int find_kernel(perfd_symbolizer *s, uint64_t time, perfd_frame *frame, Validity *validity, Dso **ret_dso) {
        const Mapping *module;
        const int r = kernel_find(s, time, frame->ip, frame, validity, &module);

        if (r != 0 || !module)
                return r;
        *ret_dso = module->dso;
        return find_in_file(s, module, frame);
}

static Cached *cached_of(perfd_symbolizer *s, uint32_t pid, uint64_t ip) {
        return s->cache + ((ip ^ (uint64_t)pid << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 53);
}

int find_frame(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, perfd_frame *ret, Dso **ret_dso) {
        const uint32_t whose = is_kernel ? NOWHERE : pid;
        Cached *cached = cached_of(s, whose, ip);
        Validity validity = VALIDITY_ALWAYS;
        perfd_frame frame = { .ip = ip, .address = ip, .note = "", .line_note = s->has_lines ? "lines are known of files of processes only" : "" };
        Dso *dso = NULL;
        int r;

        if (cached->generation == s->generation && cached->pid == whose && cached->frame.ip == ip && time >= cached->validity.from &&
            time < cached->validity.until) {
                if (cached->dso)
                        dso_touch(s, cached->dso);
                *ret = cached->frame;
                *ret_dso = cached->dso;
                return 0;
        }
        frame.symbol = frame.dso = frame.build_id = frame.file = symbols_text("");
        r = is_kernel ? find_kernel(s, time, &frame, &validity, &dso) : find_user(s, pid, time, &frame, &validity, &dso);
        if (r != 0)
                return r;
        if (frame.symbol.length > 0)
                frame.note = "";
        if (frame.symbol.length > 0 || !dso || dso->kind != DSO_ANONYMOUS) /* a JIT compiler may write its name yet */
                *cached = (Cached){ .generation = s->generation, .pid = whose, .validity = validity, .frame = frame, .dso = dso };
        *ret = frame;
        *ret_dso = dso;
        return 0;
}

int perfd_symbolizer_find(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, perfd_frame *ret) {
        Dso *dso;

        return find_frame(s, pid, time, ip, is_kernel, ret, &dso);
}
