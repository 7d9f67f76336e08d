/*
 * What the keys of an event mean for each other and for its kind. Everything that the kernel's own rules say without
 * looking at this machine is said here, so that `perfd --check` finds it.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "config/attr/attr-setting.h"
#include "config/event-name/event-name.h"
#include "config/parse/parts.h"
#include "config/text/words.h"

static bool has_filter(const EventName *n) {
        return event_name_has_fields(n) && n->kind != EVENT_NAME_EXTERNAL;
}

static bool is_probe(const EventName *n) {
        return n->kind == EVENT_NAME_KPROBE || n->kind == EVENT_NAME_UPROBE || n->kind == EVENT_NAME_USDT;
}

static bool is_kretprobe(const EventName *n) {
        return n->kind == EVENT_NAME_KPROBE && n->is_return;
}

static bool is_cycles(const EventName *n) {
        return n->kind == EVENT_NAME_HARDWARE && n->config == PERF_COUNT_HW_CPU_CYCLES;
}

static bool is_external(const EventName *n) {
        return n->kind == EVENT_NAME_EXTERNAL;
}

static bool is_of_kernel(const EventName *n) {
        return n->kind != EVENT_NAME_EXTERNAL;
}

typedef struct KeyRule {
        const char *key;
        bool (*fits)(const EventName *n);
        bool of_groups; /* a group of counters may have it too */
        const char *why;
} KeyRule;

#define ONLY_KERNEL "clients emit external events, and the kernel does not know them"

static const KeyRule rules[] = {
        { "filter", has_filter, false, "only tracepoints and probes have fields that the kernel can filter on" },
        { "args", is_probe, false, "only probes have fetch args" },
        { "maxactive", is_kretprobe, false, "only kretprobes have it" },
        { "fallback", is_cycles, false, "only cycles can be replaced by a clock" },
        { "fields", is_external, false, "only external events declare their fields" },
        { "period", is_of_kernel, true, ONLY_KERNEL },
        { "frequency", is_of_kernel, true, ONLY_KERNEL },
        { "interval", is_of_kernel, true, ONLY_KERNEL },
        { "callchain", is_of_kernel, true, ONLY_KERNEL },
        { "include-self", is_of_kernel, true, ONLY_KERNEL },
        { "attr", is_of_kernel, true, ONLY_KERNEL },
};

static void kind_check(Build *b, const ConfigEvent *event, const EventNames *names, const Node *item) {
        const EventName *n = &names->members[0];
        const char *kind = event_name_kind(n->kind), *article = strchr("aeiou", kind[0]) ? "an" : "a";

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                ConfigPlace at = map_place(item, rules[i].key);

                if (!at.path || (names->is_group ? rules[i].of_groups : rules[i].fits(n)))
                        continue;
                if (names->is_group)
                        config_diagnostics_add(b->diagnostics, at, "%s: %s, and %s is a group of counters", rules[i].key,
                                               rules[i].why, QUOTE(event->event));
                else
                        config_diagnostics_add(b->diagnostics, at, "%s: %s, and %s is %s %s event", rules[i].key, rules[i].why,
                                               QUOTE(event->event), article, kind);
        }
}

/* As far as it is known without the machine: what attr_check() looks at. */
static struct perf_event_attr attr_of(const ConfigEvent *event, const EventName *n) {
        struct perf_event_attr attr;

        static const uint32_t types[_EVENT_NAME_KIND_MAX] = {
                [EVENT_NAME_TRACEPOINT] = PERF_TYPE_TRACEPOINT, [EVENT_NAME_SOFTWARE] = PERF_TYPE_SOFTWARE,
                [EVENT_NAME_HARDWARE] = PERF_TYPE_HARDWARE,     [EVENT_NAME_CACHE] = PERF_TYPE_HW_CACHE,
                [EVENT_NAME_RAW] = PERF_TYPE_RAW,               [EVENT_NAME_PMU] = PERF_TYPE_MAX,
                [EVENT_NAME_BREAKPOINT] = PERF_TYPE_BREAKPOINT, [EVENT_NAME_KPROBE] = PERF_TYPE_MAX,
                [EVENT_NAME_UPROBE] = PERF_TYPE_MAX,            [EVENT_NAME_USDT] = PERF_TYPE_MAX,
                [EVENT_NAME_EXTERNAL] = PERF_TYPE_MAX,
        };

