/*
 * What another configuration would change, found by preparing that change as a reload does, and closing it all again: so a
 * plan can not say anything else than what is done then.
 */
#include "daemon/supervisor-reload.h"

#include <stdio.h>
#include <string.h>

#include "daemon/model/spec-difference.h"
#include "daemon/supervisor-registered.h"
#include "daemon/supervisor-requests.h"

static int difference_new(const char *field, const char *before, const char *after, Perfd__V1__Difference ***list,
                          size_t *n) {
        Perfd__V1__Difference **more = reallocarray(*list, *n + 1, sizeof(*more)), *d;
        int r;

        if (!more)
                return error_origin(-ENOMEM);
        *list = more;
        d = malloc(sizeof(*d));
        if (!d)
                return error_origin(-ENOMEM);
        perfd__v1__difference__init(d);
        more[(*n)++] = d;
        r = string_set(&d->field, field);
        if (r == 0)
                r = string_set(&d->before, before);
        return r == 0 ? string_set(&d->after, after) : r;
}

static int add_differences(const EventSpec *before, const EventSpec *after, Perfd__V1__PlannedEvent *m) {
        SpecDifference *list = NULL;
        size_t n = 0;
        int r = event_spec_differences(before, after, &list, &n);

        for (size_t i = 0; i < n && r == 0; i++)
                r = difference_new(list[i].field, list[i].before, list[i].after, &m->differences, &m->n_differences);
        spec_differences_free(list, n);
        return r;
}

typedef struct PlannedList {
        Perfd__V1__PlannedEvent ***events;
        size_t *n;
} PlannedList;

/* before: of the running event, or NULL. after: as it would be; NULL: gone. */
static int planned_new(PlannedList list, const Registration *running, const EventSpec *after, bool replaced) {
        const EventSpec *spec = after ? after : &running->event->spec;
        Perfd__V1__PlannedEvent **more = reallocarray(*list.events, *list.n + 1, sizeof(*more)), *m;
        int r;

        if (!more)
                return error_origin(-ENOMEM);
        *list.events = more;
        m = malloc(sizeof(*m));
        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__planned_event__init(m);
        more[(*list.n)++] = m;
        m->id = running ? running->event->id : 0;
        m->replaced = replaced;
        if ((r = string_set(&m->name, spec->name)) < 0 || (r = string_set(&m->event, spec->event)) < 0 ||
            (r = string_set(&m->group, event_spec_group(spec))) < 0)
                return r;
        return running && after ? add_differences(&running->event->spec, after, m) : 0;
}

static int plan_added(const Supervisor *s, const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList added = { &ret->added, &ret->n_added }, changed = { &ret->changed, &ret->n_changed };
        int r = 0;

        for (const Registration *g = w->added; g && r == 0; g = g->next) {
                const Registration *running = supervisor_find(s, g->event->spec.name);

                r = planned_new(running ? changed : added, running, &g->event->spec, running != NULL);
        }
        return r;
}

static int plan_kept(const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList changed = { &ret->changed, &ret->n_changed }, kept = { &ret->kept, &ret->n_kept };
        size_t next = 0; /* replacements are in the order of what is kept */
        int r = 0;

        for (size_t i = 0; i < w->n_kept && r == 0; i++) {
                const Registration *running = w->kept[i];

                if (next < w->n_replacements && w->replacements[next].registration == running)
                        r = planned_new(changed, running, &w->replacements[next++].event->spec, false);
                else
                        r = planned_new(kept, running, &running->event->spec, false);
        }
        return r;
}

/* What another one takes the name of is replaced. */
static int plan_removed(const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList removed = { &ret->removed, &ret->n_removed };
        Index added = INDEX_NULL;
        int r = names_add_list(&added, w->added);

        for (size_t i = 0; i < w->n_removed && r == 0; i++)
                if (!names_find(&added, w->removed[i]->event->spec.name))
                        r = planned_new(removed, w->removed[i], NULL, false);
        index_deinit(&added);
        return r;
}

static int plan_setting(Perfd__V1__PlanReply *ret, const char *key, const char *before, const char *after, bool restart) {
        int r;

        if (strcmp(before, after) == 0)
                return 0;
        r = difference_new(key, before, after, &ret->settings, &ret->n_settings);
        if (r == 0)
                ret->settings[ret->n_settings - 1]->restart = restart;
        return r;
}

static int plan_number(Perfd__V1__PlanReply *ret, const char *key, uint64_t before, uint64_t after, bool restart) {
        char texts[2][24];

        (void)snprintf(texts[0], sizeof(texts[0]), "%llu", (unsigned long long)before);
        (void)snprintf(texts[1], sizeof(texts[1]), "%llu", (unsigned long long)after);
        return plan_setting(ret, key, texts[0], texts[1], restart);
}

