/*
 * The list has 100,000 lines and more, changes with every module, and is needed only while a probe is defined: so it is kept no
 * longer than a request, and what spares most of that is in symbol/kernel-symbol-index.c. Whatever goes through all of it has
 * checkpoints, because who names what is looked up may be anybody. Names are there even where addresses are
 * hidden, and names are what is looked up; nothing but the texts for people needs an address.
 */
#include "daemon/kernel/symbol/kernel-symbols.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/host/whole-file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINES_AT_ONCE 512 /* between two checkpoints */

/* A piece of the list. */
typedef struct Span {
        const char *at;
        size_t n;
} Span;

typedef struct SymbolLine {
        uint64_t address;
        bool is_text;
        Span name, module; /* module.n 0: the kernel's own */
} SymbolLine;

int kernel_symbols_read(const char *path, char **ret_text, size_t *ret_length, Explanation *e) {
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        int r = whole_file_read_long(path, &text, &length, e);

        if (r == -ENOMEM || r > 0)
                return r;
        if (r < 0 || length == 0)
                return KERNEL_SYMBOLS_E_HIDDEN; /* whatever the reason is, the kernel can still be asked by trying */
        *ret_text = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

static Span next_word(const char **p, const char *end) {
        Span w;

        while (*p < end && (**p == ' ' || **p == '\t'))
                (*p)++;
        w.at = *p;
        while (*p < end && **p != ' ' && **p != '\t')
                (*p)++;
        w.n = (size_t)(*p - w.at);
        return w;
}

static bool parse_hex(Span w, uint64_t *ret) {
        uint64_t value = 0;

        if (w.n == 0 || w.n > 16)
                return false;
        for (size_t i = 0; i < w.n; i++) {
                unsigned decimal = (unsigned char)w.at[i] - '0', letter = (unsigned char)w.at[i] - 'a';

                if (decimal > 9 && letter > 5)
                        return false;
                value = value << 4 | (decimal <= 9 ? decimal : letter + 10);
        }
        *ret = value;
        return true;
}

/* A line as Linux writes nearly all of them, which is looked at in no more places than it has to. */
static bool parse_plain(const char *at, const char *stop, SymbolLine *ret, char *ret_type) {
        const char *name = at + 19;

        if (stop - at <= 19 || at[16] != ' ' || at[17] == ' ' || at[18] != ' ' || stop[-1] == ']' ||
            memchr(name, ' ', (size_t)(stop - name)) || memchr(name, '\t', (size_t)(stop - name)) ||
            !parse_hex((Span){ at, 16 }, &ret->address))
                return false;
        *ret_type = at[17];
        ret->name = (Span){ name, (size_t)(stop - name) };
        ret->module = (Span){ NULL, 0 };
        return true;
}

static bool parse_words(const char *at, const char *stop, SymbolLine *ret, char *ret_type) {
        Span address = next_word(&at, stop), type = next_word(&at, stop);

        ret->name = next_word(&at, stop);
        ret->module = next_word(&at, stop);
        if (!parse_hex(address, &ret->address) || type.n != 1 || ret->name.n == 0)
                return false;
        if (ret->module.n >= 2 && ret->module.at[0] == '[') /* "[name]" */
                ret->module = (Span){ ret->module.at + 1, ret->module.n - 2 };
        *ret_type = *type.at;
        return true;
}

/* The next line that is one, and moves *p behind it. */
static bool next_symbol(const char **p, const char *end, SymbolLine *ret) {
        while (*p < end) {
                const char *at = *p, *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
                char type;

                *p = newline ? newline + 1 : end;
                if ((!parse_plain(at, stop, ret, &type) && !parse_words(at, stop, ret, &type)) ||
                    ret->name.n >= KERNEL_SYMBOL_SIZE)
                        continue;
                ret->is_text = type == 't' || type == 'T' || type == 'w' || type == 'W';
                return true;
        }
        return false;
}

static bool span_is(Span s, const char *text, size_t n) {
        return s.n == n && memcmp(s.at, text, n) == 0;
}

/* What the kernel lists but has no function of: BPF programs and trampolines. They cannot be probed by name. */
static bool is_made_at_run_time(Span module) {
        return span_is(module, "bpf", 3) || (module.n > 9 && memcmp(module.at, "__builtin", 9) == 0);
}

typedef enum Likeness {
        LIKE_NOTHING,
        LIKE_PART,    /* NAME.part.N: only what the compiler did not put into the callers */
        LIKE_VARIANT, /* NAME.isra.N and so on: the function itself, with other parameters */
        LIKE_EXACT,
        _LIKENESS_MAX,
} Likeness;

static Likeness likeness(Span found, const char *name, size_t n) {
        static const struct {
                const char *word;
                Likeness likeness;
        } words[] = { { ".isra.", LIKE_VARIANT }, { ".constprop.", LIKE_VARIANT }, { ".llvm.", LIKE_VARIANT },
                      { ".part.", LIKE_PART } };
        Likeness all = LIKE_EXACT;

        if (found.n < n || memcmp(found.at, name, n) != 0)
                return LIKE_NOTHING;
        for (size_t at = n; at < found.n;) {
                size_t digits = 0, w = 0;

                while (w < ARRAY_SIZE(words) && (found.n - at <= strlen(words[w].word) ||
                                                 memcmp(found.at + at, words[w].word, strlen(words[w].word)) != 0))
                        w++;
                if (w == ARRAY_SIZE(words))
                        return LIKE_NOTHING;
                at += strlen(words[w].word);
                while (at + digits < found.n && found.at[at + digits] >= '0' && found.at[at + digits] <= '9')
                        digits++;
                if (digits == 0)
                        return LIKE_NOTHING;
                at += digits;
                if (words[w].likeness < all)
                        all = words[w].likeness;
        }
        return all;
}

typedef struct Candidates {
        size_t n;
        SymbolLine first;
        char places[200]; /* for people: "a at 0x1, a at 0x2"; "a, a" where addresses are hidden */
} Candidates;

static void candidates_add(Candidates *c, const SymbolLine *line) {
        size_t used = strlen(c->places);

        if (c->n++ == 0)
                c->first = *line;
        if (used + 1 >= sizeof(c->places))
                return;
        (void)snprintf(c->places + used, sizeof(c->places) - used, "%s%.*s", used ? ", " : "", (int)line->name.n,
                       line->name.at);
        used = strlen(c->places);
        if (line->address != 0)
                (void)snprintf(c->places + used, sizeof(c->places) - used, " at 0x%llx",
                               (unsigned long long)line->address);
}

/* What is most like one alternate, of which there may be several; NULL: nothing is. */
static const Candidates *find_one(const char *text, size_t length, const char *name,
                                  Candidates found[static _LIKENESS_MAX]) {
        const char *end = text + length, *hit = text;
        size_t n = strlen(name);

        memset(found, 0, _LIKENESS_MAX * sizeof(*found));
        /* not line by line, of which few are of interest */
        while (n > 0 && (hit = memmem(hit, (size_t)(end - hit), name, n))) {
                const char *newline = memrchr(text, '\n', (size_t)(hit - text)), *p = newline ? newline + 1 : text;
                SymbolLine line;
                Likeness like;

                if (!next_symbol(&p, end, &line) || line.name.at != hit) {
                        hit++; /* in an address, a module, or the middle of a name */
                        continue;
                }
                hit = p;
                like = line.is_text ? likeness(line.name, name, n) : LIKE_NOTHING;
                if (like != LIKE_NOTHING && !is_made_at_run_time(line.module))
                        candidates_add(&found[like], &line);
        }
        for (Likeness like = LIKE_EXACT; like > LIKE_NOTHING; like--)
                if (found[like].n > 0)
                        return &found[like];
        return NULL;
}

/* The name of a function that is most like one that was looked for. */
typedef struct Near {
        char best[97];
        unsigned distance;
} Near;

static int near_add_all(Near *x, const char *text, size_t length, const char *name, Explanation *e) {
        const size_t n = strlen(name);
        SymbolLine line;
        size_t i = 0;
        int r;

        for (const char *p = text; next_symbol(&p, text + length, &line); i++) {
                size_t apart = n > line.name.n ? n - line.name.n : line.name.n - n;
                Nearest near = { .word = x->best[0] ? x->best : NULL, .distance = x->distance };
                char candidate[sizeof(x->best)];

                r = i % LINES_AT_ONCE == 0 ? checkpoint(e) : 0;
                if (r != 0)
                        return r;
                /* nearest_add() takes some time, and there are many */
                if (!line.is_text || line.name.n >= sizeof(candidate) || apart > line.name.n / 3 + 1)
                        continue;
                memcpy(candidate, line.name.at, line.name.n);
                candidate[line.name.n] = '\0';
                nearest_add(&near, name, candidate);
                if (near.word == candidate) {
                        memcpy(x->best, candidate, line.name.n + 1);
                        x->distance = near.distance;
                }
        }
        return 0;
}

int kernel_symbols_refuse_unknown(const char *text, size_t length, char *const *names, size_t n_names, size_t *hints,
                                  Explanation *e) {
        Near near = { .distance = 0 };
        int r = 0;

        for (size_t i = 0; i < n_names && r == 0 && *hints > 0; i++) {
                r = near_add_all(&near, text, length, names[i], e);
                --*hints;
        }
        if (r != 0)
                return r;
        return refuse(e, REFUSED_NOT_FOUND, "unknown-symbol",
                      "this kernel has no function %s%s: /proc/kallsyms lists its functions%s", QUOTE(names[0]),
                      n_names > 1 ? ", nor one of its alternates" : "",
                      HINT(&((Nearest){ .word = near.best[0] ? near.best : NULL })));
}

bool kernel_symbols_next(const char **p, const char *end, const char **ret_name, size_t *ret_n) {
        SymbolLine line;

        while (next_symbol(p, end, &line))
                if (line.is_text && !is_made_at_run_time(line.module)) {
                        *ret_name = line.name.at;
                        *ret_n = line.name.n;
                        return true;
                }
        return false;
}

int kernel_symbols_find(const char *text, size_t length, char *const *names, size_t n_names, size_t *hints,
                        char ret[static KERNEL_SYMBOL_SIZE], Explanation *e) {
        Candidates found[_LIKENESS_MAX];
        int refusal = 0;

        for (size_t i = 0; i < n_names; i++) {
                const Candidates *c = find_one(text, length, names[i], found);
                int r = checkpoint(e); /* e: it refuses only what is over */

                if (r != 0)
                        return r;
                if (c && c->n == 1) {
                        memcpy(ret, c->first.name.at, c->first.name.n);
                        ret[c->first.name.n] = '\0';
                        return 0;
                }
                if (c && refusal == 0)
                        refusal = refuse(e, REFUSED_INVALID, "ambiguous-symbol",
                                         "%zu functions of this kernel are called %s: %s. Give the full name of one of them or, "
                                         "if that is ambiguous too, its address "
                                         "(kprobe:0x...; kernel.kptr_restrict may hide it)", c->n, QUOTE(names[i]),
                                         c->places);
        }
        return refusal != 0 ? refusal : kernel_symbols_refuse_unknown(text, length, names, n_names, hints, e);
}

/* What begins last at or before an address; address 0: nothing does. Of aliases a function. */
static int find_holder(const char *text, size_t length, uint64_t address, SymbolLine *ret, Explanation *e) {
        SymbolLine line, best = { .is_text = false };
        size_t i = 0;
        int r = 0;

        for (const char *p = text; r == 0 && next_symbol(&p, text + length, &line); i++) {
                if (line.address <= address &&
                    (line.address > best.address || (line.address == best.address && !best.is_text)))
                        best = line;
                r = i % LINES_AT_ONCE == 0 ? checkpoint(e) : 0;
        }
        *ret = best;
        return r;
}

int kernel_symbols_check(const char *text, size_t length, const char *symbol, uint64_t offset,
                         char ret[static KERNEL_SYMBOL_TEXT_SIZE], Explanation *e) {
        uint64_t begin = 0, highest = 0, address;
        SymbolLine line, holder;
        size_t i = 0;
        int r = 0;

        for (const char *p = text; r == 0 && next_symbol(&p, text + length, &line); i++) {
                if (symbol && line.is_text && span_is(line.name, symbol, strlen(symbol)))
                        begin = line.address;
                highest = line.address > highest ? line.address : highest;
                r = i % LINES_AT_ONCE == 0 ? checkpoint(e) : 0;
        }
        if (r != 0)
                return r;
        if (highest == 0 || (symbol && begin == 0))
                return KERNEL_SYMBOLS_E_HIDDEN;
        address = begin + offset;
        r = find_holder(text, length, address, &holder, e);
        if (r != 0)
                return r;
        if (address < begin || !holder.is_text || holder.address == 0)
                return refuse(e, REFUSED_INVALID, "bad-address",
                              "0x%" PRIx64 "%s%s is not an address of a function of this kernel", offset,
                              symbol ? " after " : "", symbol ? symbol : "");
        if (symbol && holder.address != begin)
                return refuse(e, REFUSED_INVALID, "bad-address", "%s+0x%" PRIx64 " is not inside %s: it is %.*s+0x%" PRIx64
                              "; use that name to probe it", symbol, offset, symbol, (int)holder.name.n, holder.name.at,
                              address - holder.address);
        (void)snprintf(ret, KERNEL_SYMBOL_TEXT_SIZE, "%.*s+0x%" PRIx64,
                       symbol ? (int)strlen(symbol) : (int)holder.name.n, symbol ? symbol : holder.name.at,
                       address - holder.address);
        return 0;
}
