/*
 * Whether this kernel has the events that a configuration names, as far as that can be seen without opening them for those whom they
 * are to observe: so it needs no daemon, and no privileges but those to look. A filter is tried on a disabled event of one's own thread.
 * What only opening shows is left to `perfctl validate`.
 */
#include "daemon/supervisor/resolve/names.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/event-name/event-name.h"
#include "config/text/words.h"
#include "daemon/base/array.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/symbol/kernel-symbols.h"
#include "daemon/kernel/pmu/pmu.h"
#include "daemon/kernel/probe/place.h"
#include "daemon/kernel/tracefs/filter-constants.h"
#include "daemon/kernel/tracefs/tracing.h"
#include "daemon/supervisor/events/configured.h"
#include "daemon/supervisor/resolve/functions.h"

#define TRACEFS "/sys/kernel/tracing"

/* It is not mounted for this: a check changes nothing. */
static int open_tracing(Tracing *t) {
        if (access(TRACEFS "/events", F_OK) == 0 || errno != ENOENT)
                return tracing_open(t, TRACEFS, NULL);
        return tracing_open_missing(t, "tracefs is not mounted on " TRACEFS ", so perfd cannot see tracepoints");
}

/* Where no such event can be opened the filter is not known to be wrong. */
static int try_filter(const Tracing *t, const Plan *plan, const char *filter, Explanation *e) {
        const struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = PERF_ATTR_SIZE_VER0, .config = plan->type,
                                              .disabled = 1, .exclude_kernel = 1, .exclude_hv = 1 };
        const OpenPlace own = { .pid = 0, .cpu = -1, .leader_fd = -1 };
        _cleanup_(open_closep) int fd = -1;
        Explanation ignored = EXPLANATION_NULL;
        int r = filter_constants_check(plan, filter, 0, e);

        if (r != 0)
                return r;
        r = open_event(&attr, plan->name, own, &fd, &ignored);
        if (r == 0)
                r = open_set_filter(fd, filter, plan->name, &ignored);
        if (fd >= 0 && r == REFUSED_INVALID)
                tracing_explain_filter(t, plan->group, plan->name, filter, e);
        return r < 0 || (fd >= 0 && r == REFUSED_INVALID) ? r : 0;
}

static int check_single(const Tracing *t, const char *group, const char *name, const char *filter, Explanation *e) {
        Plan *plan = NULL;
        int r = tracing_load(t, group, name, &plan, e);

        if (r == 0 && filter)
                r = try_filter(t, plan, filter, e);
        plan_unref(plan);
        return r;
}

static int check_tracepoint(const Tracing *t, const EventName *name, const char *filter, Explanation *e) {
        char **names;
        size_t n;
        int r;

        if (!event_name_is_glob(name))
                return check_single(t, name->group, name->name, filter, e);
        r = tracing_match(t, name->group, name->name, &names, &n, e);
        if (r != 0)
                return r;
        for (size_t i = 0; filter && i < n && r == 0; i++) {
                char *colon = strchr(names[i], ':');

                *colon = '\0';
                r = check_single(t, names[i], colon + 1, filter, e);
        }
        tracing_names_free(names);
        return r;
}

static int check_core(const EventName *name, const char *text, Explanation *e) {
        PmuEvent *events = NULL;
        size_t n = 0;
        uint32_t type;
        int r = pmu_core(PMU_ROOT, name, &events, &n, e);

        if (r == 0 && n == 0 && pmu_type(PMU_ROOT, "cpu", &type, NULL) > 0)
                r = refuse(e, REFUSED_UNSUPPORTED, "no-pmu", "this machine has no CPU PMU, which counts %s", text);
        pmu_events_free(events, n);
        return r;
}

static int check_pmu(const EventName *name, Explanation *e) {
        PmuEvent *events = NULL;
        size_t n = 0;
        int r = pmu_resolve(PMU_ROOT, name, &events, &n, e);

        pmu_events_free(events, n);
        return r;
}

static int check_functions(const EventName *name, const char *text, Explanation *e) {
        char **events = NULL;
        size_t n = 0;
        int r = functions_match(name, text, NULL, &events, &n, e);

        functions_free(events, n);
        return r;
}

static int check_probe(const EventName *name, KernelSymbolIndex *index, Explanation *e) {
        ProbePlaces places = PROBE_PLACES_NULL;
        int r = probe_places_find(name, index, NULL, &places, e);

        if (r == 0 && name->kind == EVENT_NAME_KPROBE && !places.is_known)
                r = refuse(e, REFUSED_DENIED, "no-permission", "cannot determine whether this kernel has a function %s: "
                           KERNEL_SYMBOLS_PATH " shows none", places.symbols.items[0]);
        probe_places_deinit(&places);
        return r;
}

