/*
 * "(unsigned long)" before an operand is a cast, "(jiffies) - 1" is not: a word is a type if C or the kernel's headers have it
 * as one, if it ends in _t, or if a '*' is there.
 */
#include "client/print/type.h"

#include <ctype.h>
#include <string.h>

typedef struct TypeWord {
        const char *word;
        uint8_t size;
        bool is_signed;
} TypeWord;

static const TypeWord words[] = {
        { "char", 1, true },        { "short", 2, true },          { "int", 4, true },
        { "long", 8, true },        { "bool", 1, false },          { "_Bool", 1, false },
        { "u8", 1, false },         { "__u8", 1, false },          { "uint8_t", 1, false },
        { "s8", 1, true },          { "__s8", 1, true },           { "int8_t", 1, true },
        { "u16", 2, false },        { "__u16", 2, false },         { "uint16_t", 2, false },
        { "s16", 2, true },         { "__s16", 2, true },          { "int16_t", 2, true },
        { "u32", 4, false },        { "__u32", 4, false },         { "uint32_t", 4, false },
        { "s32", 4, true },         { "__s32", 4, true },          { "int32_t", 4, true },
        { "u64", 8, false },        { "__u64", 8, false },         { "uint64_t", 8, false },
        { "s64", 8, true },         { "__s64", 8, true },          { "int64_t", 8, true },
        { "uint", 4, false },       { "ulong", 8, false },         { "size_t", 8, false },
        { "ssize_t", 8, true },     { "loff_t", 8, true },         { "off_t", 8, true },
        { "gfp_t", 4, false },      { "pid_t", 4, true },          { "dev_t", 4, false },
        { "dma_addr_t", 8, false }, { "phys_addr_t", 8, false },   { "sector_t", 8, false },
        { "uintptr_t", 8, false },  { "umode_t", 2, false },       { "fmode_t", 4, false },
        { "blk_opf_t", 4, false },  { "__kernel_rwf_t", 4, true }, { "signed", 4, true },
        { "unsigned", 4, false },
};

static bool is_word(char c) {
        return isalnum((unsigned char)c) || c == '_';
}

static bool word_equal(const char *at, size_t n, const char *word) {
        return strlen(word) == n && memcmp(at, word, n) == 0;
}

static const TypeWord *find_word(const char *at, size_t n) {
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (word_equal(at, n, words[i].word))
                        return &words[i];
        return NULL;
}

typedef struct TypeRead {
        PrintType type;
        bool is_known, is_unsigned, is_named; /* named: by something else than the words above */
} TypeRead;

/* False: the word makes it no type. */
static bool add_word(TypeRead *t, const char *at, size_t n) {
        static const char *const others[] = { "const", "volatile", "struct", "union", "enum" };
        const TypeWord *w = find_word(at, n);

        if (w) {
                bool is_sign = word_equal(at, n, "unsigned") || word_equal(at, n, "signed");

                t->is_unsigned = t->is_unsigned || word_equal(at, n, "unsigned");
                if (!t->is_known || !is_sign) {
                        bool is_int = word_equal(at, n, "int") && t->is_known && t->type.size != 4; /* "long int" */

                        if (!is_int)
                                t->type = (PrintType){ .size = w->size, .is_signed = w->is_signed };
                }
                t->is_known = true;
                return true;
        }
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                if (word_equal(at, n, others[i])) {
                        t->is_named = true;
                        return true;
                }
        if (n > 2 && memcmp(at + n - 2, "_t", 2) == 0)
                t->is_named = true;
        return !isdigit((unsigned char)*at);
}

const char *print_type_read(const char *at, const char *end, PrintType *ret) {
        TypeRead t = { .is_known = false };
        bool is_pointer = false, has_word = false;

        for (; at < end && *at != ')'; ) {
                const char *begin = at;

                if (*at == '*' && has_word)
                        is_pointer = true;
                else if (!isspace((unsigned char)*at) && !is_word(*at))
                        return NULL;
                if (!is_word(*at)) {
                        at++;
                        continue;
                }
                if (is_pointer)
                        return NULL; /* a product */
                while (at < end && is_word(*at))
                        at++;
                if (!add_word(&t, begin, (size_t)(at - begin)))
                        return NULL;
                has_word = true;
        }
        if (at == end || !has_word || !(t.is_known || t.is_named || is_pointer))
                return NULL;
        if (t.is_unsigned)
                t.type.is_signed = false;
        if (!t.is_known)
                t.type = (PrintType){ .size = 0 };
        t.type.is_pointer = is_pointer;
        *ret = t.type;
        return at + 1;
}
