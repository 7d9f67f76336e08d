/* A name in an expression is what stands behind the last operator: all before it stays as it was typed. */
#include "client/perfctl/complete.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What every sample has, for conditions: daemon/route/match-resolve.c. */
static const char *const of_samples[] = { "pid", "tid", "cpu", "time", "comm" };

typedef struct Fields {
        Perfctl *p;
        const char *word;
        char *before; /* of the word, in front of the name */
        const char **seen;
        size_t n_seen;
} Fields;

/* Where the last name begins; NULL: the end is inside of a text. */
static const char *find_name(const char *word) {
        const char *name = word;
        bool in_text = false;

        for (const char *c = word; *c; c++) {
                in_text ^= *c == '"';
                if (!isalnum((unsigned char)*c) && *c != '_')
                        name = c + 1;
        }
        return in_text ? NULL : name;
}

static void offer_field(Fields *f, const char *name) {
        for (size_t i = 0; i < f->n_seen; i++)
                if (strcmp(f->seen[i], name) == 0)
                        return;
        f->seen = must_have(reallocarray(f->seen, f->n_seen + 1, sizeof(*f->seen)));
        f->seen[f->n_seen++] = must_have(strdup(name));
        complete_offer(f->p, f->word, f->before, name);
}

static size_t offer_running(Fields *f, const char *event) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *e;
        size_t n = 0;

        if (perfd_list_with_fields(f->p->client, event, &result) != 0)
                return 0;
        for (; (e = perfd_result_event(result, n)); n++)
                for (size_t i = 0; i < e->n_fields; i++)
                        offer_field(f, e->fields[i].name);
        return n;
}

static void offer_offered(Fields *f, const char *event) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_available_row *a;

        if (perfd_available(f->p->client, event, true, &result) != 0)
                return;
        for (size_t i = 0; (a = perfd_result_available(result, i)); i++)
                for (size_t k = 0; k < a->n_fields; k++)
                        offer_field(f, a->fields[k].name);
}

void complete_fields(Perfctl *p, const char *word, Words words, const char *const *events, size_t n_events) {
        const char *name = find_name(word);
        Fields f = { .p = p, .word = word };

        if (!name || perfctl_connect_quietly(p) != 0)
                return;
        f.before = must_have(strndup(word, (size_t)(name - word)));
        for (size_t i = 0; i < n_events; i++)
                if (offer_running(&f, events[i]) == 0)
                        offer_offered(&f, events[i]);
        for (size_t i = 0; words == WORDS_FIELDS && i < sizeof(of_samples) / sizeof(of_samples[0]); i++)
                offer_field(&f, of_samples[i]);
        for (size_t i = 0; i < f.n_seen; i++)
                free((char *)f.seen[i]);
        free(f.seen);
        free(f.before);
}
