/* Each sample as `script --json` prints it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/export/export.h"
#include "client/perfctl/item/print.h"

typedef struct Lines {
        Output *out;
        ItemPlans plans;
        bool has_samples;
} Lines;

static bool take(void *userdata, const SourceSample *sample) {
        Lines *l = userdata;

        l->has_samples = true;
        l->plans.frames = sample->frames;
        l->plans.n_frames = sample->n_frames;
        l->plans.frames_number = sample->frames_number;
        item_print_json(l->out, &l->plans, sample->item, sample->wall, false);
        return l->out->error == 0;
}

int export_jsonl(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole) {
        Lines l = { .out = must_have(malloc(sizeof(*l.out))), .plans = { .form = ITEM_FORM_JSON, .has_frames = true } };
        int code;

        output_init(l.out, fileno(out));
        source.has_names = source.has_chains_only = true; /* as of script */
        source.order = PERFD_RECORDING_ORDER_TIME;
        source.userdata = &l;
        source.take = take;
        code = sample_source_run(p, &source);
        output_flush(l.out);
        *ret_is_whole = l.out->error == 0 && (code == 0 || l.has_samples);
        if (l.out->error != 0 && l.out->error != EPIPE) /* nobody reads it any more */
                code = perfctl_fail(p, PERFCTL_FAILED, "%s", strerror(l.out->error));
        item_plans_deinit(&l.plans);
        free(l.out);
        return code;
}
