/*
 * What this machine offers. The tables of perf list are longer than what any one machine can count, so each of their
 * events is opened once and closed; tracepoints and the events of PMUs are listed by the kernel itself, which knows
 * what it has.
 */
#include "daemon/supervisor/requests/offers.h"

#include <string.h>

#include "config/attr/attr-setting.h"
#include "daemon/base/checkpoint.h"
#include "daemon/encode/descriptor.h"
#include "daemon/kernel/doctor/doctor.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/pmu/pmu.h"
#include "daemon/supervisor/events/specs.h"

int offers_add(Offers *o, const char *event, const char *kind, const char *help, const char *unit, const Plan *plan) {
        Perfd__V1__AvailableReply *reply = o->reply;
        Perfd__V1__AvailableEvent *m, **more;
        int r;

        if (reply->truncated)
                return 0;
        r = checkpoint(NULL);
        if (r != 0)
                return r;
        more = reallocarray(reply->events, reply->n_events + 1, sizeof(*more));
        if (!more)
                return error_origin(-ENOMEM);
        reply->events = more;
        m = malloc(sizeof(*m));
        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__available_event__init(m);
        more[reply->n_events++] = m;
        if ((r = string_set(&m->event, event)) < 0 || (r = string_set(&m->kind, kind)) < 0 ||
            (r = string_set(&m->help, help)) < 0 || (r = string_set(&m->unit, unit)) < 0)
                return r;
        r = plan ? field_descriptors_new(plan, &m->fields, &m->n_fields) : 0;
        o->size += perfd__v1__available_event__get_packed_size(m);
        if (o->size > FRAME_MAX_SERVER / 2)
                reply->truncated = true;
        return r;
}

static bool offers_match(const Offers *o, const char *event) {
        return glob_match(o->glob, event);
}

static int first_online_cpu(const Requests *s) {
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++)
                if (s->readers->online[slot])
                        return (int)s->readers->cpus[slot];
        return 0;
}

static bool can_open(const Offers *o, uint32_t type, uint64_t config) {
        struct perf_event_attr attr = { .type = type, .config = config, .disabled = 1 };

        attr.size = attr_least_size(&attr);
        return !open_is_missing(&attr, first_online_cpu(o->requests));
}

static int offers_add_numbered(Offers *o, const NumberedEvent *events, size_t n, uint32_t type, EventNameKind kind) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                if ((offers_match(o, events[i].name) || (events[i].alias && offers_match(o, events[i].alias))) &&
                    can_open(o, type, events[i].config))
                        r = offers_add(o, events[i].name, event_name_kind(kind), events[i].help, events[i].unit, NULL);
        return r;
}

static int offers_add_cache(Offers *o) {
        char name[64];
        uint64_t config;
        int r = 0;

        for (size_t i = 0; cache_event(i, name, &config) && r == 0; i++)
                if (offers_match(o, name) && can_open(o, PERF_TYPE_HW_CACHE, config))
                        r = offers_add(o, name, event_name_kind(EVENT_NAME_CACHE), NULL, "events", NULL);
        return r;
}

static int offers_add_tracepoint(Offers *o, char *name, bool fields) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        char *colon = strchr(name, ':');
        int r = 0;

        if (!offers_match(o, name))
                return 0;
        if (fields) {
                *colon = '\0';
                r = tracing_load(&o->requests->host->tracing, name, colon + 1, &plan, NULL);
                *colon = ':';
        }
        if (r < 0 || r == REFUSED_CANCELLED)
                return r; /* refused: it went away, or its format is beyond us: listed without fields */
        return offers_add(o, name, event_name_kind(EVENT_NAME_TRACEPOINT), NULL, "events", plan);
}

static int offers_add_tracepoints(Offers *o, bool fields, Explanation *e) {
        size_t n;
        char **names;
        int r = tracing_is_missing(&o->requests->host->tracing) ? REFUSED_UNSUPPORTED : 0;

        if (r != 0)
                return 0; /* what else there is can be said all the same */
        r = tracing_match(&o->requests->host->tracing, "*", "*", &names, &n, e);

        if (r != 0)
                return r;
        for (size_t i = 0; i < n && r == 0; i++)
                r = offers_add_tracepoint(o, names[i], fields);
        tracing_names_free(names);
        return r;
}

