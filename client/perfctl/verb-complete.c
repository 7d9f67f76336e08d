/*
 * What could stand at the end of a command line, one candidate on each line; the shell passes the words up to the cursor.
 * A line "<file>" says that it is a file's name. Nothing here fails: without a daemon there are fewer candidates.
 */
#include <stdio.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/text.h"

static void offer(Perfctl *p, const char *word, const char *prefix, const char *candidate) {
        size_t n = strlen(prefix);

        if (strncmp(prefix, word, strlen(word) < n ? strlen(word) : n) == 0 &&
            (strlen(word) <= n || strncmp(candidate, word + n, strlen(word) - n) == 0)) {
                output_put_string(&p->out, prefix);
                text_put_string(&p->out, candidate);
                output_put_char(&p->out, '\n');
        }
}

static void offer_options(Perfctl *p, const char *word, const Option *options) {
        for (; options->name; options++)
                offer(p, word, "--", options->name);
}

static void offer_verbs(Perfctl *p, const char *word) {
        for (size_t i = 0; verbs[i]; i++)
                if (!verbs[i]->hidden)
                        offer(p, word, "", verbs[i]->name);
}

/* Each group once, before the names, which can not begin with a '@'. */
static void offer_groups(Perfctl *p, const char *word, const perfd_result *result) {
        const perfd_event_row *e, *before;

        for (size_t i = 0; (e = perfd_result_event(result, i)); i++) {
                size_t k = 0;

                while ((before = perfd_result_event(result, k)) != e && strcmp(before->spec->group, e->spec->group) != 0)
                        k++;
                if (before == e)
                        offer(p, word, "@", e->spec->group);
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
                offer(p, word, "", e->spec->name);
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
                        offer(p, word, "", a->event);
                        continue;
                }
                if (strncmp(group, a->event, n) == 0 && group[n] == '\0')
                        continue;
                memcpy(group, a->event, n);
                group[n] = '\0';
                offer(p, word, "", group);
        }
}

static void offer_words(Perfctl *p, const char *word, Words words) {
        switch (words) {
        case WORDS_VERBS:
                offer_verbs(p, word);
                break;
        case WORDS_RUNNING:
        case WORDS_SELECTED:
                offer_running(p, word, words == WORDS_SELECTED);
                break;
        case WORDS_OFFERED:
                offer_offered(p, word);
                break;
        case WORDS_SHOWN:
                offer_running(p, word, false);
                offer_offered(p, word);
                break;
        case WORDS_FILES:
                output_put_string(&p->out, "<file>\n");
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
                offer(p, word, "", choice);
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

/* The verb of the words before the last one, and the option that waits for its value. */
static const Option *read_words(Perfctl *p, const Verb **ret_verb) {
        const Verb *verb = NULL;
        const Option *waiting = NULL;

        for (size_t i = 0; i + 1 < p->n_arguments; i++) {
                const char *word = p->arguments[i];

                if (waiting) {
                        if (strcmp(waiting->name, "socket") == 0)
                                p->socket = word;
                        waiting = NULL;
                        continue;
                }
                waiting = find_option(verb ? verb->options : NULL, word);
                if (!waiting)
                        waiting = find_option(global_options, word);
                if (waiting && !waiting->argument)
                        waiting = NULL;
                if (!verb && *word != '-')
                        verb = verb_find(word);
        }
        *ret_verb = verb;
        return waiting;
}

static int complete_run(Perfctl *p) {
        const char *word = p->n_arguments > 0 ? p->arguments[p->n_arguments - 1] : "";
        const Verb *verb;
        const Option *waiting = read_words(p, &verb);

        if (waiting && waiting->choices)
                offer_choices(p, word, waiting->choices);
        else if (waiting)
                offer_words(p, word, waiting->words);
        else if (*word == '-') {
                if (verb)
                        offer_options(p, word, verb->options);
                offer_options(p, word, global_options);
        } else
                offer_words(p, word, verb ? verb->words : WORDS_VERBS);
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