        attr = (struct perf_event_attr){ .type = types[n->kind], .sample_type = event->callchain ? PERF_SAMPLE_CALLCHAIN : 0,
                                         .bp_type = n->access };
        if (event->callchain & CONFIG_CALLCHAIN_DWARF)
                (void)attr_add_user_stack(&attr); /* where it cannot be had, that is said of the machine */
        return attr;
}

/* Fields that are parts of the name of some events and nothing to others. */
static int setting_check(const AttrSetting *s, const EventName *n, Explanation *e) {
        const char *name = attr_field_name(s->field);
        bool of_pmu = strncmp(name, "config", strlen("config")) == 0;
        bool of_breakpoint = strncmp(name, "bp-", strlen("bp-")) == 0;

        if (of_pmu && (is_probe(n) || n->kind == EVENT_NAME_BREAKPOINT))
                return refuse(e, REFUSED_INVALID, "bad-attr", "attr %s: a %s event gets it from its name", name,
                              event_name_kind(n->kind));
        if (of_breakpoint && n->kind != EVENT_NAME_BREAKPOINT)
                return refuse(e, REFUSED_INVALID, "bad-attr", "attr %s: only breakpoints (mem:ADDRESS) have it", name);
        return 0;
}

static int settings_check(Build *b, const ConfigEvent *event, const EventName *n, const Node *item) {
        _cleanup_free_ AttrSetting *settings = calloc(event->attr.n + 1, sizeof(*settings));
        struct perf_event_attr attr = attr_of(event, n);
        Explanation e = EXPLANATION_NULL;
        int r = 0;

        if (!settings)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < event->attr.n && r == 0; i++) {
                _cleanup_free_ char *name = strdup(event->attr.items[i]);
                char *equals = name ? strchr(name, '=') : NULL;

                if (!equals)
                        return error_origin(-ENOMEM);
                *equals = '\0';
                r = attr_setting_parse(name, equals + 1, &settings[i], &e);
                if (r == 0)
                        r = setting_check(&settings[i], n, &e);
        }
        if (r == 0)
                r = attr_settings_check(settings, event->attr.n, event->event, &e);
        if (r == 0) {
                attr_settings_apply(settings, event->attr.n, &attr);
                r = attr_check(&attr, event->event, &e);
        }
        if (r > 0)
                config_diagnostics_add(b->diagnostics, map_place(item, "attr"), "%s", e.text);
        return r > 0 ? 0 : r;
}

int event_check(Build *b, const ConfigEvent *event, const Node *item) {
        _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
        ConfigPlace period = map_place(item, "period"), frequency = map_place(item, "frequency");
        int r;

        if (period.path && frequency.path)
                config_diagnostics_add(b->diagnostics, config_place_later(period, frequency), "period and frequency exclude "
                                       "each other: a sample for a number of events, or a number of samples a second; remove one "
                                       "of them");
        if (!event->event)
                return 0;
        r = event_names_parse(event->event, &names, NULL);
        if (r < 0)
                return r;
        assert(r == 0);
        kind_check(b, event, &names, item);
        if (event->name && event_name_is_glob(&names.members[0]))
                config_diagnostics_add(b->diagnostics, event->name_at,
                                       "name: %s can select several events, which cannot all be %s; "
                                       "remove the name",
                                       QUOTE(event->event), QUOTE(event->name));
        if (event->attr.n > 0 && names.members[0].kind != EVENT_NAME_EXTERNAL)
                return settings_check(b, event, &names.members[0], item);
        return 0;
}
