/* Of perf-stat(1) those that its users take for granted; what is only near a name is near.c's. */
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

const char *option_advice_find(const Verb *verb, const char *name, char letter) {
        if (!verb || strcmp(verb->name, "stat") != 0)
                return NULL;
        for (size_t i = 0; i < sizeof(of_stat) / sizeof(of_stat[0]); i++)
                if (name ? strcmp(name, of_stat[i].name) == 0 : letter == of_stat[i].letter)
                        return of_stat[i].text;
        return NULL;
}
