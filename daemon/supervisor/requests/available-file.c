/* The functions and static probes of a file, which the asking client has to be able to read itself. */
#include "daemon/supervisor/requests/offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/printable.h"
#include "daemon/kernel/probe/place.h"
#include "daemon/supervisor/operations/operations.h"

DEFINE_CLEANUP(ElfFile *, elf_file_close)

/* "uprobe:/bin/x:f*" in its parts. */
typedef struct FileGlob {
        EventNameKind kind;
        char *prefix;   /* "uprobe:/bin/x:" */
        char *path;
        char *provider; /* of static probes: a glob, as `name` is */
        char *name;
} FileGlob;

static void file_glob_deinit(FileGlob *g) {
        free(g->prefix);
        free(g->path);
        free(g->provider);
        free(g->name);
}

bool offers_is_of_file(const char *glob) {
        return strncmp(glob, "uprobe:/", 8) == 0 || strncmp(glob, "uretprobe:/", 11) == 0 || strncmp(glob, "usdt:/", 6) == 0;
}

/* A path may have colons: it ends at the last one; of static probes at the one before, if no slash stands between the two. */
static int file_glob_parse(const char *glob, FileGlob *ret) {
        const char *path = strchr(glob, ':') + 1, *end = strrchr(path, ':'), *provider = NULL, *name = end ? end + 1 : "*";
        FileGlob g = { .kind = strncmp(glob, "usdt:", 5) == 0 ? EVENT_NAME_USDT : EVENT_NAME_UPROBE };

        if (!end)
                end = path + strlen(path);
        else if (g.kind == EVENT_NAME_USDT) {
                provider = memrchr(path, ':', (size_t)(end - path));
                if (provider && memchr(provider, '/', (size_t)(end - provider)))
                        provider = NULL;
        }
        g.provider = provider ? strndup(provider + 1, (size_t)(end - provider - 1)) : strdup("*");
        if (provider)
                end = provider;
        g.path = strndup(path, (size_t)(end - path));
        g.name = strdup(*name ? name : "*");
        if (asprintf(&g.prefix, "%.*s:", (int)(end - glob), glob) < 0)
                g.prefix = NULL;
        *ret = g;
        return g.provider && g.path && g.name && g.prefix ? 0 : error_origin(-ENOMEM);
}

/* What no name of an event can have, nor the text of a message, is no name of a probe. */
static bool is_printable(const char *text) {
        while (*text) {
                size_t n = printable_length(text);

                if (n == 0)
                        return false;
                text += n;
        }
        return true;
}

static int add_row(Offers *o, const FileGlob *g, const char *name) {
        _cleanup_free_ char *event = NULL;

        if (!is_printable(name))
                return 0;
        if (asprintf(&event, "%s%s", g->prefix, name) < 0) {
                event = NULL;
                return error_origin(-ENOMEM);
        }
        return offers_add(o, event, event_name_kind(g->kind), NULL, "events", NULL);
}

static int add_functions(Offers *o, const FileGlob *g, const ElfFile *f, Explanation *e) {
        char **names = NULL;
        bool is_cut;
        size_t n = 0;
        int r = elf_file_match(f, g->name, &names, &n, &is_cut, e);

        if (r != 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        r = add_row(o, g, names[i]);
                free(names[i]);
        }
        free(names);
        if (r == 0 && is_cut)
                o->reply->truncated = true;
        if (r == 0 && n == 0)
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has no function that matches %s", QUOTE(g->path), QUOTE(g->name));
        return r;
}

static int compare_probes(const void *a, const void *b) {
        const ElfProbe *x = a, *y = b;
        int r = strcmp(x->provider, y->provider);

        return r != 0 ? r : strcmp(x->name, y->name);
}

/* Each once, however many sites it has. */
static int add_static_probes(Offers *o, const FileGlob *g, const ElfFile *f, Explanation *e) {
        ElfProbe *probes = NULL;
        size_t n = 0;
        int r = elf_file_probes(f, g->provider, g->name, &probes, &n, e);

        if (r != 0)
                return r;
        qsort(probes, n, sizeof(*probes), compare_probes);
        for (size_t i = 0; i < n && r == 0; i++) {
                _cleanup_free_ char *name = NULL;

                if (i > 0 && compare_probes(&probes[i - 1], &probes[i]) == 0)
                        continue;
                if (asprintf(&name, "%s:%s", probes[i].provider, probes[i].name) < 0) {
                        name = NULL;
                        r = error_origin(-ENOMEM);
                } else
                        r = add_row(o, g, name);
        }
        elf_probes_free(probes, n);
        return r;
}

int offers_add_file(Offers *o, const char *glob, Explanation *e) {
        _cleanup_(credentials_deinit) Credentials own = CREDENTIALS_NULL;
        _cleanup_(file_glob_deinit) FileGlob g = { .path = NULL };
        _cleanup_(elf_file_closep) ElfFile *f = NULL;
        const Credentials *client;
        int r = file_glob_parse(glob, &g);

        if (r == 0)
                r = operations_client(o->requests->operations, &own, &client, e);
        if (r == 0)
                r = probe_file_open(g.path, client, &f, e);
        if (r != 0)
                return r;
        return g.kind == EVENT_NAME_USDT ? add_static_probes(o, &g, f, e) : add_functions(o, &g, f, e);
}
