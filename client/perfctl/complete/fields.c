/* A name in an expression is what stands behind the last operator: all before it stays as it was typed. */
#include "client/perfctl/complete/complete.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What every sample has, for conditions: daemon/route/match-resolve.c. */
static const char *const of_samples[] = { "pid", "tid", "cpu", "time", "comm", "event" };

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

static size_t offer_offered(Fields *f, const char *event) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_available_row *a;
        size_t n = 0;

        if (perfd_available(f->p->client, event, true, &result) != 0)
                return 0;
        for (; (a = perfd_result_available(result, n)); n++)
                for (size_t k = 0; k < a->n_fields; k++)
                        offer_field(f, a->fields[k].name);
        return n;
}

/* As events/event-words.h has it: "tracepoint:" says nothing, and a name without its group is that of any group. */
static void offer_event(Fields *f, const char *event) {
        static const char kind[] = "tracepoint:";
        char *glob;

        if (strncmp(event, kind, strlen(kind)) == 0)
                event += strlen(kind);
        if (!*event || offer_running(f, event) > 0 || offer_offered(f, event) > 0 || strpbrk(event, ":/{}*?[]#@"))
                return;
        must_have(asprintf(&glob, "*:%s", event) < 0 ? NULL : glob);
        if (offer_running(f, glob) == 0)
                (void)offer_offered(f, glob);
        free(glob);
}

/* Where a name and a blank are the end of `before`: there comes no other name. */
static bool offer_comparisons(const Fields *f) {
        static const char *const comparisons[] = { "==", "!=", "<", "<=", ">", ">=", "&", "~" };
        size_t end = strlen(f->before), begin;

        while (end > 0 && f->before[end - 1] == ' ')
                end--;
        begin = end;
        while (begin > 0 && (isalnum((unsigned char)f->before[begin - 1]) || f->before[begin - 1] == '_'))
                begin--;
        if (end == strlen(f->before) || begin == end || isdigit((unsigned char)f->before[begin]))
                return false;
        for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++)
                complete_offer(f->p, f->word, f->before, comparisons[i]);
        return true;
}

static void offer_names(Fields *f, Words words, const char *const *events, size_t n_events) {
        for (size_t i = 0; i < n_events; i++)
                offer_event(f, events[i]);
        for (size_t i = 0; words == WORDS_FIELDS && i < sizeof(of_samples) / sizeof(of_samples[0]); i++)
                offer_field(f, of_samples[i]);
}

void complete_fields(Perfctl *p, const char *word, Words words, const char *const *events, size_t n_events) {
        const char *name = find_name(word);
        Fields f = { .p = p, .word = word };

        if (!name || perfctl_connect_quietly(p) != 0)
                return;
        f.before = must_have(strndup(word, (size_t)(name - word)));
        if (*name || !offer_comparisons(&f))
                offer_names(&f, words, events, n_events);
        for (size_t i = 0; i < f.n_seen; i++)
                free((char *)f.seen[i]);
        free(f.seen);
        free(f.before);
}