static int offers_add_pmus(Offers *o) {
        PmuListed *list = NULL;
        size_t n = 0;
        int r = pmu_list(PMU_ROOT, &list, &n);

        if (r > 0) /* a machine without sysfs has no PMUs to list */
                return 0;
        for (size_t i = 0; i < n && r == 0; i++)
                if (offers_match(o, list[i].event))
                        r = offers_add(o, list[i].event, event_name_kind(EVENT_NAME_PMU), list[i].help,
                                       *list[i].unit ? list[i].unit : "events", NULL);
        pmu_listed_free(list, n);
        return r;
}

static bool has_raw(const Offers *o) {
        return can_open(o, PERF_TYPE_RAW, 0);
}

static bool has_breakpoints(const Offers *o) {
        return doctor_has_breakpoints();
}

static bool has_kprobes(const Offers *o) {
        return doctor_has_kprobes(o->requests->host->tracing.root);
}

static bool has_uprobes(const Offers *o) {
        return doctor_has_uprobes(o->requests->host->tracing.root);
}

static bool has_external(const Offers *o) {
        return true;
}

/* Forms that stand for any number of events: one row each. */
static int offers_add_forms(Offers *o) {
        static const struct {
                const char *form;
                EventNameKind kind;
                const char *help;
                bool (*has)(const Offers *o);
        } forms[] = {
                { "rNNN", EVENT_NAME_RAW, "event NNN of the CPU's own PMU, in hexadecimal: r01c2", has_raw },
                { "mem:ADDR[/LEN][:rwx]", EVENT_NAME_BREAKPOINT, "reads, writes or executions of an address",
                  has_breakpoints },
                { "kprobe:SYMBOL[+OFFSET]", EVENT_NAME_KPROBE, "calls of a kernel function", has_kprobes },
                { "kretprobe:SYMBOL", EVENT_NAME_KPROBE, "returns from a kernel function", has_kprobes },
                { "uprobe:PATH:SYMBOL[+OFFSET]", EVENT_NAME_UPROBE, "calls of a function of a program or library",
                  has_uprobes },
                { "uretprobe:PATH:SYMBOL", EVENT_NAME_UPROBE, "returns from a function of a program or library",
                  has_uprobes },
                { "usdt:PATH:PROVIDER:NAME", EVENT_NAME_USDT, "a static probe of a program or library",
                  has_uprobes },
                { "external:NAME", EVENT_NAME_EXTERNAL, "samples that clients emit, with declared fields",
                  has_external },
        };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(forms) && r == 0; i++)
                if (offers_match(o, forms[i].form) && forms[i].has(o))
                        r = offers_add(o, forms[i].form, event_name_kind(forms[i].kind), forms[i].help, "events", NULL);
        return r;
}

int handle_available(RequestContext *a, Explanation *e) {
        const Perfd__V1__AvailableRequest *q = a->request->available;
        _cleanup_(pattern_freep) Pattern *glob = NULL;
        Perfd__V1__AvailableReply *reply = malloc(sizeof(*reply));
        Offers o = { .requests = a->requests, .reply = reply };
        const NumberedEvent *software, *hardware;
        size_t n_software, n_hardware;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__available_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_AVAILABLE;
        a->response->available = reply;
        if (q->glob && offers_is_of_file(q->glob))
                return offers_add_file(&o, q->glob, e);
        r = glob_compile(q->glob && *q->glob ? q->glob : "*", &glob, e);
        if (r != 0)
                return r;
        o.glob = glob;
        software = software_events(&n_software);
        hardware = hardware_events(&n_hardware);
        r = offers_add_numbered(&o, software, n_software, PERF_TYPE_SOFTWARE, EVENT_NAME_SOFTWARE);
        if (r == 0)
                r = offers_add_numbered(&o, hardware, n_hardware, PERF_TYPE_HARDWARE, EVENT_NAME_HARDWARE);
        if (r == 0)
                r = offers_add_cache(&o);
        if (r == 0)
                r = offers_add_pmus(&o);
        if (r == 0)
                r = offers_add_tracepoints(&o, q->fields, e);
        if (r == 0)
                r = offers_add_forms(&o);
        return r;
}
