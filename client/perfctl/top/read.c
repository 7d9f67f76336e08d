/* A recording has one window, from its beginning to its end. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/samples/sample-source.h"
#include "client/perfctl/top/top.h"

typedef struct Reading {
        Top top;
        bool *is_known; /* of the event with that id, which are 1, 2, ... */
        size_t n_known;
        bool *is_found; /* of the subject's column with that index: it is of every sample, or a field of one */
        int code;       /* exit status, after a message */
} Reading;

static bool has_column(const perfd_event *event, const KeyName *column) {
        for (size_t i = 0; column->field && i < event->n_fields; i++)
                if (strcmp(event->fields[i].name, column->field) == 0)
                        return true;
        return column->part != KEY_NONE;
}

/* Before its first sample. */
static void add_event(Reading *r, const perfd_event *event) {
        if (event->id >= r->n_known) {
                r->is_known = must_have(reallocarray(r->is_known, event->id + 1, sizeof(*r->is_known)));
                memset(r->is_known + r->n_known, false, event->id + 1 - r->n_known);
                r->n_known = event->id + 1;
        }
        if (r->is_known[event->id])
                return;
        subject_add_event(&r->top.subjects[0], event, event->name);
        for (size_t i = 0; i < r->top.subjects[0].n_columns; i++)
                r->is_found[i] |= has_column(event, &r->top.subjects[0].columns[i]);
        r->is_known[event->id] = true;
}

static bool take(void *userdata, const SourceSample *sample) {
        Reading *r = userdata;
        const uint8_t *key;
        size_t length;

        add_event(r, perfd_item_event(sample->item));
        key = subject_encode(&r->top.subjects[0], sample->item, sample->n_frames > 0 ? sample->frames[0].name : NULL, &length);
        tally_add(&r->top.tally, key, length, sample->weight);
        return true;
}

/* A field that no sample has is a mistake in its name, unless there are no samples. */
static int check_fields(const Reading *r) {
        const Subject *s = &r->top.subjects[0];
        const char *path = r->top.options->input;
        int code = 0;

        for (size_t i = 0; i < s->n_columns && r->n_known > 0; i++)
                if (!r->is_found[i])
                        code = perfctl_fail(r->top.p, PERFCTL_FAILED, "%s: no sample has a field '%s', and it is none of " SUBJECT_WORDS ": `perfctl script -i %s` "
                                            "shows the fields", path, s->columns[i].text, path);
        return code;
}

static void on_end(void *userdata) {
        Reading *r = userdata;

        r->code = check_fields(r);
        if (r->code != 0)
                return;
        top_turn(&r->top);
        top_print(&r->top, 0);
}

int top_read(Perfctl *p, const TopOptions *options) {
        Reading r = { .is_known = NULL };
        SampleSource source = { .input = options->input, .order = PERFD_RECORDING_ORDER_TIME, .userdata = &r, .take = take, .end = on_end };
        int code = top_init(&r.top, p, options);

        source.has_names = subject_has_frames(&r.top.subjects[0]);
        source.frames_max = 1;
        r.is_found = must_have(calloc(r.top.subjects[0].n_columns + 1, sizeof(*r.is_found)));
        if (code == 0)
                code = sample_source_run(p, &source);
        if (code == 0)
                code = r.code;
        top_deinit(&r.top);
        free(r.is_known);
        free(r.is_found);
        return code;
}
