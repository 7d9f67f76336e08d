/*
 * One vocabulary, that of `perf list`, for YAML, perfctl and the wire. Each form of a name is a row of `forms`: who
 * claims it and who parses it; whoever claims a text says what is wrong with it. The order of rows matters, because
 * "mem:0x10" and "kprobe:x" have the look of tracepoints, and "branch-misses" that of a cache event.
 */
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

typedef struct EventForm {
        bool (*claims)(const char *text);
        int (*parse)(const char *text, EventName *ret, Explanation *e);
} EventForm;

/* Events that carry what a BPF program writes: they come with BPF. */
static bool claims_bpf_output(const char *text) {
        return event_base_is(text, "bpf-output");
}

static int refuse_bpf_output(const char *text, EventName *ret, Explanation *e) {
        refuse(e, REFUSED_UNSUPPORTED, "unsupported-event",
               "event %s carries the output of BPF programs, which this version of perfd does not run", QUOTE(text));
        if (e)
                e->position = 1;
        return REFUSED_UNSUPPORTED;
}

/* perfctl(1) takes it off what it is told. */
static bool claims_kind(const char *text) {
        static const char kind[] = "tracepoint:";

        return strncmp(text, kind, strlen(kind)) == 0 && strchr(text + strlen(kind), ':');
}

static int refuse_kind(const char *text, EventName *ret, Explanation *e) {
        return event_refuse_at(e, text, 0, "only perfctl takes 'tracepoint:' before a name: it is %s", QUOTE(strchr(text, ':') + 1));
}

/* The table's word that `word` is probably meant to be. */
static void near_find(Nearest *near, const char *word, char buffer[static 64]) {
        event_numbered_near(near, word);
        event_cache_near(near, word, buffer);
        nearest_add(near, word, "bpf-output");
}

/* One word, or one that is nearly in the tables and has modifiers: no group of tracepoints is called "cycels". */
static bool claims_word(const char *text) {
        char word[EVENT_NAME_MAX + 1], buffer[64];
        size_t colon = strcspn(text, ":");
        Nearest near = NEAREST_NULL;

        if (text[colon] == '\0')
                return true;
        if (!event_modifiers_claim(text + colon + 1))
                return false;
        memcpy(word, text, colon);
        word[colon] = '\0';
        near_find(&near, word, buffer);
        return near.word;
}

static int refuse_word(const char *text, EventName *ret, Explanation *e) {
        static const char *const prefixes[] = { "kprobe:", "kretprobe:", "uprobe:", "uretprobe:", "usdt:", "external:",
                                                "mem:" };
        char word[EVENT_NAME_MAX + 1], buffer[64];
        size_t colon = strcspn(text, ":");
        Nearest near = NEAREST_NULL;

        memcpy(word, text, colon);
        word[colon] = '\0';
        near_find(&near, word, buffer);
        for (size_t i = 0; text[colon] == '\0' && i < ARRAY_SIZE(prefixes); i++)
                nearest_add(&near, word, prefixes[i]);
        refuse(e, REFUSED_NOT_FOUND, "unknown-event", "event %s is unknown%s", QUOTE(text),
               near.word             ? HINT(&near) :
               strchr(word, '_') ? ": a tracepoint has its group before its name, as in sched:sched_switch; `perfctl available NAME` "
                                       "shows it" :
                                       ": expected a name of perf list, such as cycles, cpu-clock, "
                                         "sched:sched_switch or cpu/event=0x3c/, or a probe, such as kprobe:vfs_read");
        if (e)
                e->position = 1;
        return REFUSED_NOT_FOUND;
}

static bool claims_all(const char *text) {
        return true;
}

static const EventForm forms[] = {
        { claims_kind, refuse_kind },
        { event_claims_kprobe, event_parse_kprobe },
        { event_claims_uprobe, event_parse_uprobe },
        { event_claims_usdt, event_parse_usdt },
        { event_claims_external, event_parse_external },
        { event_claims_breakpoint, event_parse_breakpoint },
        { event_claims_pmu, event_parse_pmu },
        { event_claims_numbered, event_parse_numbered },
        { event_claims_cache, event_parse_cache },
        { event_claims_raw, event_parse_raw },
        { claims_bpf_output, refuse_bpf_output },
        { claims_word, refuse_word },
        { claims_all, event_parse_tracepoint },
};

int event_name_parse(const char *text, EventName *ret, Explanation *e) {
        _cleanup_(event_name_deinit) EventName n = EVENT_NAME_NULL;
        size_t length = strlen(text);
        int r = 0;

        if (length == 0)
                return event_refuse_at(e, text, 0, "the name is empty");
        if (length > EVENT_NAME_MAX)
                return event_refuse_at(e, text, EVENT_NAME_MAX, "the name is longer than %d bytes", EVENT_NAME_MAX);
        for (size_t i = 0; i < length; i++)
                if (text[i] <= ' ' || text[i] >= 0x7f) /* whether char is signed or not */
                        return event_refuse_at(e, text, i,
                                               "the name of an event consists of ASCII characters without spaces");
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
                if (forms[i].claims(text)) {
                        r = forms[i].parse(text, &n, e);
                        break;
                }
        if (r != 0)
                return r;
        *ret = n;
        n = EVENT_NAME_NULL;
        return 0;
}
