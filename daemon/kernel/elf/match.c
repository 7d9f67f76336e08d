/* The names of a file's functions, as they can be probed: for lists and completion. */
#include "daemon/base/glob.h"
#include "daemon/kernel/elf/layout.h"

#include "daemon/base/cleanup.h"

#include <stdlib.h>
#include <string.h>

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

int elf_file_match(const ElfFile *f, const char *glob, char ***ret_names, size_t *ret_n, Explanation *e) {
        _cleanup_(pattern_freep) Pattern *pattern = NULL;
        char **names = NULL;
        size_t n = 0, n_room = 0;
        int r = glob_compile(glob, &pattern, e);

        for (size_t t = 0; t < ARRAY_SIZE(f->tables); t++)
                for (size_t i = 0; i < f->tables[t].n && r == 0; i++) {
                        _cleanup_free_ char *name = NULL;
                        ElfSymbol s;

                        r = elf_table_symbol(f, &f->tables[t], i, NULL, 0, &s, e);
                        if (r != 0 || !s.is_defined || s.type != STT_FUNC || memmem(s.name, s.n_name, ".cold", 5))
                                continue; /* an IFUNC has no code; .cold is the middle of a function */
                        name = name_of(&s);
                        if (!name)
                                r = error_origin(-ENOMEM);
                        else if (glob_match(pattern, name)) {
                                r = add(&names, &n, &n_room, name);
                                if (r == 0)
                                        name = NULL;
                        }
                }
        if (r != 0) {
                for (size_t i = 0; i < n; i++)
                        free(names[i]);
                free(names);
                return r;
        }
        *ret_n = sort_names(names, n);
        *ret_names = names;
        return 0;
}
