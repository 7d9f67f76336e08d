/*
 * From the name of a function to its place. A name is not an address: it may have versions, copies that the compiler
 * made, namesakes in other source files. Each candidate gets a rank; the best rank has to lie in one place, or the
 * user is told which places there are: a probe on one of two copies would lose the calls of the other without a word.
 */
#include "daemon/kernel/elf/layout.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 6            /* places or names in a message */
#define NEAR_MAX 200000        /* symbols that are compared with a misspelled name: some 50 ms */
#define LIST_TEXT_SIZE 320
#define PLAIN_SIZE_MAX 96      /* of a name in a message */

/* From the worst to the best. The name itself, before the copies that a compiler made of it. */
typedef enum Rank {
        RANK_NONE,
        RANK_PART, /* NAME.part.N: the rest of the function is in its callers */
        RANK_COPY, /* NAME.isra.N, NAME.constprop.N: whole, for some callers */
        RANK_LOCAL_OTHER,
        RANK_OTHER, /* no type: assembly; data */
        RANK_LOCAL_IFUNC,
        RANK_LOCAL_FUNCTION,
        RANK_IFUNC,
        RANK_FUNCTION,
} Rank;

typedef struct Wanted {
        const char *name;
        size_t n_name;
        const char *version; /* NULL: the default one */
        bool is_default;     /* name@@version */
} Wanted;

/* The candidates of the best rank in one table. */
typedef struct Found {
        Rank rank;
        ElfSymbol symbol; /* without its texts */
        char name[sizeof(((ElfPlace *)0)->symbol)]; /* a longer one is cut */
        uint64_t addresses[SHOWN_MAX];
        char names[SHOWN_MAX][64];
        size_t n; /* distinct addresses; one more than SHOWN_MAX: too many */
        bool is_imported;
        bool is_hidden, has_version; /* the name has a version that was not asked for, or none but one was */
        char version[PLAIN_SIZE_MAX + 1]; /* that one, cut when it is not plain anyway */
} Found;

/* One or more of .isra.N, .constprop.N, .part.N, .lto_priv.N and nothing else. */
static Rank rank_of_suffix(const char *s, size_t n) {
        static const char *const kinds[] = { ".isra.", ".constprop.", ".lto_priv.", ".part." };
        Rank rank = RANK_COPY;

        while (n > 0) {
                size_t k, n_kind, n_digits = 0;

                for (k = 0; k < ARRAY_SIZE(kinds); k++)
                        if (n > strlen(kinds[k]) && memcmp(s, kinds[k], strlen(kinds[k])) == 0)
                                break;
                if (k == ARRAY_SIZE(kinds))
                        return RANK_NONE;
                n_kind = strlen(kinds[k]);
                while (n_kind + n_digits < n && isdigit((unsigned char)s[n_kind + n_digits]))
                        n_digits++;
                if (n_digits == 0)
                        return RANK_NONE;
                if (k == ARRAY_SIZE(kinds) - 1)
                        rank = RANK_PART;
                s += n_kind + n_digits;
                n -= n_kind + n_digits;
        }
        return rank;
}

static Rank rank_of(const ElfSymbol *s, const Wanted *w) {
        bool is_local = s->binding == STB_LOCAL;

        if (s->n_name < w->n_name || memcmp(s->name, w->name, w->n_name) != 0)
                return RANK_NONE;
        if (s->n_name > w->n_name)
                return w->version || s->type != STT_FUNC ? RANK_NONE
                                                         : rank_of_suffix(s->name + w->n_name, s->n_name - w->n_name);
        if (s->type == STT_FUNC)
                return is_local ? RANK_LOCAL_FUNCTION : RANK_FUNCTION;
        if (s->type == STT_GNU_IFUNC)
                return is_local ? RANK_LOCAL_IFUNC : RANK_IFUNC;
        return is_local ? RANK_LOCAL_OTHER : RANK_OTHER;
}

static bool version_fits(const ElfSymbol *s, const Wanted *w) {
        if (!w->version)
                return s->is_default;
        return s->version && strcmp(s->version, w->version) == 0 && (s->is_default || !w->is_default);
}

static void found_add(Found *found, Rank rank, const ElfSymbol *s) {
        if (rank < found->rank)
                return;
        if (rank > found->rank) {
                found->rank = rank;
                found->symbol = *s;
                found->symbol.name = found->symbol.version = NULL;
                (void)snprintf(found->name, sizeof(found->name), "%.*s", (int)s->n_name, s->name);
                found->n = 0;
        }
        for (size_t i = 0; i < found->n && i < SHOWN_MAX; i++)
                if (found->addresses[i] == s->address)
                        return;
        if (found->n < SHOWN_MAX) {
                found->addresses[found->n] = s->address;
                (void)snprintf(found->names[found->n], sizeof(found->names[0]), "%.*s", (int)s->n_name, s->name);
        }
        if (found->n <= SHOWN_MAX)
                found->n++;
}

