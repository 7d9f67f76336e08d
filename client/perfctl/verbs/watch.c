/* The command line of a stream; watch/watch.c runs it. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/events/event-words.h"
#include "client/perfctl/print/list-text.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/command-line/stream-options.h"
#include "client/perfctl/events/target.h"
#include "client/perfctl/watch/watch.h"

typedef struct Word {
        const char *word;
        unsigned value;
} Word;

static const Word orders[] = { { "time", PERFD_ORDER_TIME }, { "cpu", PERFD_ORDER_CPU }, { NULL, 0 } };

static const Word overflows[] = {
        { "drop-oldest", PERFD_OVERFLOW_DROP_OLDEST },
        { "drop-newest", PERFD_OVERFLOW_DROP_NEWEST },
        { "disconnect", PERFD_OVERFLOW_DISCONNECT },
        { NULL, 0 },
};

static const Word times[] = { { "wall", TIME_WALL }, { "clock", TIME_CLOCK }, { "delta", TIME_DELTA }, { NULL, 0 } };

static const Word columns[] = {
        { "uid", COLUMN_UID },
        { "exe", COLUMN_EXE },
        { "cgroup", COLUMN_CGROUP },
        { "container", COLUMN_CONTAINER },
        { "unit", COLUMN_UNIT },
        { NULL, 0 },
};

static const Word records[] = {
        { "comm", PERFD_RECORD_BIT(PERFD_COMM) },
        { "fork", PERFD_RECORD_BIT(PERFD_FORK) },
        { "exit", PERFD_RECORD_BIT(PERFD_EXIT) },
        { "mmap2", PERFD_RECORD_BIT(PERFD_MMAP2) },
        { "switch", PERFD_RECORD_BIT(PERFD_SWITCH) },
        { "namespaces", PERFD_RECORD_BIT(PERFD_NAMESPACES) },
        { "ksymbol", PERFD_RECORD_BIT(PERFD_KSYMBOL) },
        { "bpf-event", PERFD_RECORD_BIT(PERFD_BPF_EVENT) },
        { "cgroup", PERFD_RECORD_BIT(PERFD_CGROUP) },
        { "text-poke", PERFD_RECORD_BIT(PERFD_TEXT_POKE) },
        { "aux", PERFD_RECORD_BIT(PERFD_AUX) },
        { "itrace-start", PERFD_RECORD_BIT(PERFD_ITRACE_START) },
        { "aux-output-hw-id", PERFD_RECORD_BIT(PERFD_AUX_OUTPUT_HW_ID) },
        { "read", PERFD_RECORD_BIT(PERFD_READ) },
        { "unknown", PERFD_RECORD_BIT(PERFD_UNKNOWN) },
        { NULL, 0 },
};

static int find_word(const Perfctl *p, const char *option, const char *text, const Word *words, unsigned *ret) {
        for (; words->word; words++)
                if (strcmp(words->word, text) == 0) {
                        *ret = words->value;
                        return 0;
                }
        for (const Option *o = p->verb->options; o->name; o++)
                if (strcmp(o->name, option) == 0)
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is none of: %s", option, text, o->choices);
        abort(); /* an option that the table lacks */
}

static int parse_word(const Perfctl *p, const char *option, const Word *words, unsigned *ret) {
        const char *text = perfctl_get(p, option);

        return text ? find_word(p, option, text, words, ret) : 0;
}

static int parse_records(const Perfctl *p, uint32_t *ret) {
        const char *text = perfctl_get(p, "records");
        const char **list;
        size_t n;
        int r = 0;

        if (!text)
                return 0;
        list = list_split(text, &n);
        for (size_t i = 0; i < n && r == 0; i++) {
                unsigned bit = 0;

                r = find_word(p, "records", list[i], records, &bit);
                *ret |= bit;
        }
        free(list);
        return r;
}

static int parse_columns(const Perfctl *p, ItemColumns *ret) {
        const char *text = perfctl_get(p, "columns");
        const char **list;
        size_t n;
        int r = 0;

        if (!text)
                return 0;
        if (p->json)
                return perfctl_fail(p, PERFCTL_USAGE, "--columns applies to text output only: JSON has all of them");
        list = list_split(text, &n);
        for (size_t i = 0; i < n && r == 0; i++) {
                unsigned column = 0;

                r = find_word(p, "columns", list[i], columns, &column);
                if (r == 0 && !item_columns_add(ret, (ItemColumn)column))
                        r = perfctl_fail(p, PERFCTL_USAGE, "--columns: '%s' was already given", list[i]);
        }
        free(list);
        return r;
}

static int parse_time(const Perfctl *p, TimeForm *ret) {
        unsigned form = TIME_WALL;
        int r;

        if (p->json && perfctl_get(p, "time"))
                return perfctl_fail(
                        p, PERFCTL_USAGE,
                        "--time applies to text output only: with --json each item has time, of the stream's clock, "
                        "and wall, since 1970, both in nanoseconds");
        r = parse_word(p, "time", times, &form);
        *ret = (TimeForm)form;
        return r;
}

