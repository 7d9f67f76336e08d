/*
 * Which names are fields is asked before the subscription, because "pid" is one of some events only, and what is not needed costs
 * most of what a sample costs. And an error can be named here with all that would have been possible.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/count/count.h"
#include "client/perfctl/base/field-copy.h"
#include "client/perfctl/base/near.h"

#define SHOWN_MAX 24 /* fields in a message */

/* What the daemon says of each of the words. */
typedef struct Listing {
        perfd_result **results;
        size_t n;
        size_t result, row; /* where next_event() goes on */
} Listing;

static void listing_deinit(Listing *l) {
        for (size_t i = 0; i < l->n; i++)
                perfd_result_free(l->results[i]);
        free(l->results);
}

static void rewind_events(Listing *l) {
        l->result = l->row = 0;
}

/* The next one that runs; NULL: there is none. */
static const perfd_event_row *next_event(Listing *l) {
        const perfd_event_row *row;

        for (; l->result < l->n; l->result++, l->row = 0)
                while ((row = perfd_result_event(l->results[l->result], l->row))) {
                        l->row++;
                        if (!*row->pending)
                                return row;
                }
        return NULL;
}

static int listing_init(Listing *l, const Perfctl *p, const EventWords *words) {
        l->results = must_have(calloc(words->n + 1, sizeof(*l->results)));
        for (; l->n < words->n; l->n++)
                if (perfd_list_with_fields(p->client, words->names[l->n], &l->results[l->n]) != 0)
                        return perfctl_fail_client(p, NULL);
        return 0;
}

static const perfd_field *find_field(const perfd_event_row *row, const KeyName *name) {
        for (size_t i = 0; name->field && i < row->n_fields; i++)
                if (strcmp(row->fields[i].name, name->field) == 0)
                        return &row->fields[i];
        return NULL;
}

static int fail_unknown(const Perfctl *p, const char *option, const char *text, Listing *list) {
        bool is_column = strcmp(option, "by") == 0;
        const perfd_event_row *row;
        Near near = near_of(text);
        size_t n = 0, size;
        char *fields;
        FILE *f = must_have(open_memstream(&fields, &size));
        int r;

        rewind_events(list);
        row = next_event(list);
        for (size_t i = 0; i < row->n_fields; i++, n++) {
                near_add(&near, row->fields[i].name);
                if (n < SHOWN_MAX)
                        fprintf(f, "%s%s", n > 0 ? ", " : "", row->fields[i].name);
        }
        if (n > SHOWN_MAX)
                fprintf(f, ", ...");
        for (int i = 0; is_column && i < _KEY_PART_MAX; i++)
                near_add(&near, key_part_name((KeyPart)i));
        must_have(fclose(f) == 0 ? fields : NULL);
        r = perfctl_fail(p, PERFCTL_USAGE, "--%s: none of the events has a field '%s'%s%s%s %s has %s%s%s", option, text,
                         near.best ? ", did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : ":", row->spec->name,
                         n > 0 ? "the fields " : "none", fields, is_column ? ", and each sample has " KEY_PARTS : ", and each sample has period");
        free(fields);
        return r;
}

/* Of an event that has it: whether it can be what is asked for. noun: what is of numbers; NULL: a column is of anything. */
static int check_field(const Perfctl *p, const char *option, const char *noun, const KeyName *name, const perfd_event_row *row,
                       const perfd_field *f) {
        bool is_array = field_is_number(f) && f->count != 1;

        if (name->element >= 0 && !is_array)
                return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' of %s is not an array of numbers: [ ] cannot follow", option,
                                    f->name, row->spec->name);
        if (name->element >= 0 && f->count > 0 && name->element >= f->count)
                return perfctl_fail(p, PERFCTL_USAGE,
                                    "--%s: '%s' of %s has the elements 0 to %" PRIu32 ", and not %" PRId64, option,
                                    f->name, row->spec->name, f->count - 1, name->element);
        if (noun && !field_is_number(f))
                return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' of %s is a text, and %s is of numbers", option, f->name,
                                    row->spec->name, noun);
        if (noun && is_array && name->element < 0)
                return perfctl_fail(p, PERFCTL_USAGE,
                                    "--%s: '%s' of %s is an array: name one of its elements, from %s[0] on", option, f->name,
                                    row->spec->name, f->name);
        return 0;
}

/* Who writes pid mostly means the process: where an event has a field of that name, it is another one. */
static void tell_field(const Perfctl *p, const KeyName *name, const char *event, size_t n_have, size_t n_lack) {
        if (n_have == 0 || name->part == KEY_NONE)
                return;
        (void)perfctl_fail(p, PERFCTL_OK, "--by %s counts by the field %s of %s%s%s; --by sample.%s counts by the thread that "
                           "the sample is of", name->text, name->field, event, n_have > 1 ? " and others that have one" : "",
                           n_lack > 0 ? ", and of events without such a field by the thread" : "", key_part_name(name->part));
}

/* What has to be asked for goes to `fields`, each once. */
static int choose(const Perfctl *p, const char *option, const char *noun, const KeyName *name, Listing *list, const char **fields,
                  size_t *n_fields) {
        size_t n_have = 0, n_lack = 0;
        const char *event = NULL; /* the first that has it */
        const perfd_event_row *row;
        int r;

        rewind_events(list);
        while ((row = next_event(list))) {
                const perfd_field *f = find_field(row, name);

                r = f ? check_field(p, option, noun, name, row, f) : 0;
                if (r != 0)
                        return r;
                if (f && n_have++ == 0)
                        event = row->spec->name;
                n_lack += !f;
        }
        if (!noun)
                tell_field(p, name, event, n_have, n_lack);
        if (n_have == 0)
                return name->part == KEY_PERIOD || (name->part != KEY_NONE && !noun) ? 0 : fail_unknown(p, option, name->text, list);
        for (size_t i = 0; i < *n_fields; i++)
                if (strcmp(fields[i], name->field) == 0)
                        return 0;
        fields[(*n_fields)++] = name->field;
        return 0;
}

int count_choose_fields(const Perfctl *p, const CountOptions *o, const EventWords *words, const char ***ret_fields,
                        size_t *ret_n_fields) {
        __attribute__((cleanup(listing_deinit))) Listing list = { .results = NULL };
        const char **fields = must_have(calloc(o->n_columns + KEY_NUMBERS_MAX + 1, sizeof(*fields)));
        size_t n_fields = 0;
        int r = listing_init(&list, p, words);

        *ret_fields = fields;
        *ret_n_fields = 0;
        if (r != 0 || !next_event(&list)) /* the daemon says which is none */
                return r;
        for (size_t i = 0; i < o->n_columns && r == 0; i++)
                r = choose(p, "by", NULL, &o->columns[i], &list, fields, &n_fields);
        for (size_t i = 0; i < o->n_functions && r == 0; i++)
                r = choose(p, count_function_name(o->functions[i].function), count_function_noun(o->functions[i].function),
                           &o->functions[i].name, &list, fields, &n_fields);
        if (r == 0 && o->has_number)
                r = choose(p, "hist", "a histogram", &o->number, &list, fields, &n_fields);
        *ret_n_fields = n_fields;
        return r;
}
