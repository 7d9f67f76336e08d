/* A recording has one window, from its beginning to its end. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/samples/sample-source.h"
#include "client/perfctl/top/top.h"

typedef struct Reading {
        Top top;
        bool *is_known; /* of the event with that id, which are 1, 2, ... */
        size_t n_known;
} Reading;

/* Before its first sample. */
static void add_event(Reading *r, const perfd_event *event) {
        if (event->id >= r->n_known) {
                r->is_known = must_have(reallocarray(r->is_known, event->id + 1, sizeof(*r->is_known)));
                memset(r->is_known + r->n_known, false, event->id + 1 - r->n_known);
                r->n_known = event->id + 1;
        }
        if (!r->is_known[event->id])
                subject_add_event(&r->top.subjects[0], event, event->name);
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

static void on_end(void *userdata) {
        Reading *r = userdata;

        top_turn(&r->top);
        top_print(&r->top, 0);
}

int top_read(Perfctl *p, const TopOptions *options) {
        Reading r = { .is_known = NULL };
        SampleSource source = { .input = options->input, .order = PERFD_RECORDING_ORDER_TIME, .userdata = &r, .take = take, .end = on_end };
        int code = top_init(&r.top, p, options);

        source.has_names = subject_has_frames(&r.top.subjects[0]);
        if (code == 0)
                code = sample_source_run(p, &source);
        top_deinit(&r.top);
        free(r.is_known);
        return code;
}
