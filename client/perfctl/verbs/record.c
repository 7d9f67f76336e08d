/* The command line of a recording; recorder/recorder.c makes it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/events/default-event.h"
#include "client/perfctl/events/event-words.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/recorder/recorder.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/command-line/stream-options.h"
#include "client/perfctl/events/target.h"

#define LATENCY UINT64_C(1000000000) /* ns: nobody looks at a sample before the recording has ended, and wakeups cost */
#define RATE "999" /* times a second, of the event that nobody has named and of those named without a rate: not in step with what a program does each ms, or each 10 ms */
#define LEVEL_MAX 19
#define ROTATE_BYTES_MIN (UINT64_C(64) << 10)
#define ROTATE_NSEC_MIN UINT64_C(1000000000)

static const uint32_t side_records = PERFD_RECORD_BIT(PERFD_COMM) | PERFD_RECORD_BIT(PERFD_FORK) | PERFD_RECORD_BIT(PERFD_EXIT) |
                                     PERFD_RECORD_BIT(PERFD_MMAP2) | PERFD_RECORD_BIT(PERFD_KSYMBOL) | PERFD_RECORD_BIT(PERFD_BPF_EVENT);

static int parse_level(const Perfctl *p, uint64_t *ret) {
        const char *level = perfctl_get(p, "compression-level");
        int r;

        *ret = 0;
        if (!level)
                return 0;
        r = number_parse(p, "--compression-level: ", level, ret);
        if (r == 0 && (*ret == 0 || *ret > LEVEL_MAX))
                r = perfctl_fail(p, PERFCTL_USAGE, "--compression-level: '%s' is none of 1 to %d", level, LEVEL_MAX);
        return r;
}

static int check_output(const Perfctl *p, const char *path) {
        if (!*path)
                return perfctl_fail(p, PERFCTL_USAGE, "--output: the value is empty");
        if (strcmp(path, "-") != 0)
                return 0;
        if (p->command)
                return perfctl_fail(p, PERFCTL_USAGE, "--output -: stdout is the command's: name a file");
        return isatty(STDOUT_FILENO) ? perfctl_fail(p, PERFCTL_USAGE, "--output -: a recording is not for a terminal: name a file, or a pipe "
                                                    "behind it") : 0;
}

/* "100M" or "10m": one of them is no form of the other. */
static int parse_rotation(const Perfctl *p, Rotation *ret) {
        const char *rotate = perfctl_get(p, "rotate"), *keep = perfctl_get(p, "keep");

        if (keep && !rotate)
                return perfctl_fail(p, PERFCTL_USAGE, "--keep is for files that --rotate makes");
        if (rotate && !quantity_parse_time(rotate, &ret->nsec) && !quantity_parse_size(rotate, &ret->bytes))
                return perfctl_fail(p, PERFCTL_USAGE, "--rotate: '%s' is neither a size such as 100M nor a time such as 10m", rotate);
        if (rotate && (ret->nsec > 0 ? ret->nsec < ROTATE_NSEC_MIN : ret->bytes < ROTATE_BYTES_MIN))
                return perfctl_fail(p, PERFCTL_USAGE, "--rotate: '%s' is less than 64 KiB or 1 s", rotate);
        return keep ? number_parse(p, "--keep: ", keep, &ret->keep) : 0;
}

static int verb_record_run(Perfctl *p) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        const char *path = perfctl_get(p, "output");
        uint64_t duration = 0, level = 0;
        RecorderFiles files = { .path = NULL };
        int r = command_check(p);

        s.payload = PERFD_PAYLOAD_RAW;
        s.records = side_records;
        s.latency = LATENCY;
        if (!path)
                path = "perf.data";
        if (r == 0)
                r = parse_level(p, &level);
        if (r == 0)
                r = stream_options_parse(p, &s, &duration);
        if (r == 0)
                r = parse_rotation(p, &files.rotation);
        if (r == 0)
                r = check_output(p, path);
        if (r == 0 && strcmp(path, "-") == 0 && perfctl_get(p, "rotate"))
                r = perfctl_fail(p, PERFCTL_USAGE, "--rotate: stdout is one file: name it with --output");
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0 && (p->command || spec_options_given(p) || perfctl_get(p, "all-cpus")))
                files.is_default = default_event_choose(p, RATE);
        files.path = path;
        files.level = (int)level;
        return r == 0 ? recorder_run(p, &s, &files, duration, perfctl_get(p, "allow-loss")) : r;
}

const Verb verb_record = {
        .name = "record",
        .arguments = "[EVENT...]",
        .help = "write samples to a file that perf report reads",
        .options = {
                EVENT_OPTION(WORDS_SHOWN),
                { .name = "output", .letter = 'o', .argument = "FILE", .help = "the file, perf.data if it is not given; -: a pipe on stdout",
                  .words = WORDS_FILES },
                { .name = "rotate", .argument = "SIZE|TIME", .help = "begin another file after 100M, or 10m: FILE.YYYYMMDDhhmmsscc" },
                { .name = "keep", .argument = "N", .help = "with --rotate: only the last N files" },
                { .name = "for", .argument = "TIME", .help = "stop after 500ms, 10s, 2m" },
                { .name = "compression-level", .letter = 'z', .argument = "N", .otherwise = "1",
                  .help = "compress by zstd: 1, fast, which needs no N, to 19, small" },
                { .name = "latency", .argument = "TIME", .help = "samples come within this; 1s" },
                { .name = "allow-loss", .help = "exit with 0, not 4, if samples were lost" },
                { .name = "queue", .argument = "SIZE", .help = "size of the queue in the daemon, e.g. 4MiB" },
                ALL_CPUS_OPTION,
                TARGET_OPTIONS,
                SPEC_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .frequency = RATE,
        .falls_back = true,
        .has_command = true,
        .run = verb_record_run,
};
