/* Samples of a recording or a live host, added up by what they have in common; of two recordings side by side. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/print/list-text.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/report/graph-words.h"
#include "client/perfctl/report/print.h"
#include "client/perfctl/samples/choice.h"
#include "client/perfctl/samples/live-or-file.h"

#define SORT_DEFAULT "comm,dso,symbol" /* as perf-report(1) */
#define CALL_LIMIT_DEFAULT 0.5         /* percent; the same */
#define DURATION_DEFAULT UINT64_C(10000000000) /* ns, of a live host */

typedef struct Reports {
        Perfctl *p;
        SumsOptions options;
        ShownLimits limits;
        TextIds texts;
        FrameIds frames;
        const char **keys; /* of one block of memory, which their names point into */
        Sums sums, old;
        SampleChoice choice;
        bool lacks_field; /* of one that is asked for: nothing is shown then */
} Reports;

/* An id of sums_stack(), or where there are none of the innermost frame, by the number of the frames in the source. */
typedef struct KnownStack {
        uint64_t number; /* 0: free */
        uint32_t id;     /* ID_NONE: there is no frame */
} KnownStack;

#define N_KNOWN_STACKS ((size_t)1 << 14) /* a power of two */

/* What is read now. */
typedef struct Input {
        Reports *reports;
        Sums *sums;
        const char *path; /* NULL: the live host */
        const char *name; /* of either, for messages */
        uint32_t *stack;
        size_t room;
        KnownStack *known;
        int failure; /* exit status */
} Input;

/* ---- the command line -------------------------------------------------------------------------------------------------------- */

static int parse_keys(const Perfctl *p, Reports *r) {
        const char *sort = perfctl_get(p, "sort");

        r->keys = list_split(sort ? sort : SORT_DEFAULT, &r->options.n_keys);
        r->options.keys = must_have(calloc(r->options.n_keys, sizeof(*r->options.keys)));
        for (size_t i = 0; i < r->options.n_keys; i++) {
                for (size_t k = 0; k < i; k++)
                        if (strcmp(r->keys[k], r->keys[i]) == 0)
                                return perfctl_fail(p, PERFCTL_USAGE, "--sort: '%s' was already given", r->keys[i]);
                if (!dimension_init(&r->options.keys[i], r->keys[i]))
                        return perfctl_fail(p, PERFCTL_USAGE, "--sort: '%s' is not a field, nor an element of one, as args[2], nor any of " DIMENSION_NAMES,
                                            r->keys[i]);
                r->options.is_of_all |= r->options.keys[i].kind == DIMENSION_EVENT;
        }
        return 0;
}

/* Those that are called as what they are of. Of the live host pid, tid and cpu say what is traced, with the children of a process. */
static int parse_filters(const Perfctl *p, Filters *f) {
        static const char *const names[] = { "comm", "dso", "symbol", "pid", "tid", "cpu" };
        const size_t n_names = sizeof(names) / sizeof(*names) - (perfctl_get(p, "input") ? 0 : 3);

        return filters_add_options(p, f, names, n_names);
}

static int parse_percent(const Perfctl *p, const char *option, double *ret) {
        const char *text = perfctl_get(p, option);
        char *end;

        if (!text)
                return 0;
        *ret = strtod(text, &end);
        if (end == text || (*end != '\0' && strcmp(end, "%") != 0) || !(*ret >= 0 && *ret <= 100))
                return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not a percentage from 0 to 100", option, text);
        return 0;
}

/* What times are rounded down to. */
static int parse_quantum(const Perfctl *p, SumsOptions *o) {
        const char *text = perfctl_get(p, "time-quantum");
        bool has_time = false;
        uint64_t quantum = DIMENSION_QUANTUM;

        if (text && (!quantity_parse_time(text, &quantum) || quantum == 0))
                return perfctl_fail(p, PERFCTL_USAGE, "--time-quantum: '%s' is not a time such as 10ms or 1s", text);
        for (size_t i = 0; i < o->n_keys; i++) {
                has_time |= o->keys[i].kind == DIMENSION_TIME;
                o->keys[i].quantum = quantum;
        }
        return text && !has_time ? perfctl_fail(p, PERFCTL_USAGE, "--time-quantum is of the key time: it needs --sort time,...") : 0;
}

