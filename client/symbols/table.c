/*
 * Symbols may lie within others and overlap them. They are cut into disjoint pieces once, so that a binary search without any walk finds
 * the one that is shown, whatever a hostile file makes of its table.
 */
#include "client/symbols/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/symbols/demangle.h"
#include "client/symbols/run-sort.h"

#define CHUNK_SIZE ((size_t)64 * 1024)
#define GAP_MAX 65536 /* bytes that a symbol without a length may have */

struct NameChunk {
        NameChunk *next;
        size_t n, room;
        char bytes[];
};

void symbol_table_init(SymbolTable *t, size_t bytes_max, bool has_parameters) {
        *t = (SymbolTable){ .bytes_max = bytes_max, .has_parameters = has_parameters };
}

void symbol_table_deinit(SymbolTable *t) {
        while (t->names) {
                NameChunk *next = t->names->next;

                free(t->names);
                t->names = next;
        }
        free(t->symbols);
        free(t->index);
        *t = (SymbolTable){ .symbols = NULL };
}

const char *symbol_table_keep(SymbolTable *t, const char *text, size_t n) {
        NameChunk *chunk = t->names;
        char *at;

        if (!chunk || chunk->room - chunk->n < n + 1) {
                const size_t room = n + 1 > CHUNK_SIZE ? n + 1 : CHUNK_SIZE;

                chunk = malloc(sizeof(NameChunk) + room);
                if (!chunk)
                        return NULL;
                *chunk = (NameChunk){ .next = t->names, .room = room };
                t->names = chunk;
                t->bytes += sizeof(NameChunk) + room;
        }
        at = chunk->bytes + chunk->n;
        memcpy(at, text, n);
        at[n] = '\0';
        chunk->n += n + 1;
        return at;
}

static int make_room(SymbolTable *t) {
        const size_t room = t->room ? t->room * 2 : 64;
        Symbol *symbols;

        if (t->n < t->room)
                return 0;
        symbols = reallocarray(t->symbols, room, sizeof(Symbol));
        if (!symbols)
                return -ENOMEM;
        t->bytes += (room - t->room) * sizeof(Symbol);
        t->symbols = symbols;
        t->room = room;
        return 0;
}

int symbol_table_add(SymbolTable *t, uint64_t start, uint64_t length, const char *name, size_t n, unsigned rank) {
        if (n > SYMBOL_NAME_MAX)
                n = SYMBOL_NAME_MAX;
        if (t->bytes + n + (t->n < t->room ? 0 : (t->room + 64) * sizeof(Symbol)) > t->bytes_max) {
                t->is_full = true;
                return 0;
        }
        if (make_room(t) != 0)
                return -ENOMEM;
        name = symbol_table_keep(t, name, n);
        if (!name)
                return -ENOMEM;
        if (length > SYMBOL_LENGTH_MAX)
                length = SYMBOL_LENGTH_MAX;
        if (length > UINT64_MAX - start)
                length = UINT64_MAX - start;
        t->symbols[t->n++] = (Symbol){ .start = start, .length = (uint32_t)length, .into = rank, .name = name };
        return 0;
}

static size_t underscores(const char *name) {
        return strspn(name, "_");
}

/* Above 0: a is better, at the same address. As perf: what has a length, is not weak, is global, has fewer underscores, a longer name. */
static int compare_worth(const Symbol *a, const Symbol *b) {
        if ((a->length > 0) != (b->length > 0))
                return a->length > 0 ? 1 : -1;
        if ((a->into & ~SYMBOL_ORDER_MAX) != (b->into & ~SYMBOL_ORDER_MAX))
                return a->into > b->into ? 1 : -1;
        if (underscores(a->name) != underscores(b->name))
                return underscores(a->name) < underscores(b->name) ? 1 : -1;
        if (strlen(a->name) != strlen(b->name))
                return strlen(a->name) > strlen(b->name) ? 1 : -1;
        return (a->into > b->into) - (a->into < b->into);
}

/* The best one at an address comes first. */
static int compare(const void *a, const void *b) {
        const Symbol *x = a, *y = b;

        return x->start != y->start ? (x->start < y->start ? -1 : 1) : -compare_worth(x, y);
}

/* The one of the highest rank comes last, and so is the only one there that gets a length, if none has any. */
static int compare_ranks(const void *a, const void *b) {
        const Symbol *x = a, *y = b;

        return x->start != y->start ? (x->start < y->start ? -1 : 1) : (x->into > y->into) - (x->into < y->into);
}

static size_t drop_duplicates(Symbol *s, size_t n) {
        size_t kept = 0;

        for (size_t i = 0; i < n; i++)
                if (kept == 0 || s[kept - 1].start != s[i].start)
                        s[kept++] = s[i];
        return kept;
}

static void set_lengths(Symbol *s, size_t n) {
        for (size_t i = 0; i < n; i++) {
                uint64_t length = i + 1 < n ? s[i + 1].start - s[i].start : GAP_MAX;

                if (length > GAP_MAX)
                        length = GAP_MAX;
                if (length > UINT64_MAX - s[i].start)
                        length = UINT64_MAX - s[i].start;
                if (s[i].length == 0)
                        s[i].length = (uint32_t)length;
        }
}

static int put(SymbolTable *to, const Symbol *s, uint64_t from, uint64_t end) {
        Symbol piece = *s;

        if (from >= end)
                return 0;
        if (make_room(to) != 0)
                return -ENOMEM;
        piece.start = from;
        piece.length = (uint32_t)(end - from);
        piece.into = (uint32_t)(from - s->start);
        to->symbols[to->n++] = piece;
        return 0;
}

