/*
 * Names of events, in the forms that events/event-words.h describes: behind a comma, behind "tracepoint:", and without their group if no
 * name begins as the word does.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/complete/complete.h"
#include "client/perfctl/events/event-words.h"
#include "client/perfctl/stat/stat.h"

/* The event at the end of a list. */
typedef struct Last {
        Perfctl *p;
        const char *word;
        char *before; /* of the word, in front of the event */
        const char *event;
        bool is_tracepoint; /* "tracepoint:" stands before it */
        size_t n_offered;
} Last;

static void offer(Last *l, const char *candidate) {
        l->n_offered += complete_offer(l->p, l->word, l->before, candidate);
}

static void last_init(Last *l, Perfctl *p, const char *word) {
        static const char kind[] = "tracepoint:";
        size_t n, length;
        char **list = stat_events_split(word, &n);

        *l = (Last){ .p = p, .word = word };
        length = strlen(list[n - 1]);
        stat_events_free(list, n);
        l->event = word + strlen(word) - length;
        l->is_tracepoint = strncmp(l->event, kind, strlen(kind)) == 0;
        if (l->is_tracepoint)
                l->event += strlen(kind);
        l->before = must_have(strndup(word, (size_t)(l->event - word)));
}

/* Each group once, before the names, which cannot begin with a '@'. */
static void offer_groups(const Last *l, const perfd_result *result) {
        const perfd_event_row *e, *before;

        for (size_t i = 0; (e = perfd_result_event(result, i)); i++) {
                size_t k = 0;

                while ((before = perfd_result_event(result, k)) != e && strcmp(before->spec->group, e->spec->group) != 0)
                        k++;
                if (before == e)
                        complete_offer(l->p, l->word, "@", e->spec->group);
        }
}

static void offer_running(Last *l, Words words) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *e;

        if (perfctl_connect_quietly(l->p) != 0 || perfd_list(l->p->client, "", &result) != 0)
                return;
        if (words == WORDS_SELECTED)
                offer_groups(l, result);
        for (size_t i = 0; (e = perfd_result_event(result, i)); i++)
                if (words != WORDS_EXTERNAL || strncmp(e->spec->event, "external:", strlen("external:")) == 0)
                        offer(l, e->spec->name);
}

/* Thousands of tracepoints are offered group by group: "sched:" first. */
static void offer_grouped(Last *l, const perfd_result *result) {
        const perfd_available_row *a;
        char group[256] = "";
        bool in_group = strchr(l->event, ':');

        for (size_t i = 0; (a = perfd_result_available(result, i)); i++) {
                const char *colon = strchr(a->event, ':');
                size_t n = colon ? (size_t)(colon - a->event) + 1 : 0;

                if (!colon && l->is_tracepoint)
                        continue;
                if (in_group || !colon || n >= sizeof(group)) {
                        offer(l, a->event);
                        continue;
                }
                if (strncmp(group, a->event, n) == 0 && group[n] == '\0')
                        continue;
                memcpy(group, a->event, n);
                group[n] = '\0';
                offer(l, group);
        }
}

static void offer_without_group(Last *l, const perfd_result *result) {
        const perfd_available_row *a;

        for (size_t i = 0; (a = perfd_result_available(result, i)); i++)
                if (strchr(a->event, ':'))
                        offer(l, strchr(a->event, ':') + 1);
}

static void offer_offered(Last *l) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;

        if (perfctl_connect_quietly(l->p) != 0 || perfd_available(l->p->client, "", false, &result) != 0)
                return;
        offer_grouped(l, result);
        if (l->n_offered == 0 && *l->event && !l->is_tracepoint && !strchr(l->event, ':'))
                offer_without_group(l, result);
}

/* The file of a probe in a program, and what it has; false: the word is none. */
static bool offer_probe(const Last *l) {
        const char *file, *end = event_words_file(l->event, &file);
        char *before, *name;

        if (!end)
                return false;
        if (!*end) {
                complete_path(l->p, l->word, (size_t)(file - l->word));
                return true;
        }
        before = must_have(strndup(l->word, (size_t)(end + 1 - l->word)));
        name = must_have(strndup(file, (size_t)(end - file)));
        if (strncmp(l->event, "usdt:", strlen("usdt:")) == 0)
                complete_static_probes(l->p, l->word, before, name);
        else
                complete_symbols(l->p, l->word, before, name);
        free(before);
        free(name);
        return true;
}

void complete_events(Perfctl *p, const char *word, Words words) {
        const bool is_added = words == WORDS_OFFERED || words == WORDS_SHOWN;
        Last l;

        last_init(&l, p, word);
        if (!is_added || !offer_probe(&l)) {
                if (words != WORDS_OFFERED && !l.is_tracepoint)
                        offer_running(&l, words);
                if (is_added)
                        offer_offered(&l);
        }
        free(l.before);
}