static int check_source(const Perfctl *p) {
        static const char *const means[] = { "pid", "tid", "cpu", "both-callchains", NULL };

        if (perfctl_get(p, "input") && perfctl_get(p, "where"))
                return perfctl_fail(p, PERFCTL_USAGE, "--where is for the live host: not with --input, of which --only chooses samples");
        return sample_source_check(p, means);
}

/* -g of a recording, with what perf-report(1) has behind it. */
static int parse_graph(Reports *r) {
        Perfctl *p = r->p;
        GraphWords words;
        int code;

        r->options.has_children = perfctl_get(p, "children");
        r->options.has_graph = perfctl_get(p, "graph");
        if (r->options.has_children && perfctl_get(p, "no-children"))
                return perfctl_fail(p, PERFCTL_USAGE, "--children and --no-children exclude each other");
        if (!perfctl_get(p, "input") || !perfctl_get(p, "both-callchains"))
                return 0;
        code = graph_words_take(p, &words);
        r->options.has_graph |= words.has_graph;
        r->options.has_children |= words.has_callees;
        if (words.has_limit)
                r->limits.call_percent = words.limit;
        return code;
}

static int parse_options(Reports *r) {
        const Perfctl *p = r->p;
        int code = parse_keys(p, r);

        r->limits.call_percent = CALL_LIMIT_DEFAULT;
        r->options.has_inlined = perfctl_get(p, "inline");
        if (code == 0)
                code = check_source(p);
        if (code == 0)
                code = parse_graph(r);
        if (code == 0)
                code = parse_quantum(p, &r->options);
        if (code == 0)
                code = parse_filters(p, &r->options.filters);
        if (code == 0)
                code = parse_percent(p, "percent-limit", &r->limits.percent);
        if (code == 0)
                code = parse_percent(p, "call-limit", &r->limits.call_percent);
        if (code == 0)
                code = number_parse(p, "--top: ", perfctl_get(p, "top"), &r->limits.top);
        if (code == 0 && r->options.has_graph && perfctl_get(p, "diff"))
                code = perfctl_fail(p, PERFCTL_USAGE, "--graph and --diff exclude each other");
        return code;
}

/* ---- samples ----------------------------------------------------------------------------------------------------------------- */

static bool has_lines(const Sums *s) {
        return s->has_line_key || s->options->filters.has_lines;
}

/* n_max of them at most. Without inlined functions what they are in is at the line of the innermost one. Gives how many there are. */
static size_t fill_stack(Input *in, const SourceSample *sample, size_t n_max) {
        const bool has_inlined = in->sums->options->has_inlined;
        const NamedFrame *first = NULL; /* of its address */
        size_t n = 0;

        for (size_t i = 0; i < sample->n_frames && n < n_max; i++) {
                const NamedFrame *frame = &sample->frames[i];

                if (!first || has_inlined)
                        first = frame;
                if (frame->is_inlined && !has_inlined)
                        continue;
                in->stack[n++] = frame_ids_add(&in->reports->frames, frame, has_lines(in->sums) ? first->name : NULL);
                first = NULL;
        }
        return n;
}

static size_t find_frames(Input *in, const SourceSample *sample) {
        const size_t n = sums_frames_needed(in->sums, sample->n_frames);

        if (n > in->room) {
                in->room = 2 * n;
                in->stack = must_have(reallocarray(in->stack, in->room, sizeof(*in->stack)));
        }
        return fill_stack(in, sample, n);
}

