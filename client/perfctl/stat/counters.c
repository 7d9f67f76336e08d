/* Which events are counted, and what their counters say; reads.c has what is read of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/events/near-event.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/stat/stat.h"
#include "client/perfctl/events/target.h"

/* Room for n more at the end. */
static StatCounter *counters_grow(StatCounters *c, size_t n) {
        c->list = must_have(reallocarray(c->list, c->n + n + 1, sizeof(*c->list)));
        memset(&c->list[c->n], 0, n * sizeof(*c->list));
        c->n += n;
        return &c->list[c->n - n];
}

static void counter_init(StatCounter *counter, const char *event, const char *unit, double scale) {
        *counter = (StatCounter){ .event = must_have(strdup(event)), .scale = scale, .n_shares = 1 };
        counter->unit = must_have(strdup(unit));
}

static void counter_set_place(StatCounter *counter, const char *place) {
        counter->place = place ? must_have(strdup(place)) : NULL;
}

static void counter_deinit(StatCounter *counter) {
        free(counter->event);
        free(counter->unit);
        free(counter->place);
        free(counter->cpus);
}

static void add_event(StatCounters *c, const perfd_ref_row *ref, const char *event, const char *place) {
        StatEvent *e;

        c->events = must_have(reallocarray(c->events, c->n_events + 1, sizeof(*c->events)));
        e = &c->events[c->n_events++];
        *e = (StatEvent){ .id = ref->id, .name = must_have(strdup(ref->name)), .first = c->n };
        counter_init(counters_grow(c, 1), event, "events", 1);
        counter_set_place(&c->list[c->n - 1], place);
}

/* Of tracepoints. */
static bool is_glob(const char *event) {
        return *event != '{' && strpbrk(event, "*?[") && strchr(event, ':') && !strchr(event, '/');
}

/* Each under a name that no other event has, nor any other run of the command; a glob alone cannot have one. */
static int request_add(Perfctl *p, char *const *events, size_t n, const perfd_event_spec *target, const StatAsked *asked,
                       perfd_result **ret) {
        static const char *const enable_on_exec = "enable-on-exec=true";
        static size_t n_added;
        perfd_event_spec *specs = must_have(calloc(n, sizeof(*specs)));
        char (*names)[64] = must_have(calloc(n, sizeof(*names)));
        int r;

        for (size_t i = 0; i < n; i++) {
                (void)snprintf(names[i], sizeof(names[i]), "stat.%d.%zu", (int)getpid(), n_added++);
                specs[i] = *target;
                specs[i].event = events[i];
                specs[i].fallback = stat_event_is_cycles(events[i]) ? asked->target.fallback : NULL;
                specs[i].name = is_glob(events[i]) ? NULL : names[i];
                specs[i].interval = asked->interval;
                specs[i].disabled = true;
                specs[i].attr = asked->from_exec ? &enable_on_exec : NULL;
                specs[i].n_attr = asked->from_exec;
        }
        r = perfd_add_temporary(p->client, specs, n, ret);
        free(names);
        free(specs);
        return r;
}

/* Of a glob's: it has gone since it was listed, or the kernel keeps it for itself. */
static bool is_left_out(const Perfctl *p) {
        const char *reason = perfd_client_error(p->client)->reason;

        return strcmp(reason, "unknown-event") == 0 || strcmp(reason, "not-sampled") == 0;
}

/* All in one request, or one by one if that is refused because of some of them. */
static int add_events(Perfctl *p, StatCounters *c, char *const *events, size_t n, const perfd_event_spec *target, const char *place,
                      const StatAsked *asked) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = request_add(p, events, n, target, asked, &result);
        const perfd_ref_row *ref;
        size_t n_before = c->n_events;

        for (size_t k = 0; r == 0 && (ref = perfd_result_ref(result, k)); k++)
                add_event(c, ref, k < n && !is_glob(events[k]) ? events[k] : ref->name, place);
        if (r == 0 || n == 1 || !is_left_out(p))
                return r;
        for (size_t i = 0; i < n; i++) {
                r = add_events(p, c, &events[i], 1, target, place, asked);
                if (r != 0 && !is_left_out(p))
                        return r;
        }
        return c->n_events > n_before ? 0 : r;
}