static int parse_quantities(const Perfctl *p, WatchOptions *o) {
        const char *count = perfctl_get(p, "count");
        int r;

        if (perfctl_get(p, "hold") && !p->is_of_several)
                return perfctl_fail(p, PERFCTL_USAGE, "--hold is for several hosts: --host is given %s", p->host ? "once" : "nowhere");
        if (perfctl_get(p, "reconnect") && !p->is_of_several)
                return perfctl_fail(p, PERFCTL_USAGE, "--reconnect is for hosts that --host names");
        r = stream_options_parse(p, &o->subscription, &o->duration);
        return r == 0 ? number_parse(p, "--count: ", count, &o->count) : r;
}

static int parse_options(const Perfctl *p, WatchOptions *o) {
        const char *fields = perfctl_get(p, "fields");
        unsigned order = PERFD_ORDER_TIME, overflow = PERFD_OVERFLOW_DROP_OLDEST;
        int r;

        r = parse_word(p, "order", orders, &order);
        if (r == 0)
                r = parse_word(p, "overflow", overflows, &overflow);
        if (r == 0)
                r = parse_time(p, &o->time);
        if (r == 0)
                r = parse_columns(p, &o->columns);
        if (r == 0)
                r = parse_records(p, &o->subscription.records);
        if (r == 0)
                r = parse_quantities(p, o);
        if (r != 0)
                return r;
        o->raw = perfctl_get(p, "raw");
        o->has_names = !perfctl_get(p, "no-symbols");
        o->has_tables = perfctl_get(p, "ledger");
        o->may_lose = perfctl_get(p, "allow-loss");
        o->subscription.where = perfctl_get(p, "where");
        o->subscription.order = (perfd_order)order;
        o->subscription.overflow = (perfd_overflow)overflow;
        o->subscription.payload = o->raw ? PERFD_PAYLOAD_BOTH : PERFD_PAYLOAD_FIELDS;
        if (fields)
                o->subscription.fields = list_split(fields, &o->subscription.n_fields);
        return 0;
}

static int verb_watch_run(Perfctl *p) {
        WatchOptions o = { .subscription = PERFD_SUBSCRIPTION_INIT };
        int fd = -1, r = command_check(p);

        if (r == 0)
                r = parse_options(p, &o);
        if (r == 0 && p->gap.to > 0) {
                r = watch_print_gap(p, &o);
                free((void *)o.subscription.fields);
                return r;
        }
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = command_open_output(p, &fd);
        if (r == 0)
                r = watch_run(p, &o);
        command_close_output(p, fd);
        free((void *)o.subscription.fields);
        return r;
}

const Verb verb_watch = {
        .name = "watch",
        .arguments = "[EVENT...]",
        .help = "print samples of running events, of events that it adds, or of a command",
        .options = {
                EVENT_OPTION(WORDS_SHOWN),
                { .name = "where", .argument = "EXPR", .help = "only samples that match this expression", .words = WORDS_FIELDS },
                { .name = "fields", .argument = "A,B", .help = "only these fields" },
                { .name = "columns", .argument = "A,B", .help = "of the process: uid, exe, cgroup, container, unit",
                  .choices = "uid exe cgroup container unit" },
                { .name = "order", .argument = "time|cpu", .help = "order by time across CPUs, or per CPU only",
                  .choices = "time cpu" },
                { .name = "time", .argument = "wall|clock|delta",
                  .help = "local time, the stream's clock, or since the line before", .choices = "wall clock delta" },
                { .name = "output", .letter = 'o', .argument = "FILE", .help = "write to FILE instead of stdout or stderr",
                  .words = WORDS_FILES },
                { .name = "raw", .help = "the tracepoint's raw bytes too" },
                { .name = "no-symbols", .help = "callchains as addresses, without the names of what is there" },
                { .name = "count", .argument = "N", .help = "stop after N items" },
                { .name = "for", .argument = "TIME", .help = "stop after 500ms, 10s, 2m" },
                { .name = "records", .argument = "KIND,...", .help = "side records too: comm, fork, exit, mmap2, ...",
                  .choices = "comm fork exit mmap2 switch namespaces ksymbol bpf-event cgroup text-poke aux itrace-start "
                             "aux-output-hw-id read unknown" },
                { .name = "overflow", .argument = "POLICY", .help = "on a full queue: drop-oldest, drop-newest, disconnect",
                  .choices = "drop-oldest drop-newest disconnect" },
                { .name = "latency", .argument = "TIME", .help = "maximum delivery latency, e.g. 200us; costs wakeups" },
                { .name = "hold", .argument = "TIME", .help = "with several hosts: wait so long for each other's samples; 500ms" },
                { .name = "reconnect", .argument = "TIME|never", .choices = "never",
                  .help = "a host that is lost: for how long it is tried again, or never" },
                { .name = "ledger", .help = "always print the closing ledger" },
                { .name = "allow-loss", .help = "exit with 0, not 4, if samples were lost" },
                { .name = "queue", .argument = "SIZE", .help = "size of the queue in the daemon, e.g. 4MiB" },
                ALL_CPUS_OPTION,
                TARGET_OPTIONS,
                SPEC_OPTIONS,
        },
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SHOWN,
        .has_command = true,
        .hosts = HOSTS_MERGED,
        .run = verb_watch_run,
};
