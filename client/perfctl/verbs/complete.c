/*
 * What could stand at the end of a command line, one candidate on each line; the shell passes the words up to the cursor.
 * A line "<file>" says that it is a file's name, "<command>" that of a command. Nothing here fails: without a daemon there are fewer candidates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/complete/complete.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/stat/stat.h"

static void offer_options(Perfctl *p, const char *word, const Option *options) {
        for (; options->name; options++)
                complete_offer(p, word, "--", options->name);
}

static void offer_verbs(Perfctl *p, const char *word) {
        for (size_t i = 0; p->verbs[i]; i++)
                if (!p->verbs[i]->hidden)
                        complete_offer(p, word, "", p->verbs[i]->name);
}

/* A command line up to the word that is completed. */
typedef struct Line {
        const Verb *verb;
        const Option *waiting; /* for its value */
        bool in_command;       /* behind "--" */
        bool has_command;      /* its name is there already */
        char **events;         /* that it names */
        size_t n_events;
} Line;

static void offer_words(Perfctl *p, const char *word, Words words, const Line *l) {
        if (p->host && words != WORDS_VERBS && words != WORDS_FILES) /* what is here is not there, and to ask may need a password */
                return;
        switch (words) {
        case WORDS_VERBS:
                offer_verbs(p, word);
                break;
        case WORDS_RUNNING:
        case WORDS_SELECTED:
        case WORDS_OFFERED:
        case WORDS_SHOWN:
        case WORDS_EXTERNAL:
                complete_events(p, word, words);
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
        case WORDS_PROCESSES:
        case WORDS_THREADS:
                complete_tasks(p, word, words);
                break;
        case WORDS_NONE:
                break;
        }
}

/* Of "uid,comm," whether "uid" is there. */
static bool has_word(const char *list, const char *word) {
        for (size_t n; *list; list += n + (list[n] == ',')) {
                n = strcspn(list, ",");
                if (n == strlen(word) && strncmp(list, word, n) == 0)
                        return true;
        }
        return false;
}

/* Where the value is a list, its last word, which is none of those before. */
static void offer_choices(Perfctl *p, const char *word, const Option *o) {
        const char *comma = strchr(o->argument, ',') ? strrchr(word, ',') : NULL, *choices = o->choices;
        char *before = must_have(strndup(word, comma ? (size_t)(comma + 1 - word) : 0));

        while (*choices) {
                size_t n = strcspn(choices, " ");
                char choice[64];

                (void)snprintf(choice, sizeof(choice), "%.*s", (int)n, choices);
                if (!comma || (!strchr(choice, ',') && !has_word(before, choice)))
                        complete_offer(p, word, before, choice);
                choices += n + strspn(choices + n, " ");
        }
        free(before);
}

/* Names of fields by themselves, which are no expression. */
static Words words_of_value(const Option *o) {
        static const char *const of_fields[] = { "fields", "by", "hist" };

        for (size_t i = 0; i < sizeof(of_fields) / sizeof(of_fields[0]); i++)
                if (strcmp(o->name, of_fields[i]) == 0)
                        return WORDS_FIELDS_ALONE;
        return o->words;
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

/* Of A,B the parts. */
static void add_events(Line *l, const char *word) {
        size_t n;
        char **list = stat_events_split(word, &n);

        for (size_t i = 0; i < n; i++)
                add_event(l, list[i]);
        stat_events_free(list, n);
}

/* A value, of which two are of use here. */
static void take_value(Perfctl *p, Line *l, const char *value) {
        if (strcmp(l->waiting->name, "socket") == 0)
                p->socket = value;
        if (strcmp(l->waiting->name, "host") == 0)
                p->host = value;
        if (strcmp(l->waiting->name, "event") == 0)
                add_events(l, value);
}

/* The words before the last one. */
static void read_words(Perfctl *p, Line *l) {
        for (size_t i = 0; i + 1 < p->n_arguments; i++) {
                const char *word = p->arguments[i];

                if (l->in_command) {
                        l->has_command = true;
                        continue;
                }
                if (l->verb && l->verb->has_command && !l->waiting && strcmp(word, "--") == 0) {
                        l->in_command = true;
                        continue;
                }
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
                        add_events(l, word);
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
        if (l.in_command)
                output_put_string(&p->out, l.has_command ? "<file>\n" : "<command>\n");
        else if (l.waiting) {
                if (l.waiting->choices)
                        offer_choices(p, word, l.waiting);
                offer_words(p, word, words_of_value(l.waiting), &l);
        } else if (*word == '-') {
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