static int search(const ElfFile *f, const ElfTable *t, const Wanted *w, Found *found, Explanation *e) {
        for (size_t i = 0; i < t->n; i++) {
                ElfSymbol s;
                int r = elf_table_symbol(f, t, i, w->name, w->n_name, &s, e);
                Rank rank = r == 0 ? rank_of(&s, w) : RANK_NONE;

                if (r != 0)
                        return r;
                if (rank == RANK_NONE)
                        continue;
                if (!s.is_defined)
                        found->is_imported = found->is_imported || s.n_name == w->n_name;
                else if (version_fits(&s, w))
                        found_add(found, rank, &s);
                else if (rank > RANK_COPY) {
                        found->is_hidden = true;
                        found->has_version = s.version;
                        (void)snprintf(found->version, sizeof(found->version), "%s", s.version ?: "");
                }
        }
        return 0;
}

/* "0x1136, 0x1150, ..." or, for copies, "f.isra.0 at 0x1136, ...". */
static void list_places(const Found *found, char text[static LIST_TEXT_SIZE]) {
        size_t at = 0;

        for (size_t i = 0; i < found->n; i++) {
                const char *name = found->names[i];

                if (i == SHOWN_MAX || at + 120 > LIST_TEXT_SIZE) {
                        (void)snprintf(text + at, LIST_TEXT_SIZE - at, ", ...");
                        return;
                }
                if (found->rank > RANK_COPY)
                        name = "";
                at += (size_t)snprintf(text + at, LIST_TEXT_SIZE - at, "%s%s%s0x%" PRIx64, i ? ", " : "", name,
                                       *name ? " at " : "", found->addresses[i]);
        }
}

/* A name of a file can go into a message as it is. */
static bool is_plain(const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++)
                if (!isgraph((unsigned char)name[i]))
                        return false;
        return n > 0 && n < PLAIN_SIZE_MAX;
}

/* "_Z3fibi", "_ZN2ns3fibEi" of "fib": C++ and Rust write the length of an identifier before it. */
static bool is_mangled(const ElfSymbol *s, const char *identifier) {
        char part[PLAIN_SIZE_MAX];
        int n = snprintf(part, sizeof(part), "%zu%s", strlen(identifier), identifier);

        if (n >= (int)sizeof(part) || s->name[0] != '_' || (s->name[1] != 'Z' && s->name[1] != 'R'))
                return false;
        for (const char *at = s->name; (at = strstr(at, part)); at++)
                if (!isdigit((unsigned char)at[-1]))
                        return true;
        return false;
}

/* The shortest of them is the one that is named, before what is only spelled alike. */
static bool take_mangled(const ElfSymbol *s, const char *symbol, char name[static PLAIN_SIZE_MAX], Nearest *nearest) {
        if (!is_plain(s->name) || !is_mangled(s, symbol))
                return false;
        if (!nearest->word || nearest->distance > 0 || strlen(s->name) < strlen(name)) {
                (void)snprintf(name, PLAIN_SIZE_MAX, "%s", s->name);
                *nearest = (Nearest){ .word = name };
        }
        return true;
}

/* The function whose name is nearest to what was asked for. Its text is in `name`. */
static int find_nearest(const ElfFile *f, const char *symbol, char name[static PLAIN_SIZE_MAX], Nearest *nearest, Explanation *e) {
        size_t n = strlen(symbol), n_compared = 0;

        for (size_t t = 0; t < ARRAY_SIZE(f->tables); t++)
                for (size_t i = 0; i < f->tables[t].n && n_compared < NEAR_MAX; i++) {
                        Nearest other = *nearest;
                        ElfSymbol s;
                        int r = elf_table_symbol(f, &f->tables[t], i, NULL, 0, &s, e);

                        if (r == 0 && s.is_defined)
                                r = checkpoint(e);
                        if (r != 0)
                                return r;
                        if (!s.is_defined || s.type != STT_FUNC || take_mangled(&s, symbol, name, nearest) ||
                            s.n_name > 2 * n || n > 2 * s.n_name || !is_plain(s.name))
                                continue;
                        n_compared++;
                        nearest_add(&other, symbol, s.name);
                        if (other.word != s.name)
                                continue;
                        (void)snprintf(name, PLAIN_SIZE_MAX, "%s", s.name);
                        *nearest = (Nearest){ .word = name, .distance = other.distance };
                }
        return 0;
}

static int refuse_unknown(const ElfFile *f, const char *symbol, const Wanted *w, const Found *found, Explanation *e) {
        Nearest nearest = NEAREST_NULL;
        char name[PLAIN_SIZE_MAX];
        int r;

        if (f->tables[0].n == 0 && f->tables[1].n == 0)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has no symbol table, so %s cannot be found;"
                              " give an address, or a file that is not stripped", QUOTE(f->path), QUOTE(symbol));
        for (size_t i = 0; i < ARRAY_SIZE(f->tables); i++) {
                if (found[i].is_hidden && is_plain(found[i].version))
                        return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has %s only in other versions; did"
                                      " you mean '%.*s@%s'?", QUOTE(f->path), QUOTE(symbol), (int)w->n_name, w->name,
                                      found[i].version);
                if (found[i].is_hidden)
                        return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has %s only %s", QUOTE(f->path),
                                      QUOTE(symbol), found[i].has_version ? "in other versions" : "without a version");
        }
        if (found[0].is_imported || found[1].is_imported)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s only calls %s: probe it in one of the libraries that "
                        "the file is linked with", QUOTE(f->path), QUOTE(symbol));
        if (strpbrk(symbol, "*?[")) /* else a name that some language may have */
                return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has no function %s: a pattern stands alone, without other "
                        "symbols and without an offset", QUOTE(f->path), QUOTE(symbol));
        r = find_nearest(f, symbol, name, &nearest, e);
        if (r != 0)
                return r;
        return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol", "%s has no function %s%s: nm(1) lists its functions, nm -D those "
                "of a stripped library", QUOTE(f->path), QUOTE(symbol), HINT(&nearest));
}

