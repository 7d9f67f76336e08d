/* Of perf-stat(1), perf-record(1), perf-report(1) and perf-script(1) those that their users take for granted; what is only near a name is near.c's. */
#include "client/perfctl/base/option-advice.h"

#include <string.h>

typedef struct OptionAdvice {
        const char *name;
        char letter;
        const char *text;
} OptionAdvice;

static const OptionAdvice of_stat[] = {
        { "timeout", 0, "here it is --for TIME, as --for 500ms" },
        { "interval-count", 0, "here it is --count N" },
        { "summary", 0, "the sum is printed at Ctrl-C, if there is no --interval" },
        { "no-aggr", 0, "here it is -A, --per-cpu" },
        { "per-socket", 0, "it is not here: --per-cpu is the closest one" },
        { "per-die", 0, "it is not here: --per-cpu is the closest one" },
        { "per-core", 0, "it is not here: --per-cpu is the closest one" },
        { "per-node", 0, "it is not here: --per-cpu is the closest one" },
        { "per-thread", 0, "it is not here: `perfctl count task-clock -F 99 --by tid` samples threads" },
        { "for-each-cgroup", 0, "here it is --cgroup PATH for each, and --per-cgroup" },
        { "null", 'n', "here it is `perfctl stat dummy -- COMMAND`, which counts nothing" },
        { "delay", 'D', "it is not here: with --interval what happens at first is on lines of its own" },
        { "detailed", 'd', "name the events: -e L1-dcache-loads,L1-dcache-load-misses" },
        { "verbose", 'v', "it is not here: perfctl says all that it has to say" },
        { "metrics", 'M', "it is not here: what counts say of each other is printed beside them" },
        { "scale", 0, "counts are always scaled, and the part is shown" },
        { "no-inherit", 'i', "here it is --no-inherit" },
        { "log-fd", 0, "here it is --output /dev/fd/N" },
};

static const OptionAdvice of_record[] = {
        { "call-graph", 0, "here it is -g, or --callchain kernel,user, and --callchain dwarf" },
        { "switch-output", 0, "here it is --rotate SIZE or TIME" },
        { "switch-max-files", 0, "here it is --keep N" },
        { "quiet", 'q', "`2>/dev/null` leaves out what is said" },
        { "no-buildid", 'B', "build ids are always there" },
        { "buildid-all", 0, "build ids of all that is mapped are always there" },
        { "timestamp", 'T', "it is always there" },
        { "clockid", 'k', "times are of the daemon's clock, which perfd.yaml(5) chooses" },
        { "all-user", 0, "here it is --attr exclude-kernel=true" },
        { "all-kernel", 0, "here it is --attr exclude-user=true" },
        { "delay", 'D', "it is not here: what was at first is left out by `script` and `report` with --time" },
        { "mmap-pages", 'm', "rings are the daemon's; --queue SIZE is what may wait for this recorder" },
        { "no-inherit", 'i', "here it is --no-inherit" },
        { "verbose", 'v', "it is not here: perfctl says all that it has to say" },
};

static const OptionAdvice of_report[] = {
        { "fields", 0, "columns are those of --sort, behind the share, the number of samples and the sum of their periods" },
        { "no-inline", 0, "it is so without --inline" },
        { "call-graph", 0, "here it is --graph, or -g with -i" },
        { "comms", 0, "here it is --comm NAME,..." },
        { "dsos", 'd', "here it is --dso FILE,..." },
        { "symbols", 'S', "here it is --symbol NAME,..." },
        { "show-total-period", 0, "the sum of periods is always there" },
        { "header", 0, "`perfctl info FILE` prints what the header says" },
        { "header-only", 0, "`perfctl info FILE` prints what the header says" },
        { "stats", 0, "`perfctl info FILE` counts records of each type" },
        { "dump-raw-trace", 'D', "`perfctl info FILE` counts records, and `perfctl script -i FILE` prints samples" },
        { "field-separator", 0, "where stdout is no terminal, tabs are between columns" },
        { "force", 'f', "recordings of any owner are read" },
        { "tui", 0, "tables are all that there is: `perfctl flame` draws a page for a browser" },
        { "gtk", 0, "tables are all that there is: `perfctl flame` draws a page for a browser" },
};

static const OptionAdvice of_script[] = {
        { "header", 0, "`perfctl info FILE` prints what the header says" },
        { "header-only", 0, "`perfctl info FILE` prints what the header says" },
        { "dump-raw-trace", 'D', "`perfctl info FILE` counts records" },
        { "comms", 'c', "here it is --comm NAME,..." },
        { "no-inline", 0, "it is so without --inline" },
        { "force", 'f', "recordings of any owner are read" },
};

static const struct {
        const char *verb;
        const OptionAdvice *list;
        size_t n;
} of_verbs[] = {
        { "stat", of_stat, sizeof(of_stat) / sizeof(*of_stat) },
        { "record", of_record, sizeof(of_record) / sizeof(*of_record) },
        { "report", of_report, sizeof(of_report) / sizeof(*of_report) },
        { "script", of_script, sizeof(of_script) / sizeof(*of_script) },
};

static const char *find(const OptionAdvice *list, size_t n, const char *name, char letter) {
        for (size_t i = 0; i < n; i++)
                if (name ? strcmp(name, list[i].name) == 0 : letter == list[i].letter)
                        return list[i].text;
        return NULL;
}

const char *option_advice_find(const Verb *verb, const char *name, char letter) {
        for (size_t i = 0; verb && i < sizeof(of_verbs) / sizeof(*of_verbs); i++)
                if (strcmp(verb->name, of_verbs[i].verb) == 0)
                        return find(of_verbs[i].list, of_verbs[i].n, name, letter);
        return NULL;
}
