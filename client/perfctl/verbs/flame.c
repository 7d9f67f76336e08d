/* A flame graph as one page: of a recording, of two and what differs between them, or of the live host, which may differ from a recording. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/samples/off-cpu-profile.h"
#include "client/perfctl/print/output-file.h"
#include "client/perfctl/samples/choice.h"
#include "client/perfctl/samples/live-or-file.h"
#include "client/profile/flame.h"

#define LIVE_NSEC UINT64_C(10000000000) /* if --for does not say another time */

static bool is_on_terminal(const Perfctl *p) {
        const char *path = perfctl_get(p, "output");

        return p->human && path && strcmp(path, "-") == 0;
}

/* Samples of one recording, or of the live host for some time. NULL after a message; of a damaged one, whose status is not 0, what is whole is drawn. */
static SampleProfile *read_profile(Perfctl *p, const char *input, SampleChoice *choice, int *ret_code) {
        const bool is_off_cpu = perfctl_get(p, "off-cpu");
        SampleProfile *s = is_off_cpu ? sample_profile_new(p, OFF_CPU_VALUE, "nanoseconds") : sample_profile_new(p, "samples", "count");
        const SampleSource source = { .input = input, .choice = choice, .has_progress = !is_on_terminal(p), .duration = LIVE_NSEC,
                                      .has_inlined = perfctl_get(p, "inline") };

        *ret_code = is_off_cpu ? off_cpu_profile_run(p, s, source) : sample_profile_run(s, source);
        return sample_profile_get(s) && !sample_profile_has_failed(s) ? s : sample_profile_free(s);
}

static int write_page(Perfctl *p, const Profile *profile, const Profile *older, const char *title) {
        const char *output = perfctl_get(p, "output"), *path = output ? output : "flame.html";
        OutputFile file = OUTPUT_FILE_NULL;
        int code = output_file_open(p, path, &file), r;

        if (code != 0)
                return code;
        output_file_limit(&file, perfctl_get(p, "input"));
        output_file_limit(&file, perfctl_get(p, "diff"));
        r = output_file_check(file.out, flame_write(file.out, profile, older, title));
        if (r != 0)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: %s", file.part ? file.path : "stdout", sample_profile_error(r));
        r = output_file_close(p, &file, code == 0);
        if (code == 0 && r == 0)
                output_file_tell(p, path);
        return code != 0 ? code : r;
}

static int draw(Perfctl *p, SampleChoice *choice) {
        const char *input = perfctl_get(p, "input"), *diff = perfctl_get(p, "diff"), *title = perfctl_get(p, "title");
        SampleProfile *profile, *older = NULL;
        int code, code_older = 0, r;

        profile = read_profile(p, input, choice, &code);
        if (profile && diff)
                older = read_profile(p, diff, choice, &code_older);
        if (profile && (!diff || older)) {
                r = write_page(p, sample_profile_get(profile), older ? sample_profile_get(older) : NULL, title ? title : input ? input : p->host ? p->host : "live");
                code = r != 0 ? r : code;
        }
        sample_profile_free(profile);
        sample_profile_free(older);
        return code != 0 ? code : code_older;
}

static int flame_run(Perfctl *p) {
        const char *input = perfctl_get(p, "input"), *diff = perfctl_get(p, "diff");
        SampleChoice choice;
        int code = sample_source_check(p, sample_choice_targets);

        if (code != 0)
                return code;
        if (!input && p->n_events == 0 && perfctl_get(p, "off-cpu"))
                return perfctl_fail(p, PERFCTL_USAGE, "--off-cpu of the live host needs its event: name sched:sched_switch");
        for (size_t i = 0; i < 2; i++)
                if ((i == 0 ? input : diff) && output_is_input(perfctl_get(p, "output"), i == 0 ? input : diff))
                        return perfctl_fail(p, PERFCTL_USAGE, "--output: %s is the recording itself", perfctl_get(p, "output"));
        code = sample_choice_init(&choice, p, true);
        if (code == 0 && perfctl_get(p, "off-cpu"))
                code = sample_choice_check_off_cpu(&choice, p);
        if (code == 0) {
                live_host_tell(p, LIVE_NSEC);
                code = draw(p, &choice);
        }
        sample_choice_deinit(&choice);
        return code;
}

const Verb verb_flame = {
        .name = "flame",
        .arguments = "[EVENT...]",
        .help = "draw a flame graph of a recording or the live host, for a browser",
        .options = { { .name = "input", .letter = 'i', .argument = "FILE", .help = "a recording; - is stdin; the live host if it is not given",
                       .words = WORDS_FILES },
                     { .name = "output", .letter = 'o', .argument = "FILE", .help = "the page; - is stdout; flame.html if it is not given",
                       .words = WORDS_FILES },
                     { .name = "inline", .help = "functions that the compiler inlined are frames of their own; needs debug information" },
                     { .name = "off-cpu", .help = "how long threads did not run, and where, from sched:sched_switch" },
                     { .name = "diff", .argument = "OLD", .help = "an older recording: what grew since is red, what shrank blue",
                       .words = WORDS_FILES },
                     { .name = "title", .argument = "TEXT", .help = "above the graph; the recording's name if it is not given" },
                     SAMPLE_CHOICE_OPTIONS,
                     DEBUGINFOD_OPTION,
                     SAMPLE_SOURCE_OPTIONS },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .has_command = true,
        .run = flame_run,
};
