/*
 * Names are made here and not in the daemon, because what is meant depends on who asks: a folder, $LD_LIBRARY_PATH and $PATH
 * are perfctl's. And an event has one name, however it was written.
 */
#include "client/perfctl/events/event-words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/connection/library.h"

#define SHOWN_MAX 8 /* of names among which one is to be chosen */

void event_words_deinit(EventWords *w) {
        for (size_t i = 0; i < w->n; i++)
                free(w->names[i]);
        free(w->names);
        free(w->places);
        *w = EVENT_WORDS_NULL;
}

static void push(EventWords *w, char *name) {
        if (w->n == w->room) {
                w->room = w->room ? 2 * w->room : 8;
                w->names = must_have(reallocarray(w->names, w->room, sizeof(*w->names)));
                w->places = must_have(reallocarray(w->places, w->room, sizeof(*w->places)));
        }
        w->places[w->n] = w->place;
        w->names[w->n++] = must_have(name);
}

void event_words_take(EventWords *w, const char *text) {
        push(w, strdup(text));
}

static bool begins(const char *text, const char *word) {
        return strncmp(text, word, strlen(word)) == 0;
}

static bool is_static_probe(const char *text) {
        return begins(text, "usdt:");
}

/* A file is part of its name. */
static bool has_file(const char *text) {
        return begins(text, "uprobe:") || begins(text, "uretprobe:") || is_static_probe(text);
}

static bool is_probe(const char *text) {
        return has_file(text) || begins(text, "kprobe:") || begins(text, "kretprobe:");
}

/*
 * Up to the comma that ends the first event of `text`. A path may have commas: they end nothing before the colon behind it. A
 * brace that is never closed is the daemon's to refuse.
 */
static size_t event_length(const char *text) {
        size_t colons = has_file(text) ? is_static_probe(text) ? 3 : 2 : 0, depth = 0, i;
        bool has_terms = !has_file(text) && !begins(text, "mem:"), in_terms = false; /* mem:ADDRESS/LENGTH */

        for (i = 0; text[i]; i++) {
                if (text[i] == ':' && colons > 0)
                        colons--;
                else if (colons > 0)
                        continue;
                else if (strchr("{[(", text[i]))
                        depth++;
                else if (strchr("}])", text[i]) && depth > 0)
                        depth--;
                else if (text[i] == '/' && has_terms && depth == 0)
                        in_terms = !in_terms;
                else if (text[i] == ',' && depth == 0 && !in_terms)
                        break;
        }
        return i;
}

/* Words for the kinds of `perfctl available`. */
static const struct {
        const char *word, *kind;
        bool is_prefix; /* of bpftrace(8), before a colon; all of them stand alone in perf-list(1) */
} kind_words[] = {
        { "tracepoint", "tracepoint", true }, { "software", "software", true }, { "hardware", "hardware", true },
        { "sw", "software", false },          { "hw", "hardware", false },      { "cache", "cache", false },
        { "hwcache", "cache", false },        { "pmu", "pmu", false },
};

const char *event_words_kind(const char *text, const char **ret_kind) {
        for (size_t i = 0; i < sizeof(kind_words) / sizeof(kind_words[0]); i++) {
                const char *rest = text + strlen(kind_words[i].word);

                if (!begins(text, kind_words[i].word) || (*rest && (*rest != ':' || !kind_words[i].is_prefix)))
                        continue;
                *ret_kind = kind_words[i].kind;
                return *rest ? rest + 1 : rest;
        }
        *ret_kind = NULL;
        return text;
}

/*
 * bpftrace(8) says of tracepoints that they are some: of "tracepoint:NAME" alone, that is a group of tracepoints. So it does of the
 * events of perf list that have no group; the number that it takes behind them is --period here, and is left for the daemon to refuse.
 */
static const char *without_kind(const char *text) {
        const char *kind, *rest = event_words_kind(text, &kind);

        if (!kind || !*rest)
                return text;
        if (strcmp(kind, "tracepoint") == 0)
                return strchr(rest, ':') ? rest : text;
        return strpbrk(rest, ":*?[") ? text : rest;
}

