/*
 * perf-report(1) has print_type,threshold,print_limit,order,sort_key,branch,value behind -g, of which any may be missing. Here they are
 * arguments, because -g has none with a live host.
 */
#include "client/perfctl/report/graph-words.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/print/list-text.h"

/* What each word means here; "": nothing that is not so already. */
static const struct {
        const char *word, *means;
} known[] = {
        { "graph", "" },     { "callee", "" },   { "function", "" },   { "percent", "" },
        { "caller", "caller" }, { "none", "none" },
        { "flat", NULL },    { "fractal", NULL }, { "folded", NULL }, { "address", NULL }, { "branch", NULL }, { "period", NULL }, { "count", NULL },
};

static size_t word_find(const char *word) {
        size_t i = 0;

        while (i < sizeof(known) / sizeof(*known) && strcmp(known[i].word, word) != 0)
                i++;
        return i;
}

static bool is_number(const char *word) {
        static const char digits[] = "0123456789";
        const size_t whole = strspn(word, digits), point = word[whole] == '.', part = strspn(word + whole + point, digits);

        return whole + part > 0 && word[whole + point + part] == '\0';
}

/* Words of perf and numbers: no event is called so. */
static bool is_list(const char *const *words, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (word_find(words[i]) == sizeof(known) / sizeof(*known) && !is_number(words[i]))
                        return false;
        return n > 0;
}

static int take_word(const Perfctl *p, const char *word, GraphWords *w) {
        const size_t i = word_find(word);

        if (i == sizeof(known) / sizeof(*known)) {
                if (!w->has_limit) /* the second number is perf's print_limit, for which there is no option here */
                        w->limit = strtod(word, NULL);
                w->has_limit = true;
                return 0;
        }
        if (!known[i].means)
                return perfctl_fail(p, PERFCTL_USAGE, "-g %s is not here: calls are a graph of functions, and in percent", word);
        if (strcmp(known[i].means, "none") == 0)
                w->has_graph = false;
        w->has_callees |= strcmp(known[i].means, "caller") == 0;
        return 0;
}

static int take_list(const Perfctl *p, const char *const *words, size_t n, GraphWords *w) {
        int r = 0;

        w->is_given = w->has_graph = true;
        for (size_t i = 0; i < n && r == 0; i++)
                r = take_word(p, words[i], w);
        return r;
}

int graph_words_take(Perfctl *p, GraphWords *ret) {
        size_t kept = 0;
        int r = 0;

        *ret = (GraphWords){ .has_graph = true };
        for (size_t i = 0; i < p->n_arguments; i++) {
                size_t n;
                const char **words = list_split(p->arguments[i], &n);

                if (!is_list(words, n)) {
                        p->argument_places[kept] = p->argument_places[i];
                        p->arguments[kept++] = p->arguments[i];
                } else if (r == 0)
                        r = take_list(p, words, n, ret);
                free(words);
        }
        p->n_events -= p->n_arguments - kept;
        p->n_arguments = kept;
        return r;
}
