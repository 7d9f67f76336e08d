/*
 * remove, enable and disable are one request with three names. A running event may be called as a user likes, so names are taken as they
 * were written, and only if one of them is none as `add` takes them.
 */
#include "client/perfctl/events/refs.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/text.h"

void ref_print(Perfctl *p, const char *name, uint32_t id) {
        Json j = json_of(&p->out);

        if (!p->json) {
                text_put(&p->out, name, strlen(name));
                if (p->human)
                        output_print(&p->out, "  (id %u)\n", id);
                else
                        output_print(&p->out, "\t%u\n", id);
                return;
        }
        json_begin(&j, '{');
        JSON_STRING(&j, "name", name);
        JSON_NUMBER(&j, "id", id);
        json_end(&j, '}');
        json_end_line(&j);
}

void refs_print(Perfctl *p, const perfd_result *result) {
        const perfd_ref_row *ref;

        for (size_t i = 0; (ref = perfd_result_ref(result, i)); i++)
                ref_print(p, ref->name, ref->id);
        output_flush(&p->out);
        for (size_t i = 0; perfd_result_note(result, i); i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", perfd_result_note(result, i));
}

static bool is_unknown(const Perfctl *p, int r) {
        return r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0;
}

/* 0, or an exit status after a message. */
static int expand(const Perfctl *p, const char *const *names, size_t n, EventWords *words) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                if (*names[i] == '#' || *names[i] == '@')
                        event_words_take(words, names[i]);
                else
                        r = event_words_add(words, p, names[i]);
        }
        return r == 0 ? event_words_find(words, p, EVENT_WHERE_RUNNING) : r;
}

/* A name without its group: what runs is looked at first, because perfd logs what it refuses. */
static bool is_short_name(const Perfctl *p, const char *name) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;

        return *name && !strpbrk(name, ":/{}*?[]#@,\\") && perfd_list(p->client, name, &list) == 0 && !perfd_result_event(list, 0);
}

static bool any_short_name(const Perfctl *p) {
        for (size_t i = 0; i < p->n_arguments; i++)
                if (is_short_name(p, p->arguments[i]))
                        return true;
        return false;
}

/* `words`: for what `add` would call the arguments. */
static int ask_expanded(Perfctl *p, RefsChange change, EventWords *words, perfd_result **ret_result) {
        int r = expand(p, (const char *const *)p->arguments, p->n_arguments, words);

        if (r != 0)
                return r;
        return change(p->client, (const char *const *)words->names, words->n, ret_result) == 0 ? 0 : perfctl_fail_client(p, NULL);
}

int refs_ask(Perfctl *p, RefsChange change, perfd_result **ret_result) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        const char *const *names = (const char *const *)p->arguments;
        int r;

        if (any_short_name(p))
                return ask_expanded(p, change, &words, ret_result);
        r = change(p->client, names, p->n_arguments, ret_result);

        if (!is_unknown(p, r))
                return r == 0 ? 0 : perfctl_fail_client(p, NULL);
        return ask_expanded(p, change, &words, ret_result);
}

int refs_name(Perfctl *p, const char *name, char **ret) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL;
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        int r;

        *ret = must_have(strdup(name));
        if (perfd_list(p->client, name, &list) != 0 || perfd_result_event(list, 0))
                return 0; /* or the daemon says what is wrong with it, when it is used */
        r = expand(p, &name, 1, &words);
        if (r != 0 || words.n != 1)
                return r;
        free(*ret);
        *ret = must_have(strdup(words.names[0]));
        return 0;
}

int refs_print_named(Perfctl *p, const char *name) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *row;

        if (perfd_list(p->client, name, &result) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; (row = perfd_result_event(result, i)); i++)
                if (!*row->pending)
                        ref_print(p, row->spec->name, row->id);
        return PERFCTL_OK;
}

int refs_change(Perfctl *p, RefsChange change) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        r = refs_ask(p, change, &result);
        if (r != 0)
                return r;
        refs_print(p, result);
        return PERFCTL_OK;
}