static int fail_file(const Perfctl *p, const char *text, const char *name, const char *others) {
        if (others)
                return perfctl_fail(p, PERFCTL_USAGE, "%s: '%s' is several libraries: name one of them, %s", text, name, others);
        return perfctl_fail(p, PERFCTL_USAGE, "%s: '%s' is neither a library that ld.so would find nor a program in $PATH: name "
                            "the file by its path", text, name);
}

/* The path of a probe's file, malloc'ed: NULL if there is none to be found. */
static int find_file(const Perfctl *p, const char *text, const char *name, char **ret_path) {
        char *folder, *others = NULL;
        int r = 0;

        if (p->host)
                return perfctl_fail(p, PERFCTL_USAGE, "%s: '%s' would be looked for on this machine, not on %s: name the file by its path there",
                                    text, name, p->host);
        if (!strchr(name, '/')) {
                if (library_find(name, ret_path, &others) != 0 && (others || program_find(name, ret_path) != 0))
                        r = fail_file(p, text, name, others);
                free(others);
                return r;
        }
        folder = getcwd(NULL, 0);
        if (!folder)
                return perfctl_fail(p, PERFCTL_FAILED, "%s: '%s' is in no directory: %m", text, name);
        if (begins(name, "./"))
                name += 2;
        if (asprintf(ret_path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name) < 0)
                *ret_path = must_have(NULL);
        free(folder);
        return 0;
}

/* The file's name in a probe, from `file` to `end`, becomes its path. 0, or an exit status after a message. */
static int put_path(const Perfctl *p, const char *text, const char *file, const char *end, char **ret) {
        char *name = must_have(strndup(file, (size_t)(end - file))), *path = NULL;
        int r = find_file(p, text, name, &path);

        if (r == 0 && asprintf(ret, "%.*s%s%s", (int)(file - text), text, path, end) < 0)
                *ret = must_have(NULL);
        free(name);
        free(path);
        return r;
}

/* KIND:FILE:REST with the path of FILE. */
static int with_path(const Perfctl *p, const char *text, char **ret) {
        const char *file = strchr(text, ':') + 1, *end = strrchr(file, ':');

        if (end && is_static_probe(text))
                end = memrchr(file, ':', (size_t)(end - file));
        if (!end || *file == '/' || end == file) { /* the daemon says what is missing */
                *ret = must_have(strdup(text));
                return 0;
        }
        return put_path(p, text, file, end, ret);
}

const char *event_words_file(const char *text, const char **ret_file) {
        const char *file, *end, *provider;

        if (!has_file(text))
                return NULL;
        *ret_file = file = strchr(text, ':') + 1;
        end = strrchr(file, ':');
        provider = end && is_static_probe(text) ? memrchr(file, ':', (size_t)(end - file)) : NULL;
        if (provider && !memchr(provider, '/', (size_t)(end - provider)))
                return provider;
        return end ? end : file + strlen(file);
}

int event_words_glob(const Perfctl *p, const char *text, char **ret) {
        const char *file, *end = event_words_file(text, &file);

        if (!end || end == file || *file == '/' || memchr(file, '*', (size_t)(end - file))) { /* "uprobe:*": the forms of events */
                *ret = must_have(strdup(text));
                return 0;
        }
        return put_path(p, text, file, end, ret);
}

/* `before`, a probe, with the symbol `text` instead of its own. */
static char *next_symbol(const char *before, const char *text) {
        char *name;

        if (asprintf(&name, "%.*s%s", (int)(strrchr(before, ':') + 1 - before), before, text) < 0)
                return NULL;
        return name;
}

static int add_one(EventWords *w, const Perfctl *p, const char *text, const char *before) {
        char *name = NULL;
        int r = 0;

        if (before && is_probe(before) && *text && !strpbrk(text, ":/"))
                name = next_symbol(before, text);
        else if (has_file(text))
                r = with_path(p, text, &name);
        else
                name = strdup(without_kind(text));
        if (r == 0)
                push(w, name);
        return r;
}

