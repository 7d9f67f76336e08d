/*
 * What a recording has, read from its first byte to its last: so what it says of records is what whoever reads it finds, and what is
 * damaged is known.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/print/output-file.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/samples/recording-counts.h"
#include "client/perfctl/samples/recording-features.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/text.h"

#define NAME_SIZE 32
#define TYPES_MAX 256 /* a larger type is a damage */
#define N_FEATURES 256
#define NSEC_PER_SEC UINT64_C(1000000000)

static const char *type_name(uint32_t type, char name[static NAME_SIZE]) {
        const char *known = perfd_recorded_name(type);

        if (known)
                return known;
        (void)snprintf(name, NAME_SIZE, "UNKNOWN_%" PRIu32, type);
        return name;
}

static int read_all(const Perfctl *p, perfd_recording *r, RecordingCounts *c, const char *path) {
        const perfd_recorded *record;
        int code;

        while ((code = perfd_recording_next(r, &record)) == 0) {
                code = recording_counts_add(c, r, record);
                if (code != 0)
                        break;
        }
        return code == PERFD_E_ENDED ? 0 : perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, perfd_recording_error(r));
}

/* False: it is no file. */
static bool size_of(const char *path, uint64_t *ret) {
        struct stat st;

        if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
                return false;
        *ret = (uint64_t)st.st_size;
        return true;
}

