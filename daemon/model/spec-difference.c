/*
 * A table of keys, each with a function that writes its value: two specs differ in a key if what is written differs. That is
 * as exact as comparing the values, because nobody reads more from a plan than what is written in it.
 */
#include "daemon/model/spec-difference.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/error-trail.h"

static void write_string(FILE *f, const char *text) {
        fputs(text ? text : "", f);
}

static void write_number(FILE *f, uint64_t number) {
        if (number > 0)
                fprintf(f, "%" PRIu64, number);
}

static void write_list(FILE *f, const Strings *list) {
        for (size_t i = 0; i < list->n; i++)
                fprintf(f, "%s%s", i > 0 ? ", " : "", list->items[i]);
}

static void write_event(FILE *f, const EventSpec *s) {
        write_string(f, s->event);
}

static void write_group(FILE *f, const EventSpec *s) {
        write_string(f, event_spec_group(s));
}

static void write_filter(FILE *f, const EventSpec *s) {
        write_string(f, s->filter);
}

static void write_args(FILE *f, const EventSpec *s) {
        write_string(f, s->args);
}

static void write_maxactive(FILE *f, const EventSpec *s) {
        write_number(f, s->maxactive);
}

static void write_period(FILE *f, const EventSpec *s) {
        write_number(f, s->period);
}

static void write_frequency(FILE *f, const EventSpec *s) {
        write_number(f, s->frequency);
}

/* The longest unit that it is a whole number of. */
static void write_interval(FILE *f, const EventSpec *s) {
        static const struct {
                nsec_t size;
                const char *name;
        } units[] = { { NSEC_PER_SEC, "s" }, { NSEC_PER_MSEC, "ms" }, { NSEC_PER_USEC, "us" }, { 1, "ns" } };
        size_t i = 0;

        if (s->interval == 0)
                return;
        while (s->interval % units[i].size != 0)
                i++;
        fprintf(f, "%" PRIu64 "%s", s->interval / units[i].size, units[i].name);
}

static void write_fallback(FILE *f, const EventSpec *s) {
        write_string(f, s->fallback);
}

static void write_callchain(FILE *f, const EventSpec *s) {
        static const char *const words[] = { "kernel", "user", "dwarf" };
        const char *between = "";

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (s->callchain & 1u << i) {
                        fprintf(f, "%s%s", between, words[i]);
                        between = ", ";
                }
}

static void write_enabled(FILE *f, const EventSpec *s) {
        fputs(s->disabled ? "false" : "true", f);
}

static void write_include_self(FILE *f, const EventSpec *s) {
        fputs(s->include_self ? "true" : "false", f);
}

static void write_attr(FILE *f, const EventSpec *s) {
        write_list(f, &s->attr);
}

static void write_fields(FILE *f, const EventSpec *s) {
        write_list(f, &s->fields);
}

static void write_ids(FILE *f, const char *what, const uint32_t *ids, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%" PRIu32, i > 0 ? "," : what, ids[i]);
}

static void write_names(FILE *f, const char *what, const Strings *names) {
        for (size_t i = 0; i < names->n; i++)
                fprintf(f, "%s%s", i > 0 ? "," : what, names->items[i]);
}

/* Its name, and what that means: the same name may mean something else. */
static void write_target(FILE *f, const EventSpec *s) {
        fputs(s->target ? s->target : event_spec_is_host(s) ? "host" : "", f);
        write_ids(f, " pids ", s->pids, s->n_pids);
        write_ids(f, " tids ", s->tids, s->n_tids);
        write_names(f, " cgroups ", &s->cgroups);
        write_names(f, " containers ", &s->containers);
        write_names(f, " units ", &s->units);
        if (s->cpus)
                fprintf(f, " cpus %s", s->cpus);
        if (s->no_inherit)
                fputs(" without children", f);
}

static const struct {
        const char *field;
        void (*write)(FILE *f, const EventSpec *s);
} fields[] = {
        { "group", write_group },
        { "target", write_target },
        { "event", write_event },
        { "filter", write_filter },
        { "args", write_args },
        { "maxactive", write_maxactive },
        { "period", write_period },
        { "frequency", write_frequency },
        { "interval", write_interval },
        { "fallback", write_fallback },
        { "callchain", write_callchain },
        { "enabled", write_enabled },
        { "include-self", write_include_self },
        { "attr", write_attr },
        { "fields", write_fields },
};

void spec_differences_free(SpecDifference *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(list[i].before);
                free(list[i].after);
        }
        free(list);
}

/* NULL: no memory. */
static char *field_text(size_t field, const EventSpec *s) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        fields[field].write(f, s);
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

int event_spec_differences(const EventSpec *before, const EventSpec *after, SpecDifference **ret, size_t *ret_n) {
        SpecDifference *list = calloc(ARRAY_SIZE(fields), sizeof(*list));
        size_t n = 0;

        if (!list)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                SpecDifference *d = &list[n++];

                *d = (SpecDifference){ .field = fields[i].field, .before = field_text(i, before),
                                       .after = field_text(i, after) };
                if (!d->before || !d->after) {
                        spec_differences_free(list, n);
                        return error_origin(-ENOMEM);
                }
                if (strcmp(d->before, d->after) == 0) {
                        free(d->before);
                        free(d->after);
                        n--;
                }
        }
        *ret = list;
        *ret_n = n;
        return 0;
}