/* The id of what sums ask of the frames. */
static uint32_t find_known(Input *in, const SourceSample *sample) {
        KnownStack *known = &in->known[sample->frames_number & (N_KNOWN_STACKS - 1)];

        if (sample->frames_number == 0 || known->number != sample->frames_number) {
                const size_t n = find_frames(in, sample);

                *known = (KnownStack){ .number = sample->frames_number, .id = n > 0 ? in->stack[0] : ID_NONE };
                if (sums_has_stacks(in->sums))
                        known->id = sums_stack(in->sums, in->stack, n);
        }
        return known->id;
}

static bool take_sample(Input *in, const SourceSample *sample) {
        const uint32_t id = find_known(in, sample);

        if (sums_has_stacks(in->sums))
                return sums_take_stack(in->sums, sample->item, sample->event, sample->event_number, sample->weight, id);
        return sums_take(in->sums, sample->item, sample->event, sample->event_number, sample->weight, &id, id != ID_NONE);
}

static bool take(void *userdata, const SourceSample *sample) {
        Input *in = userdata;

        if (take_sample(in, sample))
                return true;
        in->failure = perfctl_fail(in->reports->p, PERFCTL_FAILED, "%s: the sum of the periods of %s is more than 64 bits: --sort event,... counts samples",
                                   in->path, sample->event);
        return false;
}

/* A field that no sample has is a mistake in its name, unless there are no samples. */
static int check_fields(Input *in) {
        const SumsOptions *o = &in->reports->options;
        int code = 0;

        for (size_t i = 0; i < o->n_keys && in->sums->n_groups > 0; i++)
                if (o->keys[i].kind == DIMENSION_FIELD && !o->keys[i].was_found)
                        code = perfctl_fail(in->reports->p, PERFCTL_FAILED, "%s: no sample has a field '%s', and it is none of " DIMENSION_NAMES ": `perfctl %s%s` "
                                            "shows the fields", in->name, o->keys[i].text, in->path ? "script -i " : "show EVENT", in->path ? in->path : "");
        in->reports->lacks_field |= code != 0;
        return code;
}

/* An empty table is no answer. */
static void tell_none(const Reports *r, const Sums *s, const char *path) {
        uint64_t n_samples = 0, n_rows = 0;

        for (size_t i = 0; i < s->n_groups; i++) {
                n_samples += s->groups[i].all.samples;
                n_rows += s->groups[i].rows.n;
        }
        if (n_samples > 0 && n_rows == 0)
                sample_source_tell_none(r->p, path, n_samples);
}

static int read_input(Reports *r, const char *path, Sums *to) {
        Input in = { .reports = r, .sums = to, .path = path, .name = path ? path : "the live host",
                     .known = must_have(calloc(N_KNOWN_STACKS, sizeof(KnownStack))) };
        SampleSource source = { .input = path, .order = PERFD_RECORDING_ORDER_TIME, .duration = DURATION_DEFAULT, .where = perfctl_get(r->p, "where"),
                                .choice = &r->choice, .userdata = &in, .take = take };
        int code;

        sums_init(to, &r->options, &r->texts, &r->frames);
        source.frames_max = sums_frames_needed(to, SIZE_MAX);
        source.has_names = source.frames_max > 0;
        source.has_inlined = source.has_names && (has_lines(to) || r->options.has_inlined);
        code = sample_source_run(r->p, &source);
        frame_ids_forget_names(&r->frames);
        sums_finish(to);
        tell_none(r, to, path);
        free(in.stack);
        free(in.known);
        if (code == 0)
                code = in.failure;
        return code != 0 ? code : check_fields(&in);
}

static void print(Reports *r, bool has_old) {
        const ReportForm form = { .is_human = r->p->human || perfctl_get(r->p, "stdio"), .has_paths = perfctl_get(r->p, "verbose") };
        Shown shown;

        shown_init(&shown, &r->sums, has_old ? &r->old : NULL, &r->limits);
        if (r->p->json)
                report_print_json(&shown, &r->p->out);
        else
                report_print_text(&shown, &r->p->out, &form);
        shown_deinit(&shown);
}

