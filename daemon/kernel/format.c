/*
 * What a field is, is decided from its declaration and the kernel's own size and sign. This and the names of values are
 * read by a parser of our own, because libtraceevent, made for the same, ends the whole program on print formats that
 * it does not understand (a member without a field in __print_flags() is enough), leaks, and names no value of an event
 * with one argument that is beyond it. Nothing here needs more than the text, so any thread could.
 */
#include "daemon/kernel/format.h"

#include <string.h>

#include "daemon/base/thread.h"
#include "daemon/kernel/format-names.h"
#include "daemon/kernel/format-text.h"

/* A declaration taken apart. Strings are owned. */
typedef struct Declaration {
        char *text;  /* "unsigned long args[6]" */
        char *type;  /* "unsigned long" */
        char *name;  /* "args" */
        bool array;  /* with [] behind the name */
        uint32_t n;  /* between these, 0 if it is no number */
        FieldPlace place;
} Declaration;

static void declaration_deinit(Declaration *d) {
        free(d->text);
        free(d->type);
        free(d->name);
}

/* The last word before `end`. */
static Span last_word(const char *at, const char *end) {
        Span s = span_trim((Span){ at, end });

        for (s.at = s.end; s.at > at && format_is_word(s.at[-1]);)
                s.at--;
        return s;
}

/* -ENOMEM, or REFUSED_INVALID if there is no name, or no type, in it. */
static int declaration_init(Declaration *d, Span s) {
        Span place = s, name;
        const char *bracket;

        *d = (Declaration){ .place = span_skip(&place, "__data_loc ")  ? PLACE_DATA_LOC
                                     : span_skip(&place, "__rel_loc ") ? PLACE_REL_LOC
                                                                       : PLACE_FIXED };
        bracket = d->place == PLACE_FIXED ? memchr(s.at, '[', (size_t)(s.end - s.at)) : NULL;
        name = last_word(s.at, bracket ? bracket : s.end);
        if (span_is_empty(name) || span_is_empty(span_trim((Span){ s.at, name.at })))
                return REFUSED_INVALID;
        if (bracket) {
                d->array = true;
                d->n = (uint32_t)strtoul(bracket + 1, NULL, 10); /* ends at the ']' or the declaration's ';' */
        }
        d->text = strndup(s.at, (size_t)(s.end - s.at));
        d->type = strndup(s.at, (size_t)(name.at - s.at));
        d->name = strndup(name.at, (size_t)(name.end - name.at));
        return d->text && d->type && d->name ? 0 : -ENOMEM;
}

/* `type` has `word` as a whole word */
static bool has_word(const char *type, const char *word) {
        size_t n = strlen(word);

        for (const char *at = type; (at = strstr(at, word)); at += n)
                if ((at == type || !format_is_word(at[-1])) && !format_is_word(at[n]))
                        return true;
        return false;
}

typedef struct ElementType {
        const char *word;
        uint32_t size;
} ElementType;

/* For arrays without a length, whose elements the format gives no size: the first that occurs in the type decides. */
static const ElementType element_types[] = {
        { "cpumask_t", sizeof(long) }, { "char", 1 }, { "bool", 1 },
        { "u8", 1 }, { "__u8", 1 }, { "uint8_t", 1 }, { "s8", 1 }, { "__s8", 1 }, { "int8_t", 1 },
        { "u16", 2 }, { "__u16", 2 }, { "uint16_t", 2 }, { "s16", 2 }, { "__s16", 2 }, { "int16_t", 2 }, { "short", 2 },
        { "__le16", 2 }, { "__be16", 2 },
        { "u64", 8 }, { "__u64", 8 }, { "uint64_t", 8 }, { "s64", 8 }, { "__s64", 8 }, { "int64_t", 8 },
        { "__le64", 8 }, { "__be64", 8 }, { "dma_addr_t", 8 }, { "long", sizeof(long) }, { "size_t", sizeof(long) },
        { "u32", 4 }, { "__u32", 4 }, { "uint32_t", 4 }, { "s32", 4 }, { "__s32", 4 }, { "int32_t", 4 },
        { "__le32", 4 }, { "__be32", 4 }, { "int", 4 }, { "unsigned", 4 }, { "enum", 4 },
};

/* 0: not known */
static uint32_t element_size(const char *type) {
        if (has_word(type, "long") && strstr(type, "long long"))
                return 8;
        for (size_t i = 0; i < ARRAY_SIZE(element_types); i++)
                if (has_word(type, element_types[i].word))
                        return element_types[i].size;
        return 0;
}

static bool is_number_size(uint64_t size) {
        return size == 1 || size == 2 || size == 4 || size == 8;
}

/* char, but not unsigned char and not a pointer to it */
static bool is_text(const char *type) {
        return has_word(type, "char") && !has_word(type, "unsigned") && !strchr(type, '*');
}

