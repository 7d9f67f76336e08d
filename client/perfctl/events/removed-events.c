#include "client/perfctl/events/removed-events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 8      /* names in a line */
#define ANSWER_MS 10000 /* of a daemon that may be about to stop */

void removed_events_add(RemovedEvents *r, const char *name) {
        event_words_take(&r->names, name);
}

bool removed_events_tell(RemovedEvents *r, const Perfctl *p) {
        size_t n = r->names.n, size;
        char *text;
        FILE *f;

        if (n == 0)
                return false;
        f = must_have(open_memstream(&text, &size));
        for (size_t i = 0; i < n && i < SHOWN_MAX; i++)
                fprintf(f, "%s%s", i > 0 ? ", " : "", r->names.names[i]);
        if (n > SHOWN_MAX)
                fprintf(f, " and %zu more", n - SHOWN_MAX);
        must_have(fclose(f) == 0 ? text : NULL);
        (void)perfctl_fail(p, PERFCTL_OK, "removed while this runs: %s", text);
        free(text);
        removed_events_deinit(r);
        return true;
}

void removed_events_deinit(RemovedEvents *r) {
        event_words_deinit(&r->names);
}

static bool has_glob(const EventWords *words) {
        for (size_t i = 0; i < words->n; i++)
                if (strpbrk(words->names[i], "*?["))
                        return true;
        return words->n == 0;
}

static bool is_named(const EventWords *words, const char *name) {
        for (size_t i = 0; i < words->n; i++)
                if (strcmp(words->names[i], name) == 0)
                        return true;
        return false;
}

static bool ask(Perfctl *p, const EventWords *words) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        const perfd_event_row *row;

        if (perfctl_connect_quietly(p) != 0)
                return true;
        perfd_client_set_timeout(p->client, ANSWER_MS);
        if (perfd_list(p->client, NULL, &list) != 0)
                return true;
        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (is_named(words, row->spec->name))
                        return true;
        return perfd_result_is_truncated(list);
}

bool removed_events_any_left(Perfctl *p, const EventWords *words) {
        perfd_client *stream = p->client;
        bool is_left;

        if (has_glob(words))
                return true;
        p->client = NULL;
        is_left = ask(p, words);
        perfd_client_free(p->client);
        p->client = stream;
        return is_left;
}
