/*
 * Between the daemon's list and the request to add, another client may add an event of the same name: then the daemon refuses, and
 * the caller asks for the list again. A name with a process id can be taken too: by the same event, named twice on one command
 * line, or by a process of another pid namespace. So a number follows it until it is free.
 */
#include "client/perfctl/events/added-names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/base/perfctl.h"

static const char *name_of(const perfd_event_spec *s) {
        return s->name ? s->name : s->event;
}

static bool is_pattern(const char *event) {
        return strpbrk(event, "*?[") && !strchr(event, '/'); /* a path may have brackets, and is none */
}

static bool is_same(const char *a, const char *b) {
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The daemon may share it, which knows all of what is equal: what surely is not need not be asked for. */
static bool may_be_shared(const perfd_event_row *row, const perfd_event_spec *s) {
        const perfd_event_spec *there = row->spec;

        return row->temporary && row->enabled && is_same(there->event, s->event) && is_same(there->filter, s->filter) &&
               is_same(there->args, s->args) && is_same(there->cpus, s->cpus) && is_same(there->target, s->target) &&
               there->period == s->period && there->frequency == s->frequency && there->callchain == s->callchain &&
               there->n_attr == s->n_attr && s->n_pids + s->n_tids + s->n_cgroups + s->n_containers + s->n_units == 0;
}

/* An event that runs is called so and is not to be shared by `shared`, or one of `before`. */
static bool is_taken(const char *name, const perfd_event_spec *shared, const perfd_event_spec *before, size_t n_before,
                     const perfd_result *list) {
        const perfd_event_row *row;

        for (size_t i = 0; i < n_before; i++)
                if (strcmp(name, name_of(&before[i])) == 0)
                        return true;
        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (strcmp(name, row->spec->name) == 0 && !(shared && may_be_shared(row, shared)))
                        return true;
        return false;
}

/* The k-th name that is tried; malloc'ed. */
static char *make_name(const char *event, unsigned k) {
        char *name;
        int r = k == 1 ? asprintf(&name, "%s~%d", event, (int)getpid()) : asprintf(&name, "%s~%d~%u", event, (int)getpid(), k);

        return must_have(r < 0 ? NULL : name);
}

void added_names_choose(perfd_event_spec *specs, size_t n, const perfd_result *list, bool with_id) {
        for (size_t i = 0; i < n; i++) {
                specs[i].name = NULL;
                if (is_pattern(specs[i].event) || (!with_id && !is_taken(specs[i].event, &specs[i], specs, i, list)))
                        continue;
                for (unsigned k = 1; !specs[i].name || is_taken(specs[i].name, NULL, specs, i, list); k++) {
                        free((char *)specs[i].name);
                        specs[i].name = make_name(specs[i].event, k);
                }
        }
}

void added_names_free(perfd_event_spec *specs, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free((char *)specs[i].name);
                specs[i].name = NULL;
        }
}