/* What is damaged does not keep the rest from being shown. */
static int report(Reports *r) {
        const char *input = perfctl_get(r->p, "input"), *old = perfctl_get(r->p, "diff");
        int code = read_input(r, input, &r->sums), code_old = 0;

        if (old)
                code_old = read_input(r, old, &r->old);
        if (!r->lacks_field && (code == 0 || r->sums.n_groups > 0) && (code_old == 0 || r->old.n_groups > 0)) /* of a damaged one what is whole */
                print(r, old);
        return code != 0 ? code : code_old;
}

static int report_run(Perfctl *p) {
        Reports r = { .p = p };
        int code;

        text_ids_init(&r.texts);
        frame_ids_init(&r.frames, &r.texts);
        code = sample_choice_init(&r.choice, p, false);
        if (code == 0)
                code = parse_options(&r);
        if (code == 0)
                live_host_tell(p, DURATION_DEFAULT);
        if (code == 0)
                code = report(&r);
        sums_deinit(&r.sums);
        sums_deinit(&r.old);
        for (size_t i = 0; r.options.keys && i < r.options.n_keys; i++)
                dimension_deinit(&r.options.keys[i]);
        free(r.options.keys);
        free(r.keys);
        filters_deinit(&r.options.filters);
        sample_choice_deinit(&r.choice);
        frame_ids_deinit(&r.frames);
        text_ids_deinit(&r.texts);
        return code;
}

const Verb verb_report = {
        .name = "report",
        .arguments = "[EVENT...]",
        .help = "add up samples by function, thread or field",
        .options = {
                { .name = "input", .letter = 'i', .argument = "FILE", .help = "a recording; - is stdin; without it, of the live host",
                  .words = WORDS_FILES },
                { .name = "sort", .letter = 's', .argument = "KEY,...", .help = "a row for each comm, dso, symbol, cpu, FIELD, ...; comm,dso,symbol",
                  .choices = "comm pid tid cpu dso symbol line srcfile event time container unit cgroup exe uid" },
                { .name = "children", .help = "with what the functions called that a row's function called, each row once a sample" },
                { .name = "no-children", .help = "as it is without --children, for the words of perf" },
                { .name = "show-nr-samples", .letter = 'n', .help = "the number of samples, which is always there, for the words of perf" },
                { .name = "graph", .help = "below each row who called it; with --children what it called" },
                { .name = "inline", .help = "functions that the compiler inlined have rows and calls of their own; needs debug information" },
                { .name = "diff", .argument = "OLD", .help = "beside another recording: what has changed most comes first", .words = WORDS_FILES },
                { .name = "comm", .argument = "NAME,...", .help = "only samples of threads of these names" },
                { .name = "dso", .argument = "FILE,...", .help = "only rows of these files, by path or name" },
                { .name = "symbol", .argument = "NAME,...", .help = "only rows of these functions" },
                { .name = "only", .argument = "KEY=VALUE,...", .help = "only where a key of --sort has one of these values", .repeats = true },
                TIME_RANGE_OPTION,
                { .name = "time-quantum", .argument = "TIME", .help = "of the key time: how long a row is; 100ms" },
                { .name = "percent-limit", .argument = "PERCENT", .help = "without rows of less than that" },
                { .name = "call-limit", .argument = "PERCENT", .help = "--graph: without calls of less than that of all samples; 0.5" },
                { .name = "top", .argument = "N", .help = "only the N largest rows of each event" },
                { .name = "verbose", .letter = 'v', .help = "whole paths of files, not their names alone" },
                { .name = "stdio", .help = "tables as on a terminal, also where stdout is none" },
                { .name = "where", .argument = "EXPR", .help = "of the live host: only samples that match this expression", .words = WORDS_FIELDS },
                DEBUGINFOD_OPTION,
                SAMPLE_SOURCE_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .has_command = true,
        .run = report_run,
};
