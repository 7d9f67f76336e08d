/* Samples of a recording, each as `watch` would print it. */
#include <string.h>

#include "client/perfctl/base/number.h"
#include "client/perfctl/item/print.h"
#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/samples/choice.h"
#include "client/perfctl/samples/live-or-file.h"
#include "client/perfctl/samples/sample-columns.h"

typedef struct Script {
        Perfctl *p;
        ItemText text;
        Kallsyms symbols; /* none: addresses of print formats are those of another boot, or another host */
        ItemPlans plans;
        SampleColumns *columns; /* NULL: lines as of `watch` */
} Script;

static void on_event(void *userdata, const perfd_recorded_event *e) {
        Script *s = userdata;

        item_text_add_event(&s->text, e->name);
}

static bool put(void *userdata, const SourceSample *sample) {
        Script *s = userdata;

        if (s->columns) {
                sample_columns_print(s->columns, &s->p->out, sample);
                return !s->p->out.error;
        }
        s->plans.frames = s->text.frames = sample->is_place ? NULL : sample->frames;
        s->plans.n_frames = s->text.n_frames = sample->is_place ? 0 : sample->n_frames;
        s->plans.frames_number = sample->is_place ? 0 : sample->frames_number;
        s->text.place = sample->is_place && sample->n_frames > 0 ? sample->frames : NULL;
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

static int print(Perfctl *p, SampleSource *source, SampleColumns *columns) {
        Script s = { .p = p, .columns = columns,
                     .text = { .out = &p->out, .time.form = TIME_CLOCK, .is_padded = p->human, .has_no_calls = perfctl_get(p, "hide-call-graph") },
                     .plans = { .form = p->json ? ITEM_FORM_JSON : ITEM_FORM_TEXT, .has_frames = true } };
        int code;

        s.plans.has_lines = source->has_inlined;
        s.plans.has_no_calls = perfctl_get(p, "hide-call-graph");
        s.text.symbols = &s.symbols;
        s.text.is_cut = perfctl_get(p, "max-stack") || s.text.has_no_calls;
        s.text.plans = p->human ? NULL : &s.plans;
        source->userdata = &s;
        code = sample_source_run(p, source);
        if (code == 0 && columns)
                code = sample_columns_check(columns, p, source->input);
        item_plans_deinit(&s.plans);
        kallsyms_deinit(&s.symbols);
        return code;
}

/* What they show is what is read: names take most of the time. */
static int choose_columns(const Perfctl *p, SampleSource *source, SampleColumns *columns) {
        const char *fields = perfctl_get(p, "fields");
        const bool has_calls = !perfctl_get(p, "hide-call-graph");
        uint64_t depth = 0;
        int r = number_parse(p, "--max-stack: ", perfctl_get(p, "max-stack"), &depth);

        if (r != 0)
                return r;
        source->has_places = !fields && !p->json;
        source->frames_max = has_calls ? depth : 1;
        source->has_no_chains = !has_calls && !fields;
        if (depth > 0 && has_calls && !source->has_names)
                return perfctl_fail(p, PERFCTL_USAGE, "--max-stack and --no-symbols exclude each other");
        source->has_names &= has_calls || !p->json;
        if (!fields)
                return 0;
        if (p->json)
                return perfctl_fail(p, PERFCTL_USAGE, "--fields is for text: with --json each sample has all keys, and jq(1) chooses some, as jq -c '{time,comm,fields}'");
        r = sample_columns_init(columns, p, fields);
        if (r == 0 && !source->has_names && sample_columns_have_names(columns))
                r = perfctl_fail(p, PERFCTL_USAGE, "--no-symbols and --fields sym, symoff, dso and srcline exclude each other");
        for (size_t i = 0; i < columns->n; i++)
                columns->has_calls |= has_calls && (columns->list[i].kind == COLUMN_IP || columns->list[i].kind == COLUMN_SYMBOL ||
                                                    columns->list[i].kind == COLUMN_PLACE);
        columns->has_calls &= source->has_names;
        source->has_names = sample_columns_have_names(columns);
        source->frames_max = columns->has_calls ? depth : 1;
        columns->has_inlined = source->has_inlined;
        source->has_inlined |= sample_columns_have_lines(columns);
        source->has_chains_only = false;
        return r;
}

static int script_run(Perfctl *p) {
        const char *input = perfctl_get(p, "input");
        SampleChoice choice;
        SampleColumns columns = { .list = NULL };
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
                code = choose_columns(p, &source, &columns);
        if (code == 0)
                code = print(p, &source, perfctl_get(p, "fields") ? &columns : NULL);
        sample_columns_deinit(&columns);
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
                     { .name = "fields", .letter = 'F', .argument = "COLUMN,...", .help = "only these: comm, time, event, ip, sym, FIELD, ...; +COLUMN, -COLUMN: changed",
                       .choices = "comm tid pid time cpu event period addr trace ip sym symoff dso srcline" },
                     { .name = "hide-call-graph", .letter = 'G', .help = "without callchains" },
                     { .name = "max-stack", .argument = "N", .help = "callchains with their N innermost functions only" },
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