/* Whether the refusal is about this one, or only about others of its group: it is tried alone, and not kept. */
static int find_missing(Perfctl *p, char *const *member, const perfd_event_spec *target, const StatAsked *asked, StatCounter *c) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = request_add(p, member, 1, target, asked, &result);
        const perfd_ref_row *ref;

        c->is_missing = r == PERFD_E_REFUSED && perfd_client_error(p->client)->refusal == PERFD_REFUSED_UNSUPPORTED;
        c->is_uncounted = !c->is_missing;
        if (r != 0)
                return r == PERFD_E_REFUSED ? 0 : perfctl_fail_client(p, NULL);
        for (size_t i = 0; (ref = perfd_result_ref(result, i)); i++)
                if (perfd_remove(p->client, &ref->name, 1, NULL) != 0)
                        return perfctl_fail_client(p, NULL);
        return 0;
}

/* Each member of a group is one. As with perf-stat(1) none of them is counted if one is missing. */
static int add_missing(Perfctl *p, StatCounters *c, const char *event, const perfd_event_spec *target, const char *place,
                       const StatAsked *asked) {
        size_t n;
        char **members = stat_events_members(event, &n);
        StatCounter *missing = counters_grow(c, n);
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                counter_init(&missing[i], members[i], "events", 1);
                counter_set_place(&missing[i], place);
                missing[i].is_missing = n == 1;
        }
        for (size_t i = 0; n > 1 && i < n && r == 0; i++)
                r = find_missing(p, &members[i], target, asked, &missing[i]);
        stat_events_free(members, n);
        return r;
}

/* `target` observes one place, or all that was asked for. */
static int add_one(Perfctl *p, StatCounters *c, const char *event, const perfd_event_spec *target, const char *place,
                   const StatAsked *asked) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        perfd_event_spec asked_for = *target;
        bool is_read_only;
        int r;

        if (!is_glob(event) || !event_words_expand(&words, p, event))
                event_words_take(&words, event);
        r = add_events(p, c, words.names, words.n, target, place, asked);
        if (r == PERFD_E_REFUSED && perfd_client_error(p->client)->refusal == PERFD_REFUSED_UNSUPPORTED)
                return add_missing(p, c, event, target, place, asked);
        if (r == 0)
                return 0;
        asked_for.event = event;
        is_read_only = perfctl_is_tls(p) && strcmp(perfd_client_error(p->client)->reason, "not-granted") == 0;
        r = target_fail(p, specs_mistaken_text(&asked_for, 1, perfd_client_error(p->client)->reason));
        near_event_tell(p, &asked_for, 1);
        if (is_read_only)
                (void)perfctl_fail(p, r, "counters are events that it adds, which this connection may not: `watch` and `count` "
                                   "read those that run");
        return r;
}

static int add_at(Perfctl *p, StatCounters *c, const perfd_event_spec *target, const char *place, const StatAsked *asked) {
        int r = 0;

        for (size_t i = 0; i < asked->n_events && r == 0; i++)
                r = add_one(p, c, asked->events[i], target, place, asked);
        return r;
}

/* One of `list` after the other is what the spec observes, by the member that `to` and `to_n` are. */
static int add_each(Perfctl *p, StatCounters *c, const char *const *list, size_t n, perfd_event_spec *spec,
                    const char *const **to, size_t *to_n, const StatAsked *asked) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                *to = &list[i];
                *to_n = 1;
                r = add_at(p, c, spec, list[i], asked);
        }
        *to_n = 0;
        return r;
}

static int add_places(Perfctl *p, StatCounters *c, const StatAsked *asked) {
        const perfd_event_spec *t = &asked->target;
        perfd_event_spec spec = *t;
        size_t n;
        char **cgroups;
        int r;

        for (size_t i = 0; p->host && i < t->n_cgroups; i++)
                if (strpbrk(t->cgroups[i], "*?["))
                        return perfctl_fail(p, PERFCTL_USAGE, "--per-cgroup looks on this machine for what '%s' means, and counts on %s: name "
                                            "the cgroups", t->cgroups[i], p->host);
        cgroups = stat_places_find(t->cgroups, t->n_cgroups, &n);
        spec.n_cgroups = spec.n_containers = spec.n_units = 0;
        r = add_each(p, c, (const char *const *)cgroups, n, &spec, &spec.cgroups, &spec.n_cgroups, asked);
        if (r == 0)
                r = add_each(p, c, t->containers, t->n_containers, &spec, &spec.containers, &spec.n_containers, asked);
        if (r == 0)
                r = add_each(p, c, t->units, t->n_units, &spec, &spec.units, &spec.n_units, asked);
        stat_events_free(cgroups, n);
        return r;
}