int event_words_add(EventWords *w, const Perfctl *p, const char *text) {
        const char *before = NULL, *all = text;

        for (;;) {
                size_t length = event_length(text);
                char *one = must_have(strndup(text, length));
                int r = *one || (!before && !text[length]) ? add_one(w, p, one, before) : /* "" alone is the daemon's */
                                perfctl_fail(p, PERFCTL_USAGE, "'%s': there is no event between its commas", all);

                free(one);
                if (r != 0 || !text[length])
                        return r;
                before = w->names[w->n - 1];
                text += length + 1;
        }
}

int event_words_add_all(EventWords *w, const Perfctl *p) {
        const OptionValues *values = perfctl_get_values(p, "event");
        int r = 0;

        for (size_t i = 0; i < p->n_arguments && r == 0; i++) {
                w->place = p->argument_places[i];
                r = event_words_add(w, p, p->arguments[i]);
        }
        for (size_t i = 0; i < values->n && r == 0; i++) {
                w->place = values->places[i];
                r = event_words_add(w, p, values->items[i]);
        }
        return r;
}

void event_words_take_all(EventWords *w, const Perfctl *p) {
        size_t n_values;
        const char *const *values = perfctl_get_all(p, "event", &n_values);

        for (size_t i = 0; i < p->n_arguments; i++)
                event_words_take(w, p->arguments[i]);
        for (size_t i = 0; i < n_values; i++)
                event_words_take(w, values[i]);
}

static const char *row_name(const perfd_result *result, EventWhere where, size_t i) {
        const perfd_event_row *event;
        const perfd_available_row *offered;

        if (where == EVENT_WHERE_RUNNING) {
                event = perfd_result_event(result, i);
                return event ? event->spec->name : NULL;
        }
        offered = perfd_result_available(result, i);
        return offered ? offered->event : NULL;
}

static int fail_several(const Perfctl *p, const char *word, const perfd_result *result, EventWhere where) {
        char *text;
        size_t size, n = 0;
        FILE *f = must_have(open_memstream(&text, &size));
        int r;

        for (const char *name; (name = row_name(result, where, n)); n++)
                if (n < SHOWN_MAX)
                        fprintf(f, "%s%s", n > 0 ? ", " : "", name);
        if (n > SHOWN_MAX)
                fprintf(f, " and %zu more", n - SHOWN_MAX);
        must_have(fclose(f) == 0 ? text : NULL);
        r = perfctl_fail(p, PERFCTL_USAGE, "'%s' is the name of several events: say which one of %s", word, text);
        free(text);
        return r;
}

static int find_one(char **name, const Perfctl *p, EventWhere where) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const char *found;
        char *glob;
        int r;

        if (asprintf(&glob, "*:%s", *name) < 0)
                must_have(NULL);
        r = where == EVENT_WHERE_RUNNING ? perfd_list(p->client, glob, &result) : perfd_available(p->client, glob, false, &result);
        free(glob);
        if (r != 0 || !(found = row_name(result, where, 0)))
                return 0;
        if (row_name(result, where, 1))
                return fail_several(p, *name, result, where);
        free(*name);
        *name = must_have(strdup(found));
        return 0;
}

int event_words_find(EventWords *w, const Perfctl *p, EventWhere where) {
        int r = 0;

        for (size_t i = 0; i < w->n && r == 0; i++)
                if (*w->names[i] && !strpbrk(w->names[i], ":/{}*?[]#@"))
                        r = find_one(&w->names[i], p, where);
        return r;
}

bool event_words_expand(EventWords *w, const Perfctl *p, const char *glob) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *offered = NULL;
        const perfd_available_row *row;
        const size_t n = w->n;

        if (perfd_available(p->client, glob, false, &offered) != 0 || perfd_result_is_truncated(offered))
                return false;
        for (size_t i = 0; (row = perfd_result_available(offered, i)); i++)
                if (strcmp(row->kind, "tracepoint") == 0) /* a form, as kprobe:SYMBOL, is none */
                        event_words_take(w, row->event);
        return w->n > n;
}

const char *typed_names_find(const TypedNames *t, const char *name) {
        for (size_t i = 0; i < t->names.n; i++)
                if (strcmp(t->names.names[i], name) == 0)
                        return t->events.names[i];
        return name;
}

void typed_names_deinit(TypedNames *t) {
        event_words_deinit(&t->names);
        event_words_deinit(&t->events);
}