/* glibc calls the candidates of memcpy __memcpy_NAME, compilers those of f f.NAME.N; f.resolver only chooses. */
static int refuse_ifunc(const ElfFile *f, const char *symbol, const char *ifunc, Explanation *e) {
        char text[LIST_TEXT_SIZE] = "";
        size_t at = 0, n = 0;

        ifunc += strspn(ifunc, "_");
        for (size_t i = 0; i < f->tables[0].n && n < SHOWN_MAX; i++) {
                ElfSymbol s;
                const char *name, *rest;
                int r = elf_table_symbol(f, &f->tables[0], i, NULL, 0, &s, e);

                if (r != 0)
                        return r;
                if (!s.is_defined || s.type != STT_FUNC)
                        continue;
                name = s.name + strspn(s.name, "_");
                if (!is_plain(s.name) || strchr(s.name, '@') || strncmp(name, ifunc, strlen(ifunc)) != 0)
                        continue;
                rest = name + strlen(ifunc);
                if ((*rest != '_' && *rest != '.') ||
                    strcmp(rest, ".resolver") == 0 || strstr(rest, ".cold") || at + strlen(s.name) + 8 > sizeof(text))
                        continue;
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", n++ ? ", " : "", s.name);
        }
        return refuse(e, REFUSED_UNSUPPORTED, "ifunc", "%s in %s has no code of its own: it selects an implementation when a "
                "program starts (IFUNC); %s%s", QUOTE(symbol), QUOTE(f->path),
                      n ? "probe one of " : "probe that one, by its name or address", text);
}

static int refuse_ambiguous(const ElfFile *f, const char *symbol, const Found *found, Explanation *e) {
        char text[LIST_TEXT_SIZE];

        list_places(found, text);
        return refuse(e, REFUSED_INVALID, "ambiguous-symbol", "%s has several functions %s: %s; give one of them by"
                      " its %s", QUOTE(f->path), QUOTE(symbol), text, found->rank > RANK_COPY ? "address" : "name");
}

/* The table whose candidate is the better one. .dynsym may know which of two in .symtab is the default version. */
static const Found *better(const Found *symtab, const Found *dynsym) {
        if (dynsym->rank > symtab->rank || (dynsym->rank == symtab->rank && symtab->n > 1 && dynsym->n == 1))
                return dynsym;
        return symtab;
}

int elf_file_find(const ElfFile *f, const char *symbol, uint64_t offset, ElfPlace *ret, Explanation *e) {
        const char *at = *symbol ? strchr(symbol + 1, '@') : NULL;
        Wanted wanted = { .name = symbol, .n_name = at ? (size_t)(at - symbol) : strlen(symbol) };
        Found found[ARRAY_SIZE(f->tables)] = { 0 };
        const ElfSymbol *s;
        const Found *best;
        ElfPlace place;
        int r = 0;

        if (at) {
                wanted.is_default = at[1] == '@';
                wanted.version = at + 1 + wanted.is_default;
        }
        for (size_t i = 0; i < ARRAY_SIZE(found) && wanted.n_name > 0 && r == 0; i++)
                r = search(f, &f->tables[i], &wanted, &found[i], e);
        if (r != 0)
                return r;
        best = better(&found[0], &found[1]);
        s = &best->symbol;
        if (best->rank == RANK_NONE)
                return refuse_unknown(f, symbol, &wanted, found, e);
        if (best->n > 1)
                return refuse_ambiguous(f, symbol, best, e);
        if (s->type == STT_GNU_IFUNC)
                return refuse_ifunc(f, symbol, best->name, e);
        if (s->size > 0 && offset >= s->size)
                return refuse(e, REFUSED_INVALID, "bad-address", "%s has %" PRIu64 " bytes in %s, so +0x%" PRIx64
                              " is after its end", QUOTE(symbol), s->size, QUOTE(f->path), offset);
        if (s->address + offset < s->address)
                return refuse(e, REFUSED_INVALID, "bad-address", "%s+0x%" PRIx64 " is not an address", QUOTE(symbol),
                              offset);
        r = elf_file_find_address(f, s->address + offset, &place, e);
        if (r != 0)
                return r;
        place.begin = s->address;
        place.size = s->size;
        memcpy(place.symbol, best->name, sizeof(place.symbol));
        *ret = place;
        return 0;
}
