/*
 * What a recording has, read from its first byte to its last: so what it says of records is what whoever reads it finds, and what is
 * damaged is known.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/json.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/recording-features.h"
#include "client/perfctl/table.h"
#include "client/perfctl/text.h"

#define NAME_SIZE 32

typedef struct TypeCount {
        uint32_t type;
        uint64_t n;
} TypeCount;

typedef struct Counts {
        TypeCount *list; /* in the order in which they came */
        size_t n, room;
        uint64_t samples;
} Counts;

static void count(Counts *c, uint32_t type) {
        size_t i = 0;

        c->samples += type == PERF_RECORD_SAMPLE;
        while (i < c->n && c->list[i].type != type)
                i++;
        if (i == c->n) {
                if (c->n == c->room) {
                        c->room = 2 * c->room + 16;
                        c->list = must_have(reallocarray(c->list, c->room, sizeof(*c->list)));
                }
                c->list[c->n++] = (TypeCount){ .type = type };
        }
        c->list[i].n++;
}

static const char *type_name(uint32_t type, char name[static NAME_SIZE]) {
        const char *known = perfd_recorded_name(type);

        if (known)
                return known;
        (void)snprintf(name, NAME_SIZE, "UNKNOWN_%" PRIu32, type);
        return name;
}

static int read_all(Perfctl *p, perfd_recording *r, Counts *c) {
        const perfd_recorded *record;
        int code;

        while ((code = perfd_recording_next(r, &record)) == 0)
                count(c, record->type);
        return code == PERFD_E_ENDED ? 0 : perfctl_fail(p, PERFCTL_FAILED, "%s", perfd_recording_error(r));
}

static const char *byte_order(const perfd_recording *r) {
        return perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN ? "big" : "little";
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------------- */

static void put_json_records(Json *j, const Counts *c) {
        char name[NAME_SIZE];

        JSON_KEY(j, "records");
        json_begin(j, '{');
        for (size_t i = 0; i < c->n; i++) {
                json_put_name(j, type_name(c->list[i].type, name));
                json_put_number(j, c->list[i].n);
        }
        json_end(j, '}');
        JSON_KEY(j, "events");
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

static int put_json(Perfctl *p, perfd_recording *r, const Counts *c) {
        Json j = json_of(&p->out);
        int code;

        json_begin(&j, '{');
        JSON_BOOL(&j, "pipe", perfd_recording_is_pipe(r));
        JSON_STRING(&j, "byte_order", byte_order(r));
        JSON_NUMBER(&j, "samples", c->samples);
        put_json_records(&j, c);
        json_begin(&j, '[');
        for (size_t i = 0; i < perfd_recording_n_events(r); i++)
                json_put_string(&j, perfd_recording_event(r, i)->name);
        json_end(&j, ']');
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

static int put_text(Perfctl *p, perfd_recording *r, const Counts *c, const char *path) {
        char name[NAME_SIZE];
        int code;

        text_put_string(&p->out, path);
        output_print(&p->out, ": %s of perf.data, %s-endian, %" PRIu64 " samples\n", perfd_recording_is_pipe(r) ? "pipe" : "file",
                     byte_order(r), c->samples);
        output_put_string(&p->out, "events:\n");
        for (size_t i = 0; i < perfd_recording_n_events(r); i++) {
                output_put(&p->out, "  ", 2);
                text_put_string(&p->out, perfd_recording_event(r, i)->name);
                output_put_char(&p->out, '\n');
        }
        output_put_string(&p->out, "records:\n");
        for (size_t i = 0; i < c->n; i++)
                output_print(&p->out, "  %s: %" PRIu64 "\n", type_name(c->list[i].type, name), c->list[i].n);
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

static int info_of(Perfctl *p, perfd_recording *r, Counts *c) {
        int code;

        if (perfd_recording_open(r, p->arguments[0]) != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", p->arguments[0], perfd_recording_error(r));
        code = read_all(p, r, c);
        if (code != 0)
                return code;
        code = p->json ? put_json(p, r, c) : put_text(p, r, c, p->arguments[0]);
        if (code != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: %s", p->arguments[0], perfd_recording_error(r));
        return perfd_recording_damage_count(r) > 0 ? PERFCTL_FAILED : PERFCTL_OK;
}

static int info_run(Perfctl *p) {
        perfd_recording *r = must_have(perfd_recording_new());
        Counts c = { .n = 0 };
        int code = info_of(p, r, &c);

        perfd_recording_free(r);
        free(c.list);
        return code;
}

const Verb verb_info = {
        .name = "info",
        .arguments = "FILE",
        .help = "show what a recording of perf has, and what is damaged",
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_FILES,
        .is_offline = true,
        .run = info_run,
};
