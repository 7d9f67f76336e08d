/*
 * The daemon has patterns for tracepoints only. What a file has it lists to whom the file may be read, and each function becomes an
 * event of its own, called as it is: what is built anew later is not followed.
 */
#include "client/perfctl/events/function-globs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 3

/* The pattern of the functions; NULL: it is none. */
static const char *pattern_of(const char *word) {
        const char *file, *end;

        if (strncmp(word, "uprobe:", strlen("uprobe:")) != 0 && strncmp(word, "uretprobe:", strlen("uretprobe:")) != 0)
                return NULL;
        end = event_words_file(word, &file);
        return end && *end == ':' && strpbrk(end + 1, "*?[") ? end + 1 : NULL;
}

bool function_globs_is(const char *word) {
        return pattern_of(word) != NULL;
}

bool function_globs_any(const EventWords *words) {
        for (size_t i = 0; i < words->n; i++)
                if (function_globs_is(words->names[i]))
                        return true;
        return false;
}

static const char *function_of(const perfd_available_row *row) {
        return strrchr(row->event, ':') + 1;
}

static int fail_too_many(const Perfctl *p, const char *word, const char *glob, const perfd_result *offered) {
        const perfd_available_row *row;
        size_t n = 0, size;
        char *text;
        FILE *f = must_have(open_memstream(&text, &size));
        int r;

        for (; (row = perfd_result_available(offered, n)); n++)
                if (n < SHOWN_MAX)
                        fprintf(f, "%s, ", function_of(row));
        must_have(fclose(f) == 0 ? text : NULL);
        r = perfctl_fail(p, PERFCTL_USAGE, "'%s' means %zu%s functions (%s...), and one pattern means %d at most: make it narrower; `perfctl available "
                         "'%s'` lists them", word, n, perfd_result_is_truncated(offered) ? " and more" : "", text, FUNCTION_GLOB_MAX, glob);
        free(text);
        return r;
}

static int expand(const Perfctl *p, EventWords *to, const char *word, const char *pattern) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *offered = NULL;
        const char *file = strchr(word, ':') + 1;
        const perfd_available_row *row;
        char *glob, *name;
        int r = 0;

        must_have(asprintf(&glob, "uprobe:%s", file) < 0 ? NULL : glob);
        if (perfd_available(p->client, glob, false, &offered) != 0)
                r = perfctl_fail_client(p, NULL);
        else if (perfd_result_available(offered, FUNCTION_GLOB_MAX))
                r = fail_too_many(p, word, glob, offered);
        for (size_t i = 0; r == 0 && (row = perfd_result_available(offered, i)); i++) {
                must_have(asprintf(&name, "%.*s%s", (int)(pattern - word), word, function_of(row)) < 0 ? NULL : name);
                event_words_take(to, name);
                free(name);
        }
        free(glob);
        return r;
}

int function_globs_expand(const Perfctl *p, EventWords *words) {
        __attribute__((cleanup(event_words_deinit))) EventWords before = *words;
        int r = 0;

        *words = EVENT_WORDS_NULL;
        for (size_t i = 0; i < before.n && r == 0; i++) {
                const char *pattern = pattern_of(before.names[i]);

                words->place = before.places[i];
                if (pattern)
                        r = expand(p, words, before.names[i], pattern);
                else
                        event_words_take(words, before.names[i]);
        }
        return r;
}
