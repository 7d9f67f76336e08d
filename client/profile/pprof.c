/*
 * Messages of protobuf that stand one behind the other are one message with all their fields: so each sample, location and name is
 * packed and compressed by itself, and no profile is too large for the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/gzip-stream.h"
#include "client/profile/pprof.h"
#include "client/profile/pprof-locations.h"
#include "client/profile/file-end.h"
#include "client/profile/profile.pb-c.h"
#include "client/profile/utf8.h"

enum { THREAD, CONTAINER, PID, TID, N_LABELS };

static const char *const label_names[N_LABELS] = { "thread", "container", "pid", "tid" };

typedef struct Mappings {
        Pprof__Mapping *list;
        uint32_t n;
        uint32_t *of_function; /* id of its mapping, from 1; 0: none */
} Mappings;

typedef struct Writer {
        const Profile *p;
        GzipStream gzip;
        uint8_t *packed;
        size_t room;
        Mappings mappings;
        PprofLocations locations;
        uint64_t location_ids[PROFILE_DEPTH_MAX]; /* of a stack, at the end: the innermost first */
        Pprof__Line lines[PROFILE_DEPTH_MAX], *line_list[PROFILE_DEPTH_MAX]; /* of a location */
} Writer;

/* string_table: "", the strings of the profile, names and units of values, names of labels. */
static int64_t string_index(uint32_t id) {
        return id == ID_NONE ? 0 : 1 + (int64_t)id;
}

static int64_t value_name_index(const Profile *p, size_t value) {
        return 1 + (int64_t)p->n_strings + 2 * (int64_t)value;
}

static int64_t label_index(const Profile *p, size_t label) {
        return value_name_index(p, p->n_values) + (int64_t)label;
}

static int put(Writer *w, const Pprof__Profile *part) {
        size_t n = pprof__profile__get_packed_size(part);

        if (n > w->room) {
                uint8_t *grown = realloc(w->packed, 2 * n);

                if (!grown)
                        return -ENOMEM;
                w->packed = grown;
                w->room = 2 * n;
        }
        gzip_stream_put(&w->gzip, w->packed, pprof__profile__pack(part, w->packed));
        return 0;
}

static int put_string(Writer *w, const char *string) {
        char *text = utf8_export_string(string);
        Pprof__Profile part = PPROF__PROFILE__INIT;
        int r;

        part.n_string_table = 1;
        part.string_table = &text;
        r = text ? put(w, &part) : -ENOMEM;
        free(text);
        return r;
}

static int put_strings(Writer *w) {
        const Profile *p = w->p;
        int r = put_string(w, "");

        for (uint32_t i = 0; r == 0 && i < p->n_strings; i++)
                r = put_string(w, p->strings[i]);
        for (size_t i = 0; r == 0 && i < p->n_values; i++) {
                r = put_string(w, p->values[i].name);
                if (r == 0)
                        r = put_string(w, p->values[i].unit);
        }
        for (size_t i = 0; r == 0 && i < N_LABELS; i++)
                r = put_string(w, label_names[i]);
        return r;
}

/* Of the last value, as its type; 0, which is not written: it is not the same between all samples. */
static int64_t period_of(const Profile *p) {
        const uint64_t period = p->values[p->n_values - 1].period;

        return period <= INT64_MAX ? (int64_t)period : 0;
}

static int put_head(Writer *w) {
        const Profile *p = w->p;
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__ValueType types[PROFILE_VALUES_MAX], *list[PROFILE_VALUES_MAX];

        for (size_t i = 0; i < p->n_values; i++) {
                pprof__value_type__init(&types[i]);
                types[i].type = value_name_index(p, i);
                types[i].unit = types[i].type + 1;
                list[i] = &types[i];
        }
        part.n_sample_type = p->n_values;
        part.sample_type = list;
        part.period_type = list[p->n_values - 1];
        part.period = period_of(p);
        part.time_nanos = (int64_t)p->first_nsec;
        part.duration_nanos = (int64_t)(p->duration_nsec > 0 ? p->duration_nsec : p->last_nsec - p->first_nsec);
        return put(w, &part);
}

/* ---- places ---------------------------------------------------------------------------------------------------------------------- */

