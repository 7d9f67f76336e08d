/* For verbs that add events: from the command line to the specs of what is to be added. */
#include "client/perfctl/events/spec-options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/command-line/event-options.h"
#include "client/perfctl/base/number.h"
#include "client/perfctl/command-line/rate.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/events/target.h"

#define SETTING_MAX ((size_t)32) /* bytes of "sample-stack-user=65528" */
#define STACK_MAX ((uint64_t)65528) /* the kernel's */

static int fail_callchain(const Perfctl *p, const char *text) {
        return perfctl_fail(p, PERFCTL_USAGE, "--callchain: '%s' is neither kernel, user, kernel,user, dwarf nor user,dwarf, the latter with a "
                            "number of bytes behind it or not, as in dwarf,16384", text);
}

/* As perf record --call-graph dwarf,SIZE: what is no multiple of 8 is rounded up. */
static int parse_stack(const Perfctl *p, const char *word, uint64_t *ret) {
        if (!quantity_parse_size(word, ret) || *ret == 0 || *ret > STACK_MAX)
                return perfctl_fail(p, PERFCTL_USAGE, "--callchain: dwarf,%s: of a stack 1 to %" PRIu64 " bytes can be copied", word, STACK_MAX);
        *ret = (*ret + 7) / 8 * 8;
        return 0;
}

/* ret_stack: bytes of it; 0: as many as the daemon copies, or none. */
static int parse_callchain(const Perfctl *p, size_t place, perfd_callchain *ret, uint64_t *ret_stack) {
        const char *text = event_option_get(p, "callchain", place);
        unsigned callchain = PERFD_CALLCHAIN_NONE;
        char *copy, *rest, *word;
        int r = 0;

        *ret_stack = 0;

        if (event_option_get(p, "both-callchains", place)) {
                if (text)
                        return perfctl_fail(p, PERFCTL_USAGE, "--both-callchains and --callchain exclude each other");
                text = "kernel,user";
        }
        if (!text)
                return 0;
        copy = rest = must_have(strdup(text));
        while (r == 0 && (word = strsep(&rest, ","))) {
                if (strcmp(word, "kernel") == 0)
                        callchain |= PERFD_CALLCHAIN_KERNEL;
                else if (strcmp(word, "user") == 0)
                        callchain |= PERFD_CALLCHAIN_USER;
                else if (strcmp(word, "dwarf") == 0)
                        callchain |= PERFD_CALLCHAIN_DWARF;
                else if (callchain & PERFD_CALLCHAIN_DWARF && *word >= '0' && *word <= '9' && !rest)
                        r = parse_stack(p, word, ret_stack);
                else
                        r = fail_callchain(p, text);
        }
        free(copy);
        *ret = (perfd_callchain)callchain;
        return r;
}

int spec_options_check_pairs(const Perfctl *p, const char *option, char separator) {
        size_t n;
        const char *const *pairs = perfctl_get_all(p, option, &n);

        for (size_t i = 0; i < n; i++)
                if (*pairs[i] == separator || !strchr(pairs[i], separator))
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' has no '%c', as in %s", option, pairs[i],
                                            separator, separator == '=' ? "exclude-user=true" : "code:u32");
        return 0;
}

static int parse_rate(const Perfctl *p, size_t place, perfd_event_spec *s) {
        const char *period = event_option_get(p, "period", place), *frequency = event_option_get(p, "frequency", place);
        const char *followed = event_option_get(p, "maxactive", place);
        uint64_t maxactive = 0;
        int r;

        if (period && frequency)
                return perfctl_fail(p, PERFCTL_USAGE, "--period and --frequency exclude each other");
        r = rate_parse(p, "--period: ", period, s->event, &s->period, &s->frequency);
        if (r == 0)
                r = number_parse(p, "--frequency: ", frequency, &s->frequency);
        if (r == 0)
                r = number_parse(p, "--maxactive: ", followed, &maxactive);
        if (r == 0 && maxactive > UINT32_MAX)
                r = perfctl_fail(p, PERFCTL_USAGE, "--maxactive: '%s' is too large", followed);
        s->maxactive = (uint32_t)maxactive;
        return r;
}

/* What the event at this place has for itself. */
static int parse_each(const Perfctl *p, size_t place, perfd_event_spec *s, uint64_t *ret_stack) {
        int r = parse_rate(p, place, s);

        s->filter = event_option_get(p, "filter", place);
        s->args = event_option_get(p, "args", place);
        return r == 0 ? parse_callchain(p, place, &s->callchain, ret_stack) : r;
}

