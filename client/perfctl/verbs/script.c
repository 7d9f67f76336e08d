/* Samples of a recording, each as `watch` would print it. */
#include <string.h>

#include "client/perfctl/item/print.h"
#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/samples/choice.h"
#include "client/perfctl/samples/live-or-file.h"

typedef struct Script {
        Perfctl *p;
        ItemText text;
        Kallsyms symbols; /* none: addresses of print formats are those of another boot, or another host */
        ItemPlans plans;
} Script;

static void on_event(void *userdata, const perfd_recorded_event *e) {
        Script *s = userdata;

        item_text_add_event(&s->text, e->name);
}

static bool put(void *userdata, const SourceSample *sample) {
        Script *s = userdata;

        s->plans.frames = s->text.frames = sample->frames;
        s->plans.n_frames = s->text.n_frames = sample->n_frames;
        if (s->p->json)
                item_print_json(&s->p->out, &s->plans, sample->item, sample->wall, false);
        else
                item_print_text(&s->text, sample->item);
        return !s->p->out.error;
}

/* Only by time each sample has the name that its thread had: what CPUs have written late comes late in the other orders. */
static int parse_order(const Perfctl *p, perfd_recording_order *ret) {
        static const char *const words[] = { [PERFD_RECORDING_ORDER_FILE] = "file",
                                             [PERFD_RECORDING_ORDER_CAUSAL] = "causal",
                                             [PERFD_RECORDING_ORDER_TIME] = "time" };
        const char *word = perfctl_get(p, "order");

        *ret = PERFD_RECORDING_ORDER_TIME;
        for (size_t i = 0; word && i < sizeof(words) / sizeof(*words); i++)
                if (strcmp(word, words[i]) == 0) {
                        *ret = (perfd_recording_order)i;
                        word = NULL;
                }
        return word ? perfctl_fail(p, PERFCTL_USAGE, "--order: '%s' is none of: file causal time", word) : 0;
}

static int print(Perfctl *p, SampleSource *source) {
        Script s = { .p = p,
                     .text = { .out = &p->out, .time.form = TIME_CLOCK, .is_padded = p->human },
                     .plans = { .form = p->json ? ITEM_FORM_JSON : ITEM_FORM_TEXT, .has_frames = true } };
        int code;

        s.plans.has_lines = source->has_inlined;
        s.text.symbols = &s.symbols;
        s.text.plans = p->human ? NULL : &s.plans;
        source->userdata = &s;
        code = sample_source_run(p, source);
        item_plans_deinit(&s.plans);
        kallsyms_deinit(&s.symbols);
        return code;
}

static int script_run(Perfctl *p) {
        const char *input = perfctl_get(p, "input");
        SampleChoice choice;
        SampleSource source = { .input = input ? input : "perf.data", .has_names = !perfctl_get(p, "no-symbols"),
                                .has_inlined = perfctl_get(p, "inline"), .has_chains_only = true, .choice = &choice, .take = put, .event = on_event };
        int code = sample_choice_init(&choice, p, true);

        if (code == 0)
                code = stray_recording_check(p);
        if (code == 0)
                code = parse_order(p, &source.order);
        if (code == 0 && source.has_inlined && !source.has_names)
                code = perfctl_fail(p, PERFCTL_USAGE, "--inline and --no-symbols exclude each other");
        if (code == 0)
                code = print(p, &source);
        sample_choice_deinit(&choice);
        return code;
}

const Verb verb_script = {
        .name = "script",
        .arguments = "[EVENT...]",
        .help = "print the samples of a recording of perf",
        .options = { { .name = "input", .letter = 'i', .argument = "FILE", .help = "the recording; - is stdin; perf.data if it is not given",
                       .words = WORDS_FILES },
                     { .name = "order", .argument = "file|causal|time", .choices = "file causal time",
                       .help = "as in the file, no process's start behind its samples, or by time, which is the default" },
                     { .name = "inline", .help = "callchains with source lines and inlined functions; needs debug information" },
                     { .name = "no-symbols", .help = "callchains as addresses only" },
                     { .name = "pid", .argument = "PID,...", .help = "only samples of these processes" },
                     { .name = "tid", .argument = "TID,...", .help = "only samples of these threads" },
                     { .name = "cpu", .letter = 'C', .argument = "CPU,...", .help = "only samples of these CPUs, as in 0-3,8" },
                     DEBUGINFOD_OPTION,
                     SAMPLE_CHOICE_OPTIONS },
        .max_arguments = VERB_ANY_NUMBER,
        .is_offline = true,
        .run = script_run,
};