typedef struct Seen {
        Tracing tracing;
        KernelSymbolIndex symbols;
} Seen;

static int check_name(Seen *seen, const ConfigEvent *event, const EventName *name, const char *text, Explanation *e) {
        switch (name->kind) {
        case EVENT_NAME_TRACEPOINT:
                return check_tracepoint(&seen->tracing, name, event->filter, e);
        case EVENT_NAME_HARDWARE:
        case EVENT_NAME_CACHE:
        case EVENT_NAME_RAW:
                return event->fallback == CONFIG_FALLBACK_NONE ? check_core(name, text, e) : 0;
        case EVENT_NAME_PMU:
                return check_pmu(name, e);
        case EVENT_NAME_UPROBE:
                return functions_is_glob(name) ? check_functions(name, text, e) : check_probe(name, &seen->symbols, e);
        case EVENT_NAME_KPROBE:
        case EVENT_NAME_USDT:
                return check_probe(name, &seen->symbols, e);
        case EVENT_NAME_SOFTWARE: /* every kernel has it */
        case EVENT_NAME_BREAKPOINT:
        case EVENT_NAME_EXTERNAL:
        case _EVENT_NAME_KIND_MAX:
                return 0;
        }
        return 0;
}

/*
 * Root sees what the installed service does not: ProtectHome= and PrivateTmp= of its unit, which a drop-in may change and which are
 * not asked for here. NULL: the service sees it too.
 */
static const char *hidden_folder(const EventName *name) {
        static const char *const folders[] = { "/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/" };

        for (size_t i = 0; name->path && geteuid() == 0 && i < ARRAY_SIZE(folders); i++)
                if (strncmp(name->path, folders[i], strlen(folders[i])) == 0)
                        return folders[i];
        return NULL;
}

static void note_hidden(const ConfigEvent *event, const EventName *name, ConfigDiagnostics *m) {
        const char *folder = hidden_folder(name);
        char text[512];

        if (!folder)
                return;
        (void)snprintf(text, sizeof(text), "%s is found by root, and not by the installed service, which does not see %.*s unless a drop-in "
                       "of perfd.service lets it: perfd(8), The service", QUOTE(name->path), (int)strlen(folder) - 1, folder);
        config_diagnostics_add_pending(m, event->at, "no-file", text);
}

static int check_filter(const ConfigEvent *event, Explanation *e) {
        int r = event->filter ? filter_form_check(event->filter, e) : 0;

        return r == 0 && event->filter ? filter_constants_check(NULL, event->filter, 0, e) : r;
}

int resolver_check_filters(const Config *c, ConfigDiagnostics *m) {
        int r = 0;

        for (size_t i = 0; i < c->n_events && r == 0; i++) {
                Explanation e = EXPLANATION_NULL;

                r = check_filter(&c->events[i], &e);
                if (r > 0) {
                        config_event_refuse(c, &c->events[i], r, &e, m);
                        r = 0;
                }
        }
        return r == 0 ? config_diagnostics_finish(m) : r;
}

static int check_event(const Config *c, const ConfigEvent *event, Seen *seen, ConfigDiagnostics *m) {
        EventNames names = EVENT_NAMES_NULL;
        int r = event_names_parse(event->event, &names, NULL); /* as config/ has done */

        for (size_t i = 0; i < names.n_members && r == 0; i++) {
                Explanation e = EXPLANATION_NULL;
                int found = check_filter(event, &e);

                if (found == 0)
                        found = check_name(seen, event, &names.members[i], names.texts[i], &e);

                if (found < 0)
                        r = found;
                else if (found > 0)
                        config_event_refuse(c, event, found, &e, m);
                else
                        note_hidden(event, &names.members[i], m);
        }
        event_names_deinit(&names);
        return r;
}

int resolver_check_names(const Config *c, ConfigDiagnostics *m) {
        Seen seen = { .tracing = TRACING_NULL, .symbols = KERNEL_SYMBOL_INDEX_NULL };
        int r = open_tracing(&seen.tracing);

        for (size_t i = 0; i < c->n_events && r == 0; i++)
                r = check_event(c, &c->events[i], &seen, m);
        tracing_close(&seen.tracing);
        kernel_symbol_index_deinit(&seen.symbols);
        return r == 0 ? config_diagnostics_finish(m) : r;
}