static int find_mapping(Mappings *m, const Function *f, IdTable *ids, uint32_t *ret_mapping) {
        const uint32_t key[2] = { f->dso, f->build_id };
        uint32_t hash = id_hash(0, key, sizeof(key)), id; /* of ids, which nobody chooses */
        size_t at = hash;
        int r;

        while (id_table_next(ids, hash, &at, &id))
                if (m->list[id].filename == string_index(f->dso) && m->list[id].build_id == string_index(f->build_id)) {
                        *ret_mapping = id + 1;
                        return 0;
                }
        r = id_table_add(ids, hash, m->n);
        if (r < 0)
                return r;
        pprof__mapping__init(&m->list[m->n]);
        m->list[m->n].id = m->n + 1;
        m->list[m->n].filename = string_index(f->dso);
        m->list[m->n].build_id = string_index(f->build_id);
        m->list[m->n].has_functions = true;
        *ret_mapping = ++m->n;
        return 0;
}

static int mappings_init(Mappings *m, const Profile *p) {
        IdTable ids = ID_TABLE_NULL;
        int r;

        *m = (Mappings){ .list = calloc((size_t)p->n_functions + 1, sizeof(*m->list)),
                         .of_function = calloc((size_t)p->n_functions + 1, sizeof(*m->of_function)) };
        r = m->list && m->of_function ? 0 : -ENOMEM;
        for (uint32_t i = 0; r == 0 && i < p->n_functions; i++)
                if (p->functions[i].dso != ID_NONE)
                        r = find_mapping(m, &p->functions[i], &ids, &m->of_function[i]);
        for (uint32_t i = 0; r == 0 && i < p->n_frames; i++) {
                const Frame *frame = &p->frames[i];
                uint32_t id = m->of_function[frame->function];
                Pprof__Mapping *mapping = id > 0 ? &m->list[id - 1] : NULL;

                if (!mapping)
                        continue;
                mapping->has_filenames |= p->functions[frame->function].file != ID_NONE;
                mapping->has_line_numbers |= frame->line > 0;
                mapping->has_inline_frames |= p->functions[frame->function].kind == FRAME_INLINED;
                if (frame->address >= mapping->memory_limit) /* as much of it as was seen: addresses are the dso's own */
                        mapping->memory_limit = frame->address < UINT64_MAX ? frame->address + 1 : UINT64_MAX;
        }
        id_table_deinit(&ids);
        return r;
}

/* "/usr/bin/make": no "[kernel.kallsyms]", and no library, as "/usr/lib/libc.so.6". */
static bool is_program(const char *dso) {
        const char *slash = strrchr(dso, '/'), *so = slash ? strstr(slash, ".so") : NULL;

        return slash && !(so && (so[3] == '\0' || so[3] == '.'));
}

static int put_mapping(Writer *w, uint32_t index) {
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Mapping *mapping = &w->mappings.list[index];

        part.n_mapping = 1;
        part.mapping = &mapping;
        return put(w, &part);
}

/* Readers take the first one for the program. */
static int put_mappings(Writer *w) {
        const Mappings *m = &w->mappings;
        uint32_t first = 0;
        int r;

        while (first < m->n && !is_program(w->p->strings[m->list[first].filename - 1]))
                first++;
        r = first < m->n ? put_mapping(w, first) : 0;
        for (uint32_t i = 0; r == 0 && i < m->n; i++)
                if (i != first)
                        r = put_mapping(w, i);
        return r;
}

static int put_functions(Writer *w) {
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < w->p->n_functions; i++) {
                Pprof__Profile part = PPROF__PROFILE__INIT;
                Pprof__Function function = PPROF__FUNCTION__INIT, *list = &function;

                function.id = (uint64_t)i + 1;
                function.name = function.system_name = string_index(w->p->functions[i].symbol);
                function.filename = string_index(w->p->functions[i].file);
                part.n_function = 1;
                part.function = &list;
                r = put(w, &part);
        }
        return r;
}

/* frames: from the outermost on; of lines the innermost function's is the first. */
static int put_location(Writer *w, uint64_t id, const uint32_t *frames, size_t n) {
        const Frame *outermost = &w->p->frames[frames[0]];
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Location location = PPROF__LOCATION__INIT, *list = &location;

        for (size_t i = 0; i < n; i++) {
                const Frame *frame = &w->p->frames[frames[n - 1 - i]];

                pprof__line__init(&w->lines[i]);
                w->lines[i].function_id = (uint64_t)frame->function + 1;
                w->lines[i].line = frame->line;
                w->line_list[i] = &w->lines[i];
        }
        location.id = id;
        location.mapping_id = w->mappings.of_function[outermost->function];
        location.address = outermost->address;
        location.n_line = n;
        location.line = w->line_list;
        part.n_location = 1;
        part.location = &list;
        return put(w, &part);
}