static int plan_mode(Perfd__V1__PlanReply *ret, const char *key, mode_t before, mode_t after) {
        char texts[2][16];

        (void)snprintf(texts[0], sizeof(texts[0]), "%04o", (unsigned)before);
        (void)snprintf(texts[1], sizeof(texts[1]), "%04o", (unsigned)after);
        return plan_setting(ret, key, texts[0], texts[1], true);
}

static int plan_priority(Perfd__V1__PlanReply *ret, const char *key, ThreadPriority before, ThreadPriority after) {
        char texts[2][CONFIG_PRIORITY_SIZE];

        return plan_setting(ret, key, config_priority_text(before, texts[0]), config_priority_text(after, texts[1]), true);
}

static int plan_cpus(Perfd__V1__PlanReply *ret, const char *key, const char *before, const char *after) {
        return plan_setting(ret, key, before ? before : "all", after ? after : "all", true);
}

static int plan_places(const Config *before, const Config *after, Perfd__V1__PlanReply *ret) {
        int r;

        if ((r = plan_priority(ret, "readers.priority", before->reader_priority, after->reader_priority)) < 0 ||
            (r = plan_cpus(ret, "readers.cpus", before->reader_cpus, after->reader_cpus)) < 0 ||
            (r = plan_number(ret, "readers.guard", before->reader_guard, after->reader_guard, true)) < 0)
                return r;
        r = plan_priority(ret, "dispatcher.priority", before->dispatcher_priority, after->dispatcher_priority);
        return r < 0 ? r : plan_cpus(ret, "dispatcher.cpus", before->dispatcher_cpus, after->dispatcher_cpus);
}

static int plan_settings(const Config *before, const Config *after, Perfd__V1__PlanReply *ret) {
        int r;

        if ((r = plan_setting(ret, "listen.control", before->control_path, after->control_path, true)) < 0 ||
            (r = plan_setting(ret, "listen.stream", before->stream_path, after->stream_path, true)) < 0 ||
            (r = plan_mode(ret, "access.control-mode", before->control_mode, after->control_mode)) < 0 ||
            (r = plan_mode(ret, "access.stream-mode", before->stream_mode, after->stream_mode)) < 0 ||
            (r = plan_setting(ret, "access.stream-group", before->stream_group, after->stream_group, true)) < 0 ||
            (r = plan_setting(ret, "state", before->state_path, after->state_path, true)) < 0 ||
            (r = plan_setting(ret, "clock", config_clock_name(before), config_clock_name(after), true)) < 0 ||
            (r = plan_number(ret, "rings.size", before->ring_size, after->ring_size, false)) < 0 ||
            (r = plan_number(ret, "batches.pool", before->batch_pool, after->batch_pool, true)) < 0 ||
            (r = plan_places(before, after, ret)) < 0 ||
            (r = plan_number(ret, "subscribers.max", before->subscribers_max, after->subscribers_max, true)) < 0 ||
            (r = plan_number(ret, "subscribers.memory", before->subscriber_memory, after->subscriber_memory, false)) < 0 ||
            (r = plan_number(ret, "subscribers.memory-per-uid", before->subscriber_memory_per_uid,
                             after->subscriber_memory_per_uid, false)) < 0 ||
            (r = plan_number(ret, "subscribers.queue", before->subscriber_queue, after->subscriber_queue, false)) < 0 ||
            (r = plan_number(ret, "subscribers.latency", before->subscriber_latency, after->subscriber_latency, false)) < 0)
                return r;
        if ((r = plan_number(ret, "connections.max", before->connections_max, after->connections_max, true)) < 0 ||
            (r = plan_number(ret, "connections.per-uid", before->connections_per_uid, after->connections_per_uid, true)) < 0 ||
            (r = plan_number(ret, "events.per-uid", before->events_per_uid, after->events_per_uid, false)) < 0)
                return r;
        return plan_number(ret, "fds.per-uid", before->fds_per_uid, after->fds_per_uid, false);
}

int supervisor_plan(Supervisor *s, const char *yaml, const char *path, Perfd__V1__PlanReply *ret, Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        Reload w = { .end = &w.added };
        int r;

        thread_assert(THREAD_MAIN);
        r = reload_parse(yaml, path, &c, e);
        if (r != 0)
                return r;
        r = reload_prepare(s, c, &w, e);
        if (r == 0)
                r = plan_added(s, &w, ret);
        if (r == 0)
                r = plan_kept(&w, ret);
        if (r == 0)
                r = plan_removed(&w, ret);
        if (r == 0)
                r = plan_settings(s->config, c, ret);
        reload_deinit(s, &w);
        return r;
}