static const char *byte_order(const perfd_recording *r) {
        return perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN ? "big" : "little";
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------------- */

static void put_json_records(Json *j, const RecordingCounts *c) {
        char name[NAME_SIZE];

        JSON_KEY(j, "records");
        json_begin(j, '{');
        for (size_t i = 0; i < c->n_types; i++) {
                json_put_name(j, type_name(c->types[i].type, name));
                json_put_number(j, c->types[i].n);
        }
        json_end(j, '}');
}

static void put_json_events(Json *j, const perfd_recording *r, const RecordingCounts *c) {
        const perfd_recorded_event *e;

        JSON_KEY(j, "events");
        json_begin(j, '[');
        for (size_t i = 0; (e = perfd_recording_event(r, i)); i++)
                json_put_string(j, e->name);
        json_end(j, ']');
        JSON_KEY(j, "samples_of"); /* in the order of `events`, which may have a name twice */
        json_begin(j, '[');
        for (size_t i = 0; perfd_recording_event(r, i); i++)
                json_put_number(j, recording_counts_of(c, i));
        json_end(j, ']');
}

/* Null where no sample has a time. */
static void put_json_times(Json *j, const RecordingCounts *c) {
        if (c->last == 0) {
                JSON_NULL(j, "first");
                JSON_NULL(j, "last");
                return;
        }
        JSON_NUMBER(j, "first", c->first);
        JSON_NUMBER(j, "last", c->last);
}

static void put_json_damage(Json *j, const perfd_recording *r) {
        JSON_KEY(j, "damage");
        json_begin(j, '[');
        for (size_t i = 0; i < perfd_recording_n_damages(r); i++) {
                const perfd_damage *d = perfd_recording_damage(r, i);

                json_begin(j, '{');
                JSON_NUMBER(j, "offset", d->offset);
                JSON_STRING(j, "text", d->text);
                json_end(j, '}');
        }
        json_end(j, ']');
}

static int put_json(Perfctl *p, perfd_recording *r, const RecordingCounts *c) {
        Json j = json_of(&p->out);
        uint64_t size;
        int code;

        json_begin(&j, '{');
        JSON_BOOL(&j, "pipe", perfd_recording_is_pipe(r));
        JSON_STRING(&j, "byte_order", byte_order(r));
        if (size_of(p->arguments[0], &size))
                JSON_NUMBER(&j, "bytes", size);
        else
                JSON_NULL(&j, "bytes");
        JSON_NUMBER(&j, "samples", c->n_samples);
        put_json_times(&j, c);
        JSON_NUMBER(&j, "lost", c->n_lost);
        JSON_NUMBER(&j, "lost_samples", c->n_lost_samples);
        put_json_records(&j, c);
        put_json_events(&j, r, c);
        JSON_KEY(&j, "features");
        json_begin(&j, '{');
        code = features_put_json(&j, r);
        json_end(&j, '}');
        put_json_damage(&j, r);
        json_end(&j, '}');
        json_end_line(&j);
        return code;
}

/* ---- text -------------------------------------------------------------------------------------------------------------------- */

static void put_text_events(Output *o, const perfd_recording *r, const RecordingCounts *c) {
        const perfd_recorded_event *e;

        output_put_string(o, "events:\n");
        for (size_t i = 0; (e = perfd_recording_event(r, i)); i++) {
                output_put(o, "  ", 2);
                text_put_string(o, e->name);
                output_print(o, ": %" PRIu64 " samples\n", recording_counts_of(c, i));
        }
}

static void put_text_times(Output *o, const RecordingCounts *c) {
        const uint64_t length = c->last - c->first;

        if (c->last > 0)
                output_print(o, "samples from %" PRIu64 ".%09" PRIu64 " to %" PRIu64 ".%09" PRIu64 ", %" PRIu64 ".%09" PRIu64 " s\n",
                             c->first / NSEC_PER_SEC, c->first % NSEC_PER_SEC, c->last / NSEC_PER_SEC, c->last % NSEC_PER_SEC,
                             length / NSEC_PER_SEC, length % NSEC_PER_SEC);
        if (c->n_lost > 0)
                output_print(o, "lost: %" PRIu64 " records, for which the kernel had no room\n", c->n_lost);
        if (c->n_lost_samples > 0)
                output_print(o, "lost: %" PRIu64 " samples, as LOST_SAMPLES says\n", c->n_lost_samples);
}

static int put_text(Perfctl *p, perfd_recording *r, const RecordingCounts *c, const char *path) {
        char name[NAME_SIZE], shown[QUANTITY_SIZE];
        uint64_t size;
        int code;

        text_put_string(&p->out, path);
        output_print(&p->out, ": %s of perf.data, %s-endian, %" PRIu64 " samples", perfd_recording_is_pipe(r) ? "pipe" : "file",
                     byte_order(r), c->n_samples);
        if (size_of(path, &size))
                output_print(&p->out, ", %s", quantity_show_size(size, shown));
        output_put_char(&p->out, '\n');
        put_text_times(&p->out, c);
        put_text_events(&p->out, r, c);
        output_put_string(&p->out, "records:\n");
        for (size_t i = 0; i < c->n_types; i++)
                output_print(&p->out, "  %s: %" PRIu64 "\n", type_name(c->types[i].type, name), c->types[i].n);
        output_put_string(&p->out, "features:\n");
        code = features_put_text(&p->out, r);
        if (perfd_recording_n_damages(r) > 0)
                output_put_string(&p->out, "damage:\n");
        for (size_t i = 0; i < perfd_recording_n_damages(r); i++) {
                const perfd_damage *d = perfd_recording_damage(r, i);

                output_print(&p->out, "  at byte %" PRIu64 ": ", d->offset);
                text_put_string(&p->out, d->text);
                output_put_char(&p->out, '\n');
        }
        return code;
}

/* ---- mending ------------------------------------------------------------------------------------------------------------------ */

/* Their formats are in a section that perf-record(1) writes at its end. */
static bool lacks_formats(perfd_recording *r) {
        const perfd_recorded_event *e;
        bool has_tracepoint = false, has_formats = false;

        for (size_t i = 0; (e = perfd_recording_event(r, i)); i++)
                has_tracepoint |= e->type == PERF_TYPE_TRACEPOINT;
        for (unsigned bit = 0; bit < N_FEATURES; bit++)
                has_formats |= perfd_recording_has_feature(r, bit) && perfd_feature_name(bit) && strcmp(perfd_feature_name(bit), "TRACING_DATA") == 0;
        return has_tracepoint && !has_formats;
}

/* Sections of the header that it had, and has no more. */
static void say_sections(const Perfctl *p, perfd_recording *before, perfd_recording *after, const char *path) {
        for (unsigned bit = 0; bit < N_FEATURES; bit++)
                if (perfd_recording_has_feature(before, bit) && !perfd_recording_has_feature(after, bit))
                        (void)perfctl_fail(p, PERFCTL_OK, "%s: section %s is damaged, or was cut off, and is left out", path,
                                           perfd_feature_name(bit) ? perfd_feature_name(bit) : "of an unknown number");
}

static void pass_key(void *userdata, const char *key) {
        (void)userdata, (void)key;
}

static void pass_end(void *userdata) {
        (void)userdata;
}

static void pass_text(void *userdata, const char *key, perfd_text text) {
        (void)userdata, (void)key, (void)text;
}

static void pass_number(void *userdata, const char *key, uint64_t number) {
        (void)userdata, (void)key, (void)number;
}

static void pass_flag(void *userdata, const char *key, bool is) {
        (void)userdata, (void)key, (void)is;
}

static void look_at_sections(perfd_recording *r) {
        static const perfd_feature_visitor nobody = { .begin_object = pass_key, .end_object = pass_end, .begin_list = pass_key, .end_list = pass_end,
                                                      .text = pass_text, .bytes = pass_text, .number = pass_number, .flag = pass_flag };

        for (unsigned bit = 0; bit < N_FEATURES; bit++)
                if (perfd_recording_has_feature(r, bit))
                        (void)perfd_recording_visit_feature(r, bit, &nobody, NULL); /* what is wrong becomes a damage */
}

/* What was changed in the header or the attrs, no end before it mends. 0, or PERFCTL_FAILED after a message. */
static int check_mended(const Perfctl *p, perfd_recording *before, const char *part, const char *path) {
        perfd_recording *r = must_have(perfd_recording_new());
        RecordingCounts c = RECORDING_COUNTS_NULL;
        const perfd_damage *damage;
        int code;

        if (perfd_recording_open(r, part) != 0)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: it cannot be mended: behind the repair: %s; it stays as it was", path, perfd_recording_error(r));
        else
                code = read_all(p, r, &c, path);
        look_at_sections(r);
        damage = code == 0 ? perfd_recording_damage(r, 0) : NULL;
        if (code == 0 && !damage && c.n_unknown > 0)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: it cannot be mended, and stays as it was: compressed records of it have %" PRIu64 " records of "
                                    "unknown types", path, c.n_unknown);
        if (damage)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: it cannot be mended, and stays as it was: what is left up to its first cut is damaged at byte "
                                    "%" PRIu64 ": %s; `perfctl script` reads what is whole", path, damage->offset, damage->text);
        if (code == 0)
                say_sections(p, before, r, path);
        perfd_recording_free(r);
        recording_counts_deinit(&c);
        return code;
}

