/*
 * One vocabulary, that of `perf list`, for YAML, perfctl and the wire. Each form of a name is a row of `forms`: who
 * claims it and who parses it. A row without a parser is a kind that perf list has and this version has not; the next
 * kinds get theirs there. The order of rows matters, because "mem:0x10" has the look of a tracepoint.
 */
#include "config/event-name.h"

#include <linux/perf_event.h>
#include <string.h>

#include "config/words.h"
#include "daemon/base/cleanup.h"

#define KNOWN_KINDS                                                                                                    \
        "this version of perfd knows tracepoints (group:name, such as sched:sched_switch) and software events (such "  \
        "as cpu-clock)"

static const NumberedEvent software_table[] = {
        { "cpu-clock", NULL, PERF_COUNT_SW_CPU_CLOCK, "ns", "time of the CPU" },
        { "task-clock", NULL, PERF_COUNT_SW_TASK_CLOCK, "ns", "time that a task runs" },
        { "page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, "events", "page faults, minor and major" },
        { "context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, "events", "switches to another task" },
        { "cpu-migrations", "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "events", "moves of a task to another CPU" },
        { "minor-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MIN, "events", "page faults without disk access" },
        { "major-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "events", "page faults with disk access" },
        { "alignment-faults", NULL, PERF_COUNT_SW_ALIGNMENT_FAULTS, "events", "unaligned accesses, mended" },
        { "emulation-faults", NULL, PERF_COUNT_SW_EMULATION_FAULTS, "events", "instructions emulated" },
        { "cgroup-switches", NULL, PERF_COUNT_SW_CGROUP_SWITCHES, "events", "switches to a task of another cgroup" },
};

typedef struct EventForm {
        const char *what; /* "NAME is WHAT" */
        bool (*claims)(const char *text);
        int (*parse)(const char *text, EventName *ret, Explanation *e);
} EventForm;

static int refuse_at(Explanation *e, size_t offset, const char *text, const char *why) {
        int r = refuse(e, REFUSED_INVALID, "bad-event", "event %s: %s", QUOTE(text), why);

        if (e)
                e->position = 1 + (unsigned)offset;
        return r;
}

/* The word before the first colon. */
static bool base_is(const char *text, const char *word) {
        size_t n = strlen(word);

        return strncmp(text, word, n) == 0 && (text[n] == ':' || text[n] == '\0');
}

static bool claims_kprobe(const char *text) {
        return base_is(text, "kprobe") || base_is(text, "kretprobe");
}

static bool claims_uprobe(const char *text) {
        return base_is(text, "uprobe") || base_is(text, "uretprobe");
}

static bool claims_usdt(const char *text) {
        return base_is(text, "usdt");
}

static bool claims_breakpoint(const char *text) {
        return base_is(text, "mem");
}

/* pmu/term=value,.../ and perhaps modifiers */
static bool claims_pmu(const char *text) {
        const char *first = strchr(text, '/'), *last = strrchr(text, '/');

        return first && first > text && last > first && !memchr(text, ':', (size_t)(first - text));
}

static bool claims_raw(const char *text) {
        size_t n = strspn(text + 1, "0123456789abcdefABCDEF");

        return text[0] == 'r' && n > 0 && (text[1 + n] == '\0' || text[1 + n] == ':');
}

static bool claims_hardware(const char *text) {
        static const char *const words[] = {
                "cpu-cycles", "cycles", "instructions", "cache-references", "cache-misses", "branch-instructions",
                "branches", "branch-misses", "bus-cycles", "ref-cycles", "stalled-cycles-frontend",
                "idle-cycles-frontend", "stalled-cycles-backend", "idle-cycles-backend",
        };
        static const char *const caches[] = { "L1-", "LLC-", "dTLB-", "iTLB-", "branch-load", "node-" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (base_is(text, words[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(caches); i++)
                if (strncmp(text, caches[i], strlen(caches[i])) == 0)
                        return true;
        return false;
}

/* Events that are there to carry others, and never occur themselves. */
static bool claims_carrier(const char *text) {
        return base_is(text, "dummy") || base_is(text, "bpf-output");
}

static bool claims_software_modifier(const char *text) {
        const char *colon = strchr(text, ':');

        for (size_t i = 0; colon && i < ARRAY_SIZE(software_table); i++) {
                const NumberedEvent *s = &software_table[i];

                if (base_is(text, s->name) || (s->alias && base_is(text, s->alias)))
                        return true;
        }
        return false;
}

static bool claims_word(const char *text) {
        return !strchr(text, ':');
}

static int parse_software(const char *text, EventName *ret, Explanation *e) {
        const NumberedEvent *s = software_event_find(text);
        Nearest near = NEAREST_NULL;

        if (s) {
                *ret = (EventName){ .kind = EVENT_NAME_SOFTWARE, .numbered = s, .config = s->config };
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(software_table); i++) {
                nearest_add(&near, text, software_table[i].name);
                if (software_table[i].alias)
                        nearest_add(&near, text, software_table[i].alias);
        }
        refuse(e, REFUSED_NOT_FOUND, "unknown-event", "event %s is unknown%s%s " KNOWN_KINDS, QUOTE(text), HINT(&near),
               near.word ? "" : ":");
        if (e)
                e->position = 1;
        return REFUSED_NOT_FOUND;
}

static bool claims_all(const char *text) {
        return true;
}

/* One half of a tracepoint's name, text[from, to): a name in tracefs, so it can not lead out of its folder. */
static int check_part(const char *text, size_t from, size_t to, Explanation *e) {
        const char *open = NULL;

        if (from == to)
                return refuse_at(e, from, text, from == 0 ? "the tracepoint's group is missing before the colon"
                                                          : "the tracepoint's name is missing after the colon");
        if (text[from] == '.')
                return refuse_at(e, from, text, "no part of a tracepoint's name begins with a dot");
        for (size_t i = from; i < to; i++) {
                if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.*?[]!^", text[i]))
                        return refuse_at(e, i, text,
                                         text[i] == ':' ? "a tracepoint's name has one colon and no modifiers"
                                                        : "this character is not part of a tracepoint's name");
                if (!open && text[i] == '[')
                        open = text + i;
                else if (open && text[i] == ']' && text + i > open + 1)
                        open = NULL;
        }
        return open ? refuse_at(e, (size_t)(open - text), text, "this bracket of a glob is not closed") : 0;
}

static int parse_tracepoint(const char *text, EventName *ret, Explanation *e) {
        _cleanup_(event_name_deinit) EventName n = { .kind = EVENT_NAME_TRACEPOINT };
        size_t colon = strcspn(text, ":");
        int r;

        r = check_part(text, 0, colon, e);
        if (r == 0)
                r = check_part(text, colon + 1, strlen(text), e);
        if (r != 0)
                return r;
        n.group = strndup(text, colon);
        n.name = strdup(text + colon + 1);
        if (!n.group || !n.name)
                return -ENOMEM;
        *ret = n;
        n = EVENT_NAME_NULL;
        return 0;
}

static const EventForm forms[] = {
        { "a kernel probe", claims_kprobe, NULL },
        { "a user probe", claims_uprobe, NULL },
        { "a static user probe", claims_usdt, NULL },
        { "a breakpoint", claims_breakpoint, NULL },
        { "an event of a PMU", claims_pmu, NULL },
        { "a raw hardware event", claims_raw, NULL },
        { "a hardware event", claims_hardware, NULL },
        { "an event that never occurs by itself", claims_carrier, NULL },
        { "a software event with a modifier", claims_software_modifier, NULL },
        { "a software event", claims_word, parse_software },
        { "a tracepoint", claims_all, parse_tracepoint },
};

bool event_name_has_fields(const EventName *n) {
        return n->kind == EVENT_NAME_TRACEPOINT;
}

int event_name_parse(const char *text, EventName *ret, Explanation *e) {
        size_t length = strlen(text);

        if (length == 0)
                return refuse_at(e, 0, text, "the name is empty");
        if (length > EVENT_NAME_MAX)
                return refuse_at(e, EVENT_NAME_MAX, text, "the name is longer than 255 bytes");
        for (size_t i = 0; i < length; i++)
                if (text[i] <= ' ' || text[i] >= 0x7f) /* whether char is signed or not */
                        return refuse_at(e, i, text, "an event's name has no spaces and only ASCII characters");
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                const EventForm *f = &forms[i];

                if (!f->claims(text))
                        continue;
                if (f->parse)
                        return f->parse(text, ret, e);
                refuse(e, REFUSED_UNSUPPORTED, "unsupported-event", "event %s is %s: " KNOWN_KINDS, QUOTE(text),
                       f->what);
                if (e)
                        e->position = 1;
                return REFUSED_UNSUPPORTED;
        }
        assert(false);
        return -EINVAL;
}

void event_name_deinit(EventName *n) {
        free(n->group);
        free(n->name);
        *n = EVENT_NAME_NULL;
}

bool event_name_is_glob(const EventName *n) {
        return n->kind == EVENT_NAME_TRACEPOINT && (strpbrk(n->group, "*?[") || strpbrk(n->name, "*?["));
}

const char *event_name_kind(EventNameKind kind) {
        static const char *const words[] = {
                [EVENT_NAME_TRACEPOINT] = "tracepoint",
                [EVENT_NAME_SOFTWARE] = "software",
        };

        assert(kind < _EVENT_NAME_KIND_MAX);
        return words[kind];
}

const NumberedEvent *software_events(size_t *ret_n) {
        *ret_n = ARRAY_SIZE(software_table);
        return software_table;
}

const NumberedEvent *software_event_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(software_table); i++) {
                const NumberedEvent *s = &software_table[i];

                if (strcmp(s->name, name) == 0 || (s->alias && strcmp(s->alias, name) == 0))
                        return s;
        }
        return NULL;
}
