/* The names of a file's functions, as they can be probed: for lists. */
#include "daemon/kernel/elf/layout.h"

#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/glob.h"

#include <stdlib.h>
#include <string.h>

#define MATCHES_SIZE_MAX ((size_t)4 << 20)

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What elf_file_find() would take for this very function: its version only where the name alone means another one. */
static char *name_of(const ElfSymbol *s) {
        char *name;

        if (s->is_default || !s->version)
                return strndup(s->name, s->n_name);
        if (asprintf(&name, "%.*s@%s", (int)s->n_name, s->name, s->version) < 0)
                return NULL;
        return name;
}

static int add(char ***names, size_t *n, size_t *n_room, char *name) {
        if (*n == *n_room) {
                size_t more = *n_room ? *n_room * 2 : 64;
                char **larger = reallocarray(*names, more, sizeof(*larger));

                if (!larger)
                        return error_origin(-ENOMEM);
                *names = larger;
                *n_room = more;
        }
        (*names)[(*n)++] = name;
        return 0;
}

/* Sorted, and each once: .dynsym repeats names of .symtab. */
static size_t sort_names(char **names, size_t n) {
        size_t to = 0;

        if (n > 0)
                qsort(names, n, sizeof(*names), compare_names);
        for (size_t i = 0; i < n; i++)
                if (to > 0 && strcmp(names[to - 1], names[i]) == 0)
                        free(names[i]);
                else
                        names[to++] = names[i];
        return to;
}

typedef struct Names {
        const Pattern *pattern;
        char **items;
        size_t n, n_allocated, n_bytes;
        bool is_cut;
} Names;

static int match_symbol(Names *names, const ElfSymbol *s, Explanation *e) {
        _cleanup_free_ char *name = NULL;
        int r;

        if (!s->is_defined || s->type != STT_FUNC || memmem(s->name, s->n_name, ".cold", 5))
                return 0; /* an IFUNC has no code; .cold is the middle of a function */
        r = checkpoint(e);
        if (r != 0)
                return r;
        name = name_of(s);
        if (!name)
                return error_origin(-ENOMEM);
        if (!glob_match(names->pattern, name))
                return 0;
        names->n_bytes += strlen(name);
        names->is_cut = names->n == ELF_MATCHES_MAX || names->n_bytes > MATCHES_SIZE_MAX;
        if (names->is_cut)
                return 0;
        r = add(&names->items, &names->n, &names->n_allocated, name);
        if (r == 0)
                name = NULL;
        return r;
}

int elf_file_match(const ElfFile *f, const char *glob, char ***ret_names, size_t *ret_n, bool *ret_is_cut, Explanation *e) {
        _cleanup_(pattern_freep) Pattern *pattern = NULL;
        Names names = { .n = 0 };
        int r = glob_compile(glob, &pattern, e);

        names.pattern = pattern;
        for (size_t t = 0; t < ARRAY_SIZE(f->tables); t++)
                for (size_t i = 0; i < f->tables[t].n && r == 0 && !names.is_cut; i++) {
                        ElfSymbol s;

                        r = elf_table_symbol(f, &f->tables[t], i, NULL, 0, &s, e);
                        if (r == 0)
                                r = match_symbol(&names, &s, e);
                }
        if (r != 0) {
                for (size_t i = 0; i < names.n; i++)
                        free(names.items[i]);
                free(names.items);
                return r;
        }
        *ret_n = sort_names(names.items, names.n);
        *ret_names = names.items;
        *ret_is_cut = names.is_cut;
        return 0;
}