/* What of it is not up to its first cut, but missing from what is. */
static void say_left_out(const Perfctl *p, const RecordingCounts *c, const char *path) {
        if (c->n_damaged > 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s: %" PRIu64 " samples that are damaged are left out: a record LOST_SAMPLES says so", path,
                                   c->n_damaged);
        if (c->n_unknown > 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s: %" PRIu64 " records of types that perf does not know are left out", path, c->n_unknown);
}

/* Those that a later perf may have: what is surely none is a damage. */
static void say_unknown(const Perfctl *p, const RecordingCounts *c, const char *path) {
        for (size_t i = 0; i < c->n_types; i++)
                if (!perfd_recorded_name(c->types[i].type) && c->types[i].type > 0 && c->types[i].type < TYPES_MAX)
                        (void)perfctl_fail(p, PERFCTL_OK, "%s: %" PRIu64 " records of type %" PRIu32 ", which Linux up to 6.18 does not have: perf refuses "
                                           "a recording with them, and perfctl steps over them; --repair leaves them out", path, c->types[i].n,
                                           c->types[i].type);
}

/* Beside its output, which says what was found. */
static int repair(const Perfctl *p, perfd_recording *r, const RecordingCounts *c, const char *path) {
        OutputFile file = OUTPUT_FILE_NULL;
        int code, ended;

        if (perfd_recording_damage_count(r) == 0 && c->n_unknown == 0)
                return perfctl_fail(p, PERFCTL_OK, "%s: nothing is damaged, and it is as it was", path);
        code = output_file_open(p, path, &file);
        if (code != 0)
                return code;
        output_file_limit(&file, path);
        if (perfd_recording_repair(r, fileno(file.out)) != 0)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, perfd_recording_error(r));
        if (code == 0)
                code = check_mended(p, r, file.part, path);
        ended = output_file_close(p, &file, code == 0);
        if (code == 0 && ended == 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s: what is whole of it is a recording now; as it was it is %s.old", path, path);
        if (code == 0 && ended == 0)
                say_left_out(p, c, path);
        if (code == 0 && ended == 0 && lacks_formats(r))
                (void)perfctl_fail(p, PERFCTL_OK, "%s: it was cut off before the formats of its tracepoints were written: they have the names of their numbers, "
                                   "and no fields", path);
        return code != 0 ? code : ended;
}

static int info_of(Perfctl *p, perfd_recording *r, RecordingCounts *c, const char *path) {
        const bool is_to_mend = perfctl_get(p, "repair");
        int code;

        if (is_to_mend && strcmp(path, "-") == 0)
                return perfctl_fail(p, PERFCTL_USAGE, "--repair: stdin is no file");
        if (perfd_recording_open(r, path) != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, perfd_recording_error(r));
        code = read_all(p, r, c, path);
        if (code != 0)
                return code;
        code = p->json ? put_json(p, r, c) : put_text(p, r, c, path);
        if (code != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", path, perfd_recording_error(r));
        if (is_to_mend)
                return repair(p, r, c, path);
        say_unknown(p, c, path);
        return perfd_recording_damage_count(r) > 0 ? PERFCTL_FAILED : PERFCTL_OK;
}

static int info_run(Perfctl *p) {
        const char *input = perfctl_get(p, "input");
        RecordingCounts c = RECORDING_COUNTS_NULL;
        perfd_recording *r;
        int code;

        if (input && p->n_arguments > 0)
                return perfctl_fail(p, PERFCTL_USAGE, "%s and --input %s are two recordings: name one", p->arguments[0], input);
        if (!input)
                input = p->n_arguments > 0 ? p->arguments[0] : "perf.data";
        r = must_have(perfd_recording_new());
        code = info_of(p, r, &c, input);
        perfd_recording_free(r);
        recording_counts_deinit(&c);
        return code;
}

const Verb verb_info = {
        .name = "info",
        .arguments = "[FILE]",
        .help = "show what a recording of perf has, and what is damaged",
        .options = { { .name = "input", .letter = 'i', .argument = "FILE", .help = "the recording, as FILE; perf.data if neither is given",
                       .words = WORDS_FILES },
                     { .name = "repair", .help = "make what is whole of it a recording that perf reads; FILE.old is what it was" } },
        .max_arguments = 1,
        .words = WORDS_FILES,
        .is_offline = true,
        .run = info_run,
};