/* How many items there will be in each interval: then nobody waits for one that does not come. */
static int find_expected(Perfctl *p, StatCounters *c) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *row;

        if (perfd_list(p->client, NULL, &result) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; (row = perfd_result_event(result, i)); i++) {
                StatEvent *e = stat_counters_find(c, row->id);
                bool has_places;

                if (!e)
                        continue;
                e->n_expected = row->n_fds / (row->n_targets > 0 ? row->n_targets : 1);
                e->fallback = row->fallen_back ? must_have(strdup(row->spec->fallback)) : NULL;
                has_places = row->spec->n_cgroups + row->spec->n_containers + row->spec->n_units > 0;
                e->is_task = row->n_targets > 0 && !has_places;
                e->is_host = row->n_targets == 0 && !has_places && !*row->spec->target;
        }
        return 0;
}

/* What could be counted, if it were not in a group with another one. */
static bool has_uncounted(const StatCounters *c) {
        for (size_t i = 0; i < c->n; i++)
                if (c->list[i].is_uncounted)
                        return true;
        return false;
}

/* Nothing was added. */
static int fail_missing(const Perfctl *p, const StatCounters *c) {
        const char *missing = "a member of them";

        if (!has_uncounted(c))
                return perfctl_fail_client(p, NULL); /* why the last one was refused */
        for (size_t i = 0; i < c->n; i++)
                missing = c->list[i].is_missing ? c->list[i].event : missing;
        return perfctl_fail(p, PERFCTL_FAILED, "groups are counted as a whole, and this machine cannot count %s", missing);
}

int stat_counters_add(Perfctl *p, StatCounters *c, const StatAsked *asked) {
        int r = asked->per_place ? add_places(p, c, asked) : add_at(p, c, &asked->target, NULL, asked);

        if (r == 0 && c->n_events == 0 && (!asked->is_limited || (asked->n_events == 1 && !has_uncounted(c))))
                return fail_missing(p, c);
        return r == 0 ? find_expected(p, c) : r;
}

/* The names, borrowed, of those that nobody else has removed. */
static const char **list_names(const StatCounters *c, size_t *ret_n) {
        const char **names = must_have(calloc(c->n_events + 1, sizeof(*names)));

        *ret_n = 0;
        for (size_t i = 0; i < c->n_events; i++)
                if (!c->events[i].is_removed)
                        names[(*ret_n)++] = c->events[i].name;
        return names;
}

/* All of them. */
static int request_for(Perfctl *p, perfd_client *control, const StatCounters *c,
                       int (*request)(perfd_client *client, const char *const *names, size_t n, perfd_result **ret_result)) {
        size_t n;
        const char **names = list_names(c, &n);
        perfd_client *stream = p->client;
        int r;

        p->client = control; /* whose error it would be */
        r = n == 0 || request(control, names, n, NULL) == 0 ? 0 : perfctl_fail_client(p, NULL);
        p->client = stream;
        free(names);
        return r;
}

int stat_counters_remove(Perfctl *p, const StatCounters *c) {
        return request_for(p, p->client, c, perfd_remove);
}

int stat_counters_enable(Perfctl *p, perfd_client *control, const StatCounters *c) {
        return request_for(p, control, c, perfd_enable);
}

int stat_counters_disable(Perfctl *p, perfd_client *control, const StatCounters *c) {
        return request_for(p, control, c, perfd_disable);
}

void stat_counters_deinit(StatCounters *c) {
        for (size_t i = 0; i < c->n; i++)
                counter_deinit(&c->list[i]);
        for (size_t i = 0; i < c->n_events; i++) {
                free(c->events[i].name);
                free(c->events[i].fallback);
                free(c->events[i].last);
                free(c->events[i].times);
                free(c->events[i].skipped);
                free(c->events[i].skipped_times);
        }
        free(c->list);
        free(c->events);
        *c = (StatCounters){ .list = NULL };
}

StatEvent *stat_counters_find(const StatCounters *c, uint32_t id) {
        for (size_t i = 0; i < c->n_events; i++)
                if (c->events[i].id == id)
                        return &c->events[i];
        return NULL;
}