/* Those that have begun, the one that is shown on top. */
typedef struct Begun {
        const Symbol **list;
        size_t n;
        bool is_by_rank;
} Begun;

/* Otherwise the one that began last: of sorted ones, the one with the higher place. */
static bool is_above(const Begun *b, size_t i, size_t k) {
        return b->is_by_rank && b->list[i]->into != b->list[k]->into ? b->list[i]->into > b->list[k]->into : b->list[i] > b->list[k];
}

static void swap(Begun *b, size_t i, size_t k) {
        const Symbol *one = b->list[i];

        b->list[i] = b->list[k];
        b->list[k] = one;
}

static void push(Begun *b, const Symbol *s) {
        size_t i = b->n++;

        b->list[i] = s;
        for (; i > 0 && is_above(b, i, (i - 1) / 2); i = (i - 1) / 2)
                swap(b, i, (i - 1) / 2);
}

static void pop(Begun *b) {
        size_t i = 0;

        b->list[0] = b->list[--b->n];
        for (;;) {
                const size_t left = 2 * i + 1, right = left + 1;
                size_t highest = i;

                if (left < b->n && is_above(b, left, highest))
                        highest = left;
                if (right < b->n && is_above(b, right, highest))
                        highest = right;
                if (highest == i)
                        return;
                swap(b, i, highest);
                i = highest;
        }
}

/* Sorted ones with lengths, into pieces of which each belongs to the one that is shown there. */
static int cut(const Symbol *s, size_t n, Begun *begun, SymbolTable *to) {
        uint64_t at = 0;
        int r = 0;

        for (size_t i = 0; i <= n && r == 0; i++) {
                const uint64_t next = i < n ? s[i].start : UINT64_MAX;

                while (begun->n > 0 && r == 0) {
                        const Symbol *top = begun->list[0];
                        const uint64_t end = top->start + top->length, until = end < next ? end : next;

                        if (end <= at) { /* at once, also where the next one begins: of those that do not overlap there is never more than one */
                                pop(begun);
                                continue;
                        }
                        if (at >= next)
                                break;
                        r = put(to, top, at, until);
                        at = until;
                }
                at = next;
                if (i < n)
                        push(begun, s + i);
        }
        return r;
}

/* No more parts than symbols, so that of most addresses few symbols are left to search. */
static int make_index(SymbolTable *t) {
        const uint64_t first = t->n > 0 ? t->symbols[0].start : 0, span = t->n > 0 ? t->symbols[t->n - 1].start - first : 0;
        size_t at = 0;

        if (t->n == 0)
                return 0;
        while (span >> t->part_shift >= t->n)
                t->part_shift++;
        t->n_parts = (span >> t->part_shift) + 1;
        t->index = reallocarray(NULL, t->n_parts + 1, sizeof(*t->index));
        if (!t->index)
                return -ENOMEM;
        t->bytes += (t->n_parts + 1) * sizeof(*t->index);
        for (uint64_t i = 0; i < t->n_parts; i++) {
                while (at + 1 < t->n && t->symbols[at + 1].start - first <= i << t->part_shift)
                        at++;
                t->index[i] = (uint32_t)at;
        }
        t->index[t->n_parts] = (uint32_t)(t->n - 1);
        return 0;
}

int symbol_table_finish(SymbolTable *t, bool is_by_rank) {
        SymbolTable pieces = { .symbols = NULL };
        Begun begun = { .is_by_rank = is_by_rank };
        size_t n = t->n;
        int r = run_sort(t->symbols, n, sizeof(Symbol), is_by_rank ? compare_ranks : compare);

        if (t->n == 0 || r != 0)
                return r;
        if (!is_by_rank)
                n = drop_duplicates(t->symbols, n);
        set_lengths(t->symbols, n);
        begun.list = reallocarray(NULL, n, sizeof(*begun.list));
        r = begun.list ? cut(t->symbols, n, &begun, &pieces) : -ENOMEM;
        free(begun.list);
        if (r != 0) {
                free(pieces.symbols);
                return r;
        }
        t->bytes = t->bytes - t->room * sizeof(Symbol) + pieces.room * sizeof(Symbol);
        free(t->symbols);
        t->symbols = pieces.symbols;
        t->n = pieces.n;
        t->room = pieces.room;
        return make_index(t);
}

Symbol *symbol_table_find(const SymbolTable *t, uint64_t address) {
        size_t from, to; /* the last one that does not begin behind it is in between */
        uint64_t part;

        if (!t->index || address < t->symbols[0].start) /* empty, or there was no memory to finish it */
                return NULL;
        part = (address - t->symbols[0].start) >> t->part_shift;
        from = t->index[part < t->n_parts ? part : t->n_parts];
        to = (size_t)t->index[part < t->n_parts ? part + 1 : t->n_parts] + 1;
        while (to - from > 1) {
                const size_t middle = from + (to - from) / 2;

                if (t->symbols[middle].start <= address)
                        from = middle;
                else
                        to = middle;
        }
        if (address - t->symbols[from].start >= t->symbols[from].length)
                return NULL;
        return t->symbols + from;
}

perfd_text symbol_table_name(SymbolTable *t, Symbol *symbol) {
        if (!symbol->is_demangled) {
                char *plain = demangle(symbol->name, t->has_parameters);
                const char *kept = plain ? symbol_table_keep(t, plain, strlen(plain)) : NULL;

                symbol->name = kept ? kept : symbol->name;
                symbol->is_demangled = true;
                free(plain);
        }
        return (perfd_text){ .bytes = symbol->name, .length = strlen(symbol->name) };
}
