/* Recordings, and sums of the live host, in the forms of other tools. */
#include <string.h>
#include <unistd.h>

#include "client/perfctl/export/export.h"
#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/print/output-file.h"
#include "client/perfctl/samples/choice.h"
#include "client/perfctl/samples/live-or-file.h"

#define DURATION UINT64_C(10000000000) /* ns, of the live host */
#define FORMATS "folded perfetto pprof speedscope csv jsonl"

static const ExportFormat formats[] = {
        { "folded", false, true, export_folded },
        { "perfetto", true, false, export_perfetto },
        { "pprof", true, true, export_pprof },
        { "speedscope", false, true, export_speedscope },
        { "csv", false, false, export_csv },
        { "jsonl", false, false, export_jsonl },
};

static const ExportFormat *find_format(const Perfctl *p) {
        const char *name = perfctl_get(p, "to");

        if (!name)
                (void)perfctl_fail(p, PERFCTL_USAGE, "--to says which form: one of: " FORMATS);
        for (size_t i = 0; name && i < sizeof(formats) / sizeof(*formats); i++)
                if (strcmp(formats[i].name, name) == 0)
                        return &formats[i];
        if (name)
                (void)perfctl_fail(p, PERFCTL_USAGE, "--to: '%s' is none of: " FORMATS, name);
        return NULL;
}

static int write_file(Perfctl *p, const ExportFormat *format, const SampleSource *source, const char *output) {
        OutputFile file = OUTPUT_FILE_NULL;
        bool is_whole = false;
        int code = output_file_open(p, output, &file), r;

        if (code != 0)
                return code;
        output_file_limit(&file, source->input);
        code = format->write(p, *source, file.out, &is_whole);
        r = output_file_close(p, &file, is_whole);
        if (is_whole && r == 0)
                output_file_tell(p, output);
        return code != 0 ? code : r;
}

static int export_run(Perfctl *p) {
        const char *input = perfctl_get(p, "input"), *output = perfctl_get(p, "output");
        SampleChoice choice;
        SampleSource source = { .input = input, .duration = DURATION, .choice = &choice,
                                .has_inlined = perfctl_get(p, "inline") };
        const ExportFormat *format = find_format(p);
        int code;

        if (!format)
                return PERFCTL_USAGE;
        code = sample_source_check(p, sample_choice_targets);
        if (code != 0)
                return code;
        if (perfctl_get(p, "off-cpu") && !format->has_sums)
                return perfctl_fail(p, PERFCTL_USAGE, "--off-cpu is a sum: %s has samples one by one", format->name);
        if (source.has_inlined && !format->has_sums)
                return perfctl_fail(p, PERFCTL_USAGE, "--inline is for folded, pprof and speedscope: %s has no inlined functions", format->name);
        if (!input && !format->has_sums)
                return perfctl_fail(p, PERFCTL_USAGE, "%s is made of a recording: name it with --input; of the live host `perfctl watch --json` "
                                    "prints each sample", format->name);
        if (!input && p->n_events == 0 && perfctl_get(p, "off-cpu"))
                return perfctl_fail(p, PERFCTL_USAGE, "--off-cpu of the live host needs its event: name sched:sched_switch");
        output = output ? output : "-";
        source.has_progress = !p->human || strcmp(output, "-") != 0;
        if (format->is_binary && strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
                return perfctl_fail(p, PERFCTL_USAGE, "%s is not for a terminal: name a file with --output", format->name);
        if (input && output_is_input(output, input))
                return perfctl_fail(p, PERFCTL_USAGE, "--output: %s is the recording itself", output);
        code = sample_choice_init(&choice, p, true);
        if (code == 0 && perfctl_get(p, "off-cpu"))
                code = sample_choice_check_off_cpu(&choice, p);
        if (code == 0) {
                live_host_tell(p, DURATION);
                code = write_file(p, format, &source, output);
        }
        sample_choice_deinit(&choice);
        return code;
}

const Verb verb_export = {
        .name = "export",
        .arguments = "[EVENT...]",
        .help = "write a recording, or sums of the live host, in the form of another tool",
        .options = { { .name = "to", .argument = "FORM", .choices = FORMATS, .help = "folded, pprof, speedscope, perfetto, csv or jsonl" },
                     { .name = "off-cpu", .help = "of sums: how long threads did not run, and where, from sched:sched_switch" },
                     { .name = "inline", .help = "functions that the compiler inlined are frames of their own; needs debug information" },
                     { .name = "input", .letter = 'i', .argument = "FILE", .help = "a recording; - is stdin; the live host if it is not given",
                       .words = WORDS_FILES },
                     { .name = "output", .letter = 'o', .argument = "FILE", .help = "the file; stdout if it is not given, or -",
                       .words = WORDS_FILES },
                     SAMPLE_CHOICE_OPTIONS,
                     DEBUGINFOD_OPTION,
                     SAMPLE_SOURCE_OPTIONS },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .has_command = true,
        .run = export_run,
};
