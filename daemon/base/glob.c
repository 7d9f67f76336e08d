#include "daemon/base/glob.h"

#include <ctype.h>
#include <string.h>

typedef struct GlobReader {
        uint16_t units[GLOB_MAX + 1];
        PatternSet sets[GLOB_SETS_MAX];
        uint32_t n_units, n_sets;
} GlobReader;

bool text_is_glob(const char *text) {
        return text[strcspn(text, "*?[\\")];
}

static void set_add(PatternSet *s, unsigned char byte) {
        s->bits[byte / 64] |= UINT64_C(1) << (byte % 64);
}

/* "[:alpha:]" at `at`: its length, with what it has added; 0: there is none. */
static size_t read_class(const char *at, PatternSet *s) {
        static const struct {
                const char *name;
                int (*has)(int);
        } classes[] = { { "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
                        { "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
                        { "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit } };

        if (at[0] != '[' || at[1] != ':')
                return 0;
        for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
                size_t n = strlen(classes[i].name);

                if (strncmp(at + 2, classes[i].name, n) != 0 || strncmp(at + 2 + n, ":]", 2) != 0)
                        continue;
                for (int byte = 1; byte < 128; byte++)
                        if (classes[i].has(byte))
                                set_add(s, (unsigned char)byte);
                return n + 4;
        }
        return 0;
}

/* One character of a set, or of a range of one; its length, 0 at the end of the text. */
static size_t read_byte(const char *at, unsigned char *ret) {
        size_t n = at[0] == '\\' && at[1] ? 2 : 1;

        *ret = (unsigned char)at[n - 1];
        return *at ? n : 0;
}

/* "[...]" at `at`: its length; 0: it does not end, and the bracket means itself, as fnmatch(3) has it. */
static size_t read_set(const char *at, PatternSet *ret) {
        bool negated = at[1] == '!' || at[1] == '^';
        const char *begin = at + 1 + negated, *p = begin;
        PatternSet set = { { 0 } };
        unsigned char first, last;
        size_t n;

        while (*p && (*p != ']' || p == begin)) {
                n = read_class(p, &set);
                if (n > 0) {
                        p += n;
                        continue;
                }
                p += read_byte(p, &first);
                last = first;
                if (p[0] == '-' && p[1] && p[1] != ']')
                        p += 1 + read_byte(p + 1, &last);
                for (unsigned byte = first; byte <= last; byte++)
                        set_add(&set, (unsigned char)byte);
        }
        if (*p != ']')
                return 0;
        for (size_t i = 0; negated && i < 4; i++)
                set.bits[i] = ~set.bits[i];
        set.bits[0] &= ~UINT64_C(1); /* no text has a zero */
        *ret = set;
        return (size_t)(p - at) + 1;
}

static int refuse_glob(Explanation *e, const char *why) {
        return refuse(e, REFUSED_INVALID, "bad-name", "a glob may have %s, and this one exceeds that: use a shorter or a wider "
                "one", why);
}

/* What stands between two stars is tried at every place of a text, unless it is plain. */
static bool is_bounded(const GlobReader *r) {
        uint32_t n_stars = 0, length = 0;
        bool is_plain = true;

        for (uint32_t i = 0; i < r->n_units; i++) {
                if (r->units[i] != UNIT_STAR) {
                        length++;
                        is_plain = is_plain && r->units[i] < UNIT_STAR;
                        continue;
                }
                if (n_stars > 0 && !is_plain && length > GLOB_SEARCHED_MAX)
                        return false;
                n_stars++;
                length = 0;
                is_plain = true;
        }
        return true;
}

static int glob_read(const char *text, GlobReader *r, Explanation *e) {
        for (const char *p = text; *p;) {
                PatternSet set;
                size_t n = *p == '[' ? read_set(p, &set) : 0;

                if (n > 0) {
                        if (r->n_sets == GLOB_SETS_MAX)
                                return refuse_glob(e, "64 sets in brackets at most");
                        r->sets[r->n_sets] = set;
                        r->units[r->n_units++] = (uint16_t)(UNIT_SET + r->n_sets++);
                        p += n;
                } else if (*p == '*') {
                        if (r->n_units == 0 || r->units[r->n_units - 1] != UNIT_STAR)
                                r->units[r->n_units++] = UNIT_STAR;
                        p++;
                } else if (*p == '?') {
                        r->units[r->n_units++] = UNIT_ANY;
                        p++;
                } else {
                        unsigned char byte;

                        p += read_byte(p, &byte);
                        r->units[r->n_units++] = byte;
                }
        }
        return is_bounded(r) ? 0 : refuse_glob(e, "16 characters at most between two stars, if one of them is ? or a set");
}

int glob_check(const char *text, Explanation *e) {
        const char *why = NULL, *p = text;
        PatternSet set;

        while (*p && !why) {
                size_t n = *p == '[' ? read_set(p, &set) : *p == '\\' ? (p[1] ? 2 : 0) : 1;

                if (n == 0)
                        why = *p == '[' ? "a glob whose [ has no ]: close the set, or write \\[ for the character itself"
                                        : "a glob that ends in a backslash: remove it, or write \\\\ for the character itself";
                p += n;
        }
        if (!why)
                return 0;
        refuse(e, REFUSED_INVALID, "bad-name", "%s", why);
        if (e)
                e->position = (unsigned)(p - text) + 1;
        return REFUSED_INVALID;
}

int glob_compile(const char *text, Pattern **ret, Explanation *e) {
        GlobReader *r;
        int k;

        if (strlen(text) > GLOB_MAX)
                return refuse_glob(e, "1023 bytes at most");
        r = malloc(sizeof(*r));
        if (!r)
                return error_origin(-ENOMEM);
        r->n_units = r->n_sets = 0;
        k = glob_read(text, r, e);
        if (k == 0) {
                *ret = pattern_new(r->units, r->n_units, r->sets);
                k = *ret ? 0 : error_origin(-ENOMEM);
        }
        free(r);
        return k;
}

size_t glob_size(const char *text) {
        size_t size = sizeof(Pattern) + sizeof(PatternPart);

        for (; *text; text++)
                size += sizeof(uint16_t) + sizeof(uint8_t) + (*text == '[' ? sizeof(PatternSet) : 0) +
                        (*text == '*' ? sizeof(PatternPart) : 0);
        return size;
}

bool glob_match(const Pattern *glob, const char *text) {
        return pattern_match(glob, (const uint8_t *)text, strlen(text));
}
