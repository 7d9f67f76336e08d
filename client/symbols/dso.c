/* Files by what identifies them: a path with a build id or an inode is the same for all processes, a path alone is that of one. */
#include <stdlib.h>
#include <string.h>

#include "client/symbols/symbolizer.h"

size_t path_hash(perfd_text path) {
        uint32_t h = 2166136261U;

        for (size_t i = 0; i < path.length; i++)
                h = (h ^ (uint8_t)path.bytes[i]) * 16777619U;
        return h & (HASH_SIZE - 1);
}

static bool is_known(const Dso *dso) {
        return dso->has_mapped_id || dso->ino != 0;
}

static bool is_same(const Dso *dso, DsoKind kind, const perfd_mapping *m, perfd_text path, const BuildId *id) {
        return dso->kind == kind && dso->n_path == path.length && memcmp(dso->path, path.bytes, path.length) == 0 &&
               dso->has_mapped_id == (id->n > 0) && (id->n == 0 || (dso->id.n == id->n && memcmp(dso->id.bytes, id->bytes, id->n) == 0)) &&
               dso->maj == m->maj && dso->min == m->min && dso->ino == m->ino && dso->ino_generation == m->ino_generation &&
               (is_known(dso) || dso->pid == m->pid);
}

BuildId dso_known_id(const perfd_symbolizer *s, const perfd_mapping *m) {
        BuildId id = { .n = m->build_id.length };

        if (id.n > 0)
                memcpy(id.bytes, m->build_id.bytes, id.n);
        for (const KnownId *known = s->known_ids[path_hash(m->path)]; known && id.n == 0; known = known->next)
                if (known->n_path == m->path.length && memcmp(known->path, m->path.bytes, known->n_path) == 0)
                        id = known->id;
        return id;
}

Dso *dso_get(perfd_symbolizer *s, DsoKind kind, const perfd_mapping *m) {
        const perfd_text path = { .bytes = m->path.bytes, .length = m->path.length < PATH_LENGTH_MAX ? m->path.length : PATH_LENGTH_MAX };
        const BuildId id = dso_known_id(s, m);
        Dso **bucket = s->dsos + path_hash(path), *dso;

        for (dso = *bucket; dso; dso = dso->next)
                if (is_same(dso, kind, m, path, &id)) {
                        dso->n_users++;
                        return dso;
                }
        dso = calloc(1, sizeof(Dso) + path.length + 1);
        if (!dso)
                return NULL;
        *dso = (Dso){ .next = *bucket, .kind = kind, .n_users = 1, .id = id, .has_mapped_id = id.n > 0, .maj = m->maj, .min = m->min, .ino = m->ino,
                      .ino_generation = m->ino_generation, .pid = m->pid, .start = m->start, .end = m->start + m->length, .offset = m->offset,
                      .note = "", .line_note = "", .n_path = path.length };
        memcpy(dso->path, path.bytes, path.length);
        *bucket = dso;
        s->counts.bytes += sizeof(Dso) + path.length;
        return dso;
}

static void take_out(perfd_symbolizer *s, Dso *dso) {
        *(dso->newer ? &dso->newer->older : &s->newest_dso) = dso->older;
        *(dso->older ? &dso->older->newer : &s->oldest_dso) = dso->newer;
        dso->newer = dso->older = NULL;
}

static void put_in(perfd_symbolizer *s, Dso *dso) {
        dso->older = s->newest_dso;
        *(s->newest_dso ? &s->newest_dso->newer : &s->oldest_dso) = dso;
        s->newest_dso = dso;
}

void dso_touch(perfd_symbolizer *s, Dso *dso) {
        if (s->newest_dso == dso || !dso->symbols)
                return;
        take_out(s, dso);
        put_in(s, dso);
}

void symbolizer_count_table(perfd_symbolizer *s, size_t before, size_t now) {
        s->counts.bytes += now - before;
        s->table_bytes += now - before;
}

static void drop_symbols(perfd_symbolizer *s, Dso *dso) {
        if (!dso->symbols)
                return;
        take_out(s, dso);
        symbolizer_count_table(s, sizeof(ElfSymbols) + dso->symbols->table.bytes + lines_bytes(dso->lines), 0);
        s->counts.tables--;
        symbol_table_deinit(&dso->symbols->table);
        free(dso->symbols);
        dso->symbols = NULL;
        lines_free(dso->lines);
        dso->lines = NULL;
        dso->is_loaded = false;
        s->generation++;
}

void dso_set_symbols(perfd_symbolizer *s, Dso *dso, ElfSymbols *symbols, LineIndex *lines) {
        dso->symbols = symbols;
        dso->lines = lines;
        put_in(s, dso);
        symbolizer_count_table(s, 0, sizeof(ElfSymbols) + symbols->table.bytes + lines_bytes(lines));
        s->counts.tables++;
}

void dsos_make_room(perfd_symbolizer *s, size_t bytes, const Dso *but) {
        while (s->oldest_dso && s->oldest_dso != but && s->counts.bytes + bytes > s->memory_max) {
                drop_symbols(s, s->oldest_dso);
                s->counts.evicted++;
        }
}

void dso_unref(perfd_symbolizer *s, Dso *dso) {
        Dso **at;

        if (!dso || --dso->n_users > 0)
                return;
        drop_symbols(s, dso);
        call_frames_free(s, dso->frames);
        free(dso->module);
        at = s->dsos + path_hash((perfd_text){ .bytes = dso->path, .length = dso->n_path });
        while (*at != dso)
                at = &(*at)->next;
        *at = dso->next;
        s->counts.bytes -= sizeof(Dso) + dso->n_path;
        free(dso);
}
