/*
 * Who types the name of a tracepoint means all of it. What runs by that name may have a filter, a period or a target: of the
 * configuration, or because somebody has added it so. That is used, because it is what the administrator wants to be used, but it is
 * said, because nothing in the samples would; so are events that are disabled, and those whose targets are gone.
 */
#include "client/perfctl/events/running-events.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/quantity.h"

bool running_is_reference(const char *word) {
        return word[0] == '@' || word[0] == '#';
}

bool running_is_glob(const char *word) {
        return strpbrk(word, "*?[") && !running_is_reference(word);
}

bool running_selects(const char *word, const perfd_event_row *row) {
        char id[16];

        (void)snprintf(id, sizeof(id), "#%u", row->id);
        if (word[0] == '@')
                return fnmatch(word + 1, row->spec->group, 0) == 0;
        return strcmp(word, id) == 0 || strcmp(word, row->spec->name) == 0 || fnmatch(word, row->spec->name, 0) == 0;
}

bool running_is_any(const char *word, const perfd_result *list) {
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (!*row->pending && running_selects(word, row))
                        return true;
        return false;
}

/* NULL: none is called so. */
static const perfd_event_row *find(const char *name, const perfd_result *list) {
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (strcmp(name, row->spec->name) == 0)
                        return row;
        return NULL;
}

static bool has_kernel_name(const perfd_event_row *row) {
        return strcmp(row->spec->name, row->spec->event) == 0;
}

bool running_is_temporary(const char *word, const perfd_result *list) {
        const perfd_event_row *row = find(word, list);

        return row && row->temporary && has_kernel_name(row);
}

bool running_is_to_add(const EventWords *words, const perfd_result *list) {
        if (perfd_result_is_truncated(list))
                return false;
        for (size_t i = 0; i < words->n; i++) {
                const char *word = words->names[i];

                if (running_is_temporary(word, list) || !(running_is_glob(word) || running_is_reference(word) || find(word, list)))
                        return true;
        }
        return false;
}

/* ---- what it leaves out ------------------------------------------------------------------------------------------ */

static void put_numbers(FILE *f, const char *what, const uint32_t *numbers, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%" PRIu32, i == 0 ? what : ",", numbers[i]);
}

static void put_words(FILE *f, const char *what, const char *const *words, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s", i == 0 ? what : ",", words[i]);
}

static bool is_set(const char *text) {
        return text && *text;
}

/* ", filter 'common_pid == 1', period 1000"; "": nothing. malloc'ed */
static char *restrictions_text(const perfd_event_spec *s) {
        char interval[QUANTITY_SIZE], *text;
        size_t size;
        FILE *f = must_have(open_memstream(&text, &size));

        if (is_set(s->filter))
                fprintf(f, ", filter '%s'", s->filter);
        if (s->period > 1)
                fprintf(f, ", period %" PRIu64, s->period);
        if (s->frequency > 0)
                fprintf(f, ", frequency %" PRIu64, s->frequency);
        if (s->interval > 0 && s->period == 0 && s->frequency == 0)
                fprintf(f, ", counts every %s instead of samples", quantity_show_time(s->interval, interval));
        if (is_set(s->target))
                fprintf(f, ", target %s", s->target);
        else {
                put_numbers(f, ", pid ", s->pids, s->n_pids);
                put_numbers(f, ", tid ", s->tids, s->n_tids);
                put_words(f, ", cgroup ", s->cgroups, s->n_cgroups);
                put_words(f, ", container ", s->containers, s->n_containers);
                put_words(f, ", unit ", s->units, s->n_units);
                if (is_set(s->cpus))
                        fprintf(f, ", cpu %s", s->cpus);
        }
        put_words(f, ", attr ", s->attr, s->n_attr);
        must_have(fclose(f) == 0 ? text : NULL);
        return text;
}

/* An option that says how it is sampled has the verb add one of its own; this one asks for what is the default. */
static const char *own_option(const char *event) {
        return strchr(event, ':') && !strchr(event, '/') ? "--period 1" : "--frequency 99";
}

static void tell_restrictions(const Perfctl *p, const perfd_event_row *row) {
        char *text = restrictions_text(row->spec);
        const char *name = row->spec->name;

        if (*text && perfd_client_may_change(p->client))
                (void)perfctl_fail(p, PERFCTL_OK, "%s is a running event that has%s: for one of your own, `perfctl %s '%s' %s`", name,
                                   text + 1, p->verb->name, name, own_option(row->spec->event));
        else if (*text)
                (void)perfctl_fail(p, PERFCTL_OK, "%s is a running event that has%s: one of your own needs the control socket, or a rule "
                                   "that grants it", name, text + 1);
        free(text);
}

/* Running events that a word selects. */
typedef struct Selected {
        size_t n, n_enabled, n_present; /* present: some of its tasks or cgroups are there */
        const char *absent;             /* of one that has none: why; NULL: its tasks have ended */
} Selected;

static Selected selected_of(const char *word, const perfd_result *list) {
        Selected s = { .n = 0 };
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++) {
                const perfd_event_spec *spec = row->spec;
                const bool has_cgroups = spec->n_cgroups + spec->n_containers + spec->n_units > 0;

                if (*row->pending || !running_selects(word, row))
                        continue;
                s.n++;
                s.n_enabled += row->enabled;
                if (has_cgroups && row->n_targets == 0)
                        s.absent = *row->absent ? row->absent : "no cgroup matches its target";
                else if (row->n_targets == 0 || row->n_ended < row->n_targets)
                        s.n_present++;
        }
        return s;
}

static void tell_absence(const Perfctl *p, const char *word, const char *absent) {
        if (absent)
                (void)perfctl_fail(p, PERFCTL_OK, "%s delivers no samples for now: %s", word, absent);
        else
                (void)perfctl_fail(p, PERFCTL_OK, "the tasks of %s have ended: only children of theirs that run on can deliver samples", word);
}

static void tell_of_word(const Perfctl *p, const char *word, const perfd_result *list) {
        const perfd_event_row *row = find(word, list);
        const Selected s = selected_of(word, list);

        if (s.n > 0 && s.n_enabled == 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s is disabled: `perfctl enable '%s'`", word, word);
        else if (s.n > 0 && s.n_present == 0)
                tell_absence(p, word, s.absent);
        if (row && !*row->pending && has_kernel_name(row))
                tell_restrictions(p, row);
}

void running_tell(const Perfctl *p, const EventWords *words, const perfd_result *list) {
        for (size_t i = 0; i < words->n; i++)
                tell_of_word(p, words->names[i], list);
}
