/*
 * What could stand at the end of a command line, one candidate on each line; the shell passes the words up to the cursor.
 * A line "<file>" says that it is a file's name. Nothing here fails: without a daemon there are fewer candidates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/complete.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/stat.h"
#include "client/perfctl/text.h"

static void offer_options(Perfctl *p, const char *word, const Option *options) {
        for (; options->name; options++)
                complete_offer(p, word, "--", options->name);
}

static void offer_verbs(Perfctl *p, const char *word) {
        for (size_t i = 0; p->verbs[i]; i++)
                if (!p->verbs[i]->hidden)
                        complete_offer(p, word, "", p->verbs[i]->name);
}

/* Each group once, before the names, which cannot begin with a '@'. */
static void offer_groups(Perfctl *p, const char *word, const perfd_result *result) {
        const perfd_event_row *e, *before;

        for (size_t i = 0; (e = perfd_result_event(result, i)); i++) {
                size_t k = 0;

                while ((before = perfd_result_event(result, k)) != e && strcmp(before->spec->group, e->spec->group) != 0)
                        k++;
                if (before == e)
                        complete_offer(p, word, "@", e->spec->group);
        }
}

static void offer_running(Perfctl *p, const char *word, bool with_groups) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *e;

        if (perfctl_connect_quietly(p) != 0 || perfd_list(p->client, "", &result) != 0)
                return;
        if (with_groups)
                offer_groups(p, word, result);
        for (size_t i = 0; (e = perfd_result_event(result, i)); i++)
                complete_offer(p, word, "", e->spec->name);
}

/* Thousands of tracepoints are offered group by group: "sched:" first. */
static void offer_offered(Perfctl *p, const char *word) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_available_row *a;
        char group[256] = "";
        bool in_group = strchr(word, ':');

        if (perfctl_connect_quietly(p) != 0 || perfd_available(p->client, "", false, &result) != 0)
                return;
        for (size_t i = 0; (a = perfd_result_available(result, i)); i++) {
                const char *colon = strchr(a->event, ':');
                size_t n = colon ? (size_t)(colon - a->event) + 1 : 0;

                if (in_group || !colon || n >= sizeof(group)) {
                        complete_offer(p, word, "", a->event);
                        continue;
                }
                if (strncmp(group, a->event, n) == 0 && group[n] == '\0')
                        continue;
                memcpy(group, a->event, n);
                group[n] = '\0';
                complete_offer(p, word, "", group);
        }
}

/* The file of a probe in a program; false: the word is none, or the file is there already. */
static bool offer_path(Perfctl *p, const char *word) {
        static const char *const kinds[] = { "uprobe:", "uretprobe:", "usdt:" };

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                const size_t n = strlen(kinds[i]);

                if (strncmp(word, kinds[i], n) != 0)
                        continue;
                if (!strchr(word + n, ':'))
                        complete_path(p, word, n);
                return true;
        }
        return false;
}

/* A command line up to the word that is completed. */
typedef struct Line {
        const Verb *verb;
        const Option *waiting; /* for its value */
        char **events;         /* that it names */
        size_t n_events;
} Line;

static void offer_words(Perfctl *p, const char *word, Words words, const Line *l) {
        switch (words) {
        case WORDS_VERBS:
                offer_verbs(p, word);
                break;
        case WORDS_RUNNING:
        case WORDS_SELECTED:
                offer_running(p, word, words == WORDS_SELECTED);
                break;
        case WORDS_OFFERED:
                if (!offer_path(p, word))
                        offer_offered(p, word);
                break;
        case WORDS_SHOWN:
                if (!offer_path(p, word)) {
                        offer_running(p, word, false);
                        offer_offered(p, word);
                }
                break;
        case WORDS_FILES:
                output_put_string(&p->out, "<file>\n");
                break;
        case WORDS_FIELDS:
        case WORDS_FIELDS_ALONE:
                complete_fields(p, word, words, (const char *const *)l->events, l->n_events);
                break;
        case WORDS_CGROUPS:
        case WORDS_UNITS:
        case WORDS_CONTAINERS:
                complete_places(p, word, words);
                break;
        case WORDS_NONE:
                break;
        }
}

static void offer_choices(Perfctl *p, const char *word, const char *choices) {
        while (*choices) {
                size_t n = strcspn(choices, " ");
                char choice[64];

                (void)snprintf(choice, sizeof(choice), "%.*s", (int)n, choices);
                complete_offer(p, word, "", choice);
                choices += n + strspn(choices + n, " ");
        }
}

static const Option *find_option(const Option *options, const char *word) {
        for (; options && options->name; options++)
                if ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, options->name) == 0) ||
                    (word[0] == '-' && options->letter && word[1] == options->letter && !word[2]))
                        return options;
        return NULL;
}

static void add_event(Line *l, const char *event) {
        l->events = must_have(reallocarray(l->events, l->n_events + 1, sizeof(*l->events)));
        l->events[l->n_events++] = must_have(strdup(event));
}

/* A value, of which two are of use here; of -e A,B the parts. */
static void take_value(Perfctl *p, Line *l, const char *value) {
        char **list;
        size_t n;

        if (strcmp(l->waiting->name, "socket") == 0)
                p->socket = value;
        if (strcmp(l->waiting->name, "event") != 0)
                return;
        list = stat_events_split(value, &n);
        for (size_t i = 0; i < n; i++)
                add_event(l, list[i]);
        stat_events_free(list, n);
}

/* The words before the last one. */
static void read_words(Perfctl *p, Line *l) {
        for (size_t i = 0; i + 1 < p->n_arguments; i++) {
                const char *word = p->arguments[i];

                if (l->waiting) {
                        take_value(p, l, word);
                        l->waiting = NULL;
                        continue;
                }
                l->waiting = find_option(l->verb ? l->verb->options : NULL, word);
                if (!l->waiting)
                        l->waiting = find_option(global_options, word);
                if (l->waiting && !l->waiting->argument)
                        l->waiting = NULL;
                else if (!l->waiting && *word != '-' && l->verb)
                        add_event(l, word);
                if (!l->verb && *word != '-')
                        l->verb = verb_find(p->verbs, word);
        }
}

static Words words_of_argument(const Line *l) {
        if (!l->verb)
                return WORDS_VERBS;
        return l->n_events > 0 && l->verb->words_behind != WORDS_NONE ? l->verb->words_behind : l->verb->words;
}

static int complete_run(Perfctl *p) {
        const char *word = p->n_arguments > 0 ? p->arguments[p->n_arguments - 1] : "";
        Line l = { .verb = NULL };

        read_words(p, &l);
        if (l.waiting && l.waiting->choices)
                offer_choices(p, word, l.waiting->choices);
        else if (l.waiting)
                offer_words(p, word, l.waiting->words, &l);
        else if (*word == '-') {
                if (l.verb)
                        offer_options(p, word, l.verb->options);
                offer_options(p, word, global_options);
        } else
                offer_words(p, word, words_of_argument(&l), &l);
        stat_events_free(l.events, l.n_events);
        return PERFCTL_OK;
}

const Verb verb_complete = {
        .name = "complete",
        .arguments = "[WORD...]",
        .help = "for the shell's completion",
        .max_arguments = VERB_ANY_NUMBER,
        .hidden = true,
        .run = complete_run,
};