static int put_locations(Writer *w) {
        int r = 0;

        for (uint64_t id = 1; r == 0 && id < pprof_locations_end(&w->locations, w->p); id++) {
                const uint32_t *frames;
                uint32_t frame;
                const size_t n = pprof_locations_get(&w->locations, w->p, id, &frame, &frames);

                if (n > 0)
                        r = put_location(w, id, frames, n);
        }
        return r;
}

/* ---- samples --------------------------------------------------------------------------------------------------------------------- */

static size_t set_labels(const Profile *p, const Task *t, Pprof__Label labels[static N_LABELS]) {
        size_t n = 0;

        for (size_t i = 0; i < N_LABELS; i++) {
                Pprof__Label *label = &labels[n];

                pprof__label__init(label);
                label->key = label_index(p, i);
                label->str = i == THREAD ? string_index(t->comm) : i == CONTAINER ? string_index(t->container) : 0;
                label->num = i == PID ? t->pid : i == TID ? t->tid : 0;
                n += i != CONTAINER || t->container != ID_NONE;
        }
        return n;
}

/* *ret_n of them, at the end of location_ids. */
static int find_locations(Writer *w, const uint32_t *frames, size_t n_frames, size_t *ret_n) {
        size_t n = 0, n_taken = 0;
        int r = 0;

        for (size_t k = 0; r == 0 && k < n_frames; k += n_taken)
                r = pprof_locations_add(&w->locations, w->p, &frames[k], n_frames - k, &n_taken, &w->location_ids[PROFILE_DEPTH_MAX - ++n]);
        *ret_n = n;
        return r;
}

static int put_sample(Writer *w, uint32_t i) {
        const Profile *p = w->p;
        const Stack *s = &p->stacks[i];
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
        Pprof__Label labels[N_LABELS], *list[N_LABELS];
        int64_t values[PROFILE_VALUES_MAX];
        size_t n_locations;
        int r = find_locations(w, &p->stack_frames[s->first], s->n_frames, &n_locations);

        if (r != 0)
                return r;
        for (size_t k = 0; k < p->n_values; k++)
                values[k] = (int64_t)p->sums[(size_t)i * p->n_values + k];
        for (size_t k = 0; k < N_LABELS; k++)
                list[k] = &labels[k];
        sample.n_location_id = n_locations;
        sample.location_id = &w->location_ids[PROFILE_DEPTH_MAX - n_locations];
        sample.n_value = p->n_values;
        sample.value = values;
        sample.n_label = set_labels(p, &p->tasks[s->task], labels);
        sample.label = list;
        part.n_sample = 1;
        part.sample = &samples;
        return put(w, &part);
}

int pprof_write(FILE *out, const Profile *p) {
        Writer *w;
        int r;

        errno = 0;
        for (size_t i = 0; i < p->n_values; i++)
                if (p->totals[i] > INT64_MAX)
                        return PROFILE_E_OVERFLOW;
        w = calloc(1, sizeof(*w));
        r = w ? gzip_stream_init(&w->gzip, out) : -ENOMEM;

        if (r != 0) {
                free(w);
                return r;
        }
        w->p = p;
        r = mappings_init(&w->mappings, p);
        if (r == 0)
                r = pprof_locations_init(&w->locations, p);
        if (r == 0)
                r = put_head(w);
        for (uint32_t i = 0; r == 0 && i < p->n_stacks; i++)
                r = put_sample(w, i);
        if (r == 0)
                r = put_mappings(w);
        if (r == 0)
                r = put_locations(w);
        if (r == 0)
                r = put_functions(w);
        if (r == 0)
                r = put_strings(w);
        gzip_stream_finish(&w->gzip);
        free(w->packed);
        pprof_locations_deinit(&w->locations);
        free(w->mappings.list);
        free(w->mappings.of_function);
        free(w);
        return r != 0 ? r : file_end(out);
}