/* The place that was kept for one counter grows to what the event has. */
void stat_counters_take_event(StatCounters *c, const perfd_event *event) {
        StatEvent *e = stat_counters_find(c, event->id);
        size_t n = event->n_counters;
        StatCounter kept;

        if (!e || e->n > 0 || n == 0)
                return;
        kept = c->list[e->first];
        (void)counters_grow(c, n - 1);
        memmove(&c->list[e->first + n], &c->list[e->first + 1], (c->n - n - e->first) * sizeof(*c->list));
        for (size_t i = 0; i < c->n_events; i++)
                if (c->events[i].first > e->first)
                        c->events[i].first += n - 1;
        e->n = n;
        e->n_expected /= n;
        for (size_t i = 0; i < n; i++) {
                const perfd_counter *counter = &event->counters[i];

                counter_init(&c->list[e->first + i], e->fallback ? e->fallback : counter->event, counter->unit, counter->scale);
                counter_set_place(&c->list[e->first + i], kept.place);
                if (e->is_task && e->n_expected > 0)
                        c->list[e->first + i].n_shares = e->n_expected;
                c->list[e->first + i].is_host = e->is_host;
        }
        counter_deinit(&kept);
}

StatCount *stat_counter_reach(StatCounter *counter, size_t cpu) {
        if (cpu >= counter->n_cpus) {
                counter->cpus = must_have(reallocarray(counter->cpus, cpu + 1, sizeof(*counter->cpus)));
                memset(&counter->cpus[counter->n_cpus], 0, (cpu + 1 - counter->n_cpus) * sizeof(*counter->cpus));
                counter->n_cpus = cpu + 1;
        }
        return &counter->cpus[cpu];
}

/* CPUs are read one after the other, while the task runs on: so much may be missing that is not. */
static double enabled_of(const StatCounter *c) {
        double enabled = (double)c->sum.enabled / (double)c->n_shares, running = (double)c->sum.running;

        return c->n_shares > 1 && enabled - running < 1e6 + enabled / 100 + (double)(c->apart * c->n_shares) ? running : enabled;
}

uint64_t stat_counter_enabled(const StatCounter *c) {
        return (uint64_t)(enabled_of(c) + 0.5);
}

double stat_counter_confidence(const StatCounter *c) {
        double enabled = enabled_of(c);

        return enabled > (double)c->sum.running ? (double)c->sum.running / enabled : 1;
}

double stat_counter_value(const StatCounter *c) {
        double confidence = stat_counter_confidence(c);

        return c->sum.value * c->scale * (c->n_shares > 1 && confidence > 0 ? 1 / confidence : 1);
}

/* A counter of whole CPUs is enabled all the time, so it tells how long that was, whenever it was switched on, read and off. */
uint64_t stat_counter_duration(const StatCounter *c, uint64_t duration) {
        uint64_t n = 0;

        for (size_t i = 0; i < c->n_cpus; i++)
                n += c->cpus[i].enabled > 0;
        if (!c->is_host || c->sum.enabled == 0)
                return duration;
        return c->is_of_cpu ? c->sum.enabled : c->sum.enabled / (n > 0 ? n : 1);
}

/* Of a task's counter on one CPU nobody knows how long it could have run there: it shared as much as on all of them. */
bool stat_counter_on(const StatCounter *c, size_t cpu, StatCounter *ret) {
        double confidence = stat_counter_confidence(c);
        StatCounter on = *c;

        if (cpu >= c->n_cpus || !c->cpus[cpu].is_there)
                return false;
        on.sum = c->cpus[cpu];
        on.is_of_cpu = true;
        if (c->n_shares > 1 && confidence > 0) {
                on.sum.value /= confidence;
                on.sum.enabled = (uint64_t)((double)on.sum.running / confidence);
        }
        if (c->n_shares > 1)
                on.n_shares = 1;
        *ret = on;
        return true;
}

bool stat_counters_any_left(const StatCounters *c) {
        for (size_t i = 0; i < c->n_events; i++)
                if (!c->events[i].is_removed)
                        return true;
        return false;
}

uint64_t stat_counters_expected(const StatCounters *c) {
        uint64_t n = 0;

        for (size_t i = 0; i < c->n_events; i++)
                n += c->events[i].n_expected;
        return n;
}
