/*
 * What a pattern means is looked up once, when its event is added or read: what is built anew later is not followed. A function may
 * be called as a pattern is written, as some languages do; then it is that one.
 */
#include "daemon/supervisor/resolve/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/probe/place.h"

DEFINE_CLEANUP(ElfFile *, elf_file_close)

bool functions_is_glob(const EventName *name) {
        return name->kind == EVENT_NAME_UPROBE && name->place.n_symbols == 1 && name->place.offset == 0 &&
               strpbrk(name->place.symbols[0], "*?[");
}

void functions_free(char **events, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(events[i]);
        free(events);
}

static int refuse_too_many(const char *text, char *const *names, size_t n, bool is_cut, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-event", "%s means %zu%s functions (%s, %s, %s...), and one pattern means %d at most: make it "
                      "narrower", text, n, is_cut ? " and more" : "", names[0], names[1], names[2], FUNCTIONS_MAX);
}

/* Each function's name becomes its event. */
static int complete(char **names, size_t n, const char *text) {
        const int n_prefix = (int)(strrchr(text, ':') + 1 - text);

        for (size_t i = 0; i < n; i++) {
                char *event;

                if (asprintf(&event, "%.*s%s", n_prefix, text, names[i]) < 0)
                        return error_origin(-ENOMEM);
                free(names[i]);
                names[i] = event;
        }
        return 0;
}

static size_t keep_one(char **names, size_t n, const char *symbol) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], symbol) == 0) {
                        char *one = names[i];

                        names[i] = names[0];
                        names[0] = one;
                        for (size_t k = 1; k < n; k++)
                                free(names[k]);
                        return 1;
                }
        return n;
}

int functions_match(const EventName *name, const char *text, const Credentials *client, char ***ret_events, size_t *ret_n, Explanation *e) {
        _cleanup_(elf_file_closep) ElfFile *file = NULL;
        const char *symbol = name->place.symbols[0];
        char **names = NULL;
        bool is_cut = false;
        size_t n = 0;
        int r = probe_file_open(name->path, client, &file, e);

        if (r == 0)
                r = elf_file_match(file, symbol, &names, &n, &is_cut, e);
        if (r != 0)
                return r;
        n = keep_one(names, n, symbol);
        if (n == 0)
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has no function that matches %s", QUOTE(name->path), QUOTE(symbol));
        else if (n > FUNCTIONS_MAX)
                r = refuse_too_many(text, names, n, is_cut, e);
        else
                r = complete(names, n, text);
        if (r != 0) {
                functions_free(names, n);
                return r;
        }
        *ret_events = names;
        *ret_n = n;
        return 0;
}