int spec_options_parse(const Perfctl *p, perfd_event_spec *s) {
        int r = 0;

        s->fallback = perfctl_get(p, "fallback");
        s->include_self = perfctl_get(p, "include-self");
        s->attr = perfctl_get_all(p, "attr", &s->n_attr);
        for (size_t i = 0; i < p->n_events && r == 0; i++) { /* errors are said before the daemon is asked for anything */
                perfd_event_spec each = PERFD_EVENT_SPEC_INIT;
                uint64_t stack;

                r = parse_each(p, i, &each, &stack);
        }
        if (r == 0)
                r = spec_options_check_pairs(p, "attr", '=');
        return r == 0 ? target_parse(p, s) : r;
}

static const char *filter_of_all(const perfd_event_spec *s, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (s[i].filter != s->filter)
                        return NULL;
        return s->filter;
}

static const char *args_of_all(const perfd_event_spec *s, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (s[i].args != s->args)
                        return NULL;
        return s->args;
}

/* What the position of an error counts in; of several events that is known only if they share it. */
const char *specs_mistaken_text(const perfd_event_spec *s, size_t n, const char *reason) {
        if (strcmp(reason, "bad-filter") == 0)
                return filter_of_all(s, n);
        if (strcmp(reason, "bad-target") == 0)
                return s->cpus;
        if (strcmp(reason, "bad-args") == 0)
                return args_of_all(s, n);
        if (n > 1 || strcmp(reason, "bad-attr") == 0)
                return NULL;
        return strcmp(reason, "bad-name") == 0 ? s->name : s->event;
}

bool spec_options_given(const Perfctl *p) {
        static const Option options[] = { TARGET_OPTIONS, SPEC_OPTIONS };
        size_t n;

        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                if (options[i].repeats ? (perfctl_get_all(p, options[i].name, &n), n > 0) : perfctl_get(p, options[i].name) != NULL)
                        return true;
        return false;
}

/* What the specs have for themselves stands behind them, in the same memory. */
static perfd_event_spec *specs_alloc(const EventWords *words, const perfd_event_spec *each, const char ***ret_attr, char **ret_text) {
        const size_t n = words->n + 1, n_attr = each->n_attr + 1;
        perfd_event_spec *specs = must_have(calloc(n, sizeof(*specs) + n_attr * sizeof(**ret_attr) + SETTING_MAX));

        *ret_attr = (const char **)(specs + n);
        *ret_text = (char *)(*ret_attr + n * n_attr);
        return specs;
}

/* What the verb has for events of which no option says it. Modifiers ask for what the clock of a CPU does not know. */
static int choose_default(const Perfctl *p, perfd_event_spec *s) {
        int r = 0;

        if (p->verb->frequency && s->period == 0 && s->frequency == 0 && rate_is_of_cpu(s->event))
                r = number_parse(p, "", p->verb->frequency, &s->frequency);
        if (p->verb->falls_back && !s->fallback && (strcmp(s->event, "cycles") == 0 || strcmp(s->event, "cpu-cycles") == 0))
                s->fallback = "cpu-clock";
        return r;
}

int specs_new(const Perfctl *p, const EventWords *words, const perfd_event_spec *each, perfd_event_spec **ret) {
        const char **attr;
        char *text;
        perfd_event_spec *specs = specs_alloc(words, each, &attr, &text);
        int r = 0;

        for (size_t i = 0; i < words->n; i++) {
                specs[i] = *each;
                specs[i].event = words->names[i];
        }
        for (size_t i = 0; i < words->n && r == 0; i++, attr += each->n_attr + 1, text += SETTING_MAX) {
                uint64_t stack;

                r = parse_each(p, words->places[i], &specs[i], &stack);
                if (r != 0 || stack == 0)
                        continue;
                for (size_t k = 0; k < each->n_attr; k++)
                        attr[k] = each->attr[k];
                (void)snprintf(text, SETTING_MAX, "sample-stack-user=%" PRIu64, stack);
                attr[each->n_attr] = text;
                specs[i].attr = attr;
                specs[i].n_attr = each->n_attr + 1;
        }
        for (size_t i = 0; i < words->n && r == 0; i++)
                r = choose_default(p, &specs[i]);
        if (r != 0)
                free(specs);
        else
                *ret = specs;
        return r;
}