static bool is_cpumask(const char *type) {
        return has_word(type, "cpumask_t");
}

static bool is_pointer(const char *type) {
        return strchr(type, '*') && !is_cpumask(type);
}

static bool is_aggregate(const char *type) {
        return (has_word(type, "struct") || has_word(type, "union")) && !strchr(type, '*');
}

static FieldKind number_kind(const char *type, bool is_signed) {
        if (is_pointer(type))
                return FIELD_POINTER;
        if (has_word(type, "bool") || has_word(type, "_Bool"))
                return FIELD_BOOL;
        return is_signed ? FIELD_SIGNED : FIELD_UNSIGNED;
}

static void set_bytes(PlanField *f, FieldKind kind, uint32_t count) {
        f->kind = kind;
        f->element_size = 1;
        f->count = count;
}

static void set_dynamic(PlanField *f, const Declaration *d, bool is_signed) {
        uint32_t element = is_pointer(d->type) ? (uint32_t)sizeof(void *) : element_size(d->type);

        f->place = d->place;
        if (is_text(d->type)) {
                set_bytes(f, FIELD_TEXT, 0);
        } else if (is_aggregate(d->type) || element == 0) {
                set_bytes(f, FIELD_BYTES, 0);
        } else {
                f->kind = number_kind(d->type, is_signed);
                f->element_size = element;
                f->count = 0;
                f->hex = is_cpumask(d->type);
        }
}

static void set_fixed(PlanField *f, const Declaration *d, uint32_t size, bool is_signed) {
        uint32_t element = size;

        if (d->array)
                element = d->n > 0 && size % d->n == 0 ? size / d->n : element_size(d->type);
        if (d->array && is_text(d->type)) {
                set_bytes(f, FIELD_TEXT, size);
        } else if (is_aggregate(d->type) || !is_number_size(element) || size % element != 0) {
                set_bytes(f, FIELD_BYTES, size);
        } else {
                f->kind = number_kind(d->type, is_signed);
                f->element_size = element;
                f->count = size / element;
        }
}

static int refuse_text(const char *group, const char *text, size_t length, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-format",
                      "the kernel's format of an event in group %s can not be parsed: it begins \"%.*s\"; the event "
                      "can not be decoded on this kernel", group, length < 60 ? (int)length : 60, text);
}

static int add_field(Plan *p, const FormatField *t, Explanation *e) {
        _cleanup_(declaration_deinit) Declaration d = { .text = NULL };
        uint64_t end = (uint64_t)t->offset + t->size;
        PlanField *f;
        int code;

        code = declaration_init(&d, t->declaration);
        if (code > 0)
                return refuse_text(p->group, t->declaration.at, (size_t)(t->declaration.end - t->declaration.at), e);
        if (code < 0)
                return code;
        if (end > FORMAT_MAX_SIZE || (d.place != PLACE_FIXED && t->size != sizeof(uint32_t)))
                return refuse(e, REFUSED_INVALID, "bad-format",
                              "the kernel's format of %s:%s puts field %s at offset %u with size %u, where no record "
                              "has it; the event can not be decoded on this kernel", p->group, p->name, d.name,
                              t->offset, t->size);
        if (t->size == 0 || strncmp(d.name, "common_", strlen("common_")) == 0)
                return 0; /* "char buf[]" has no size in ftrace's own events only */
        f = plan_add_field(p, d.name, d.text);
        if (!f)
                return -ENOMEM;
        f->offset = t->offset;
        if (d.place != PLACE_FIXED)
                set_dynamic(f, &d, t->is_signed);
        else
                set_fixed(f, &d, t->size, t->is_signed);
        if (end > p->min_size)
                p->min_size = (uint32_t)end;
        return 0;
}

int format_parse(const char *group, const char *text, size_t length, Plan **ret, Explanation *e) {
        _cleanup_(plan_unrefp) Plan *p = NULL;
        _cleanup_free_ char *name = NULL;
        FormatField field;
        FormatText t;
        int code;

        thread_assert(THREAD_MAIN);
        if (format_text_init(&t, text, length) != 0)
                return refuse_text(group, text, length, e);
        name = strndup(t.name.at, (size_t)(t.name.end - t.name.at));
        p = name ? plan_new(t.id, group, name) : NULL;
        if (!p)
                return -ENOMEM;
        while ((code = format_text_next(&t, &field)) == 0) {
                code = add_field(p, &field, e);
                if (code != 0)
                        return code;
        }
        if (code != FORMAT_E_END)
                return refuse_text(group, text, length, e);
        code = format_add_names(p, t.print);
        if (code < 0)
                return code;
        *ret = TAKE_PTR(p);
        return 0;
}
