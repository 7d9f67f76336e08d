/*
 * libtraceevent parses the text; what a field is, is decided here, from its declared type and the kernel's own size and
 * sign, because libtraceevent calls every array of small elements a string and leaves some element sizes at zero.
 * Names of values come from the print format's expression tree. Where a print format holds C that libtraceevent can not
 * parse (statements, helper functions), the fields are still right, and each __print_symbolic() and __print_flags() is
 * cut out and parsed alone, so that the names are not lost with the rest.
 */
#include "daemon/kernel/format.h"

#include <event-parse.h>
#include <event-utils.h>
#include <string.h>

#include "daemon/base/thread.h"
#include "daemon/kernel/format-names.h"
#include "daemon/kernel/format-text.h"

/* One parse: the handle owns the event. */
typedef struct Format {
        struct tep_handle *tep;
        struct tep_event *event;
} Format;

#define FORMAT_NULL ((Format){ .tep = NULL })

static void format_deinit(Format *f) {
        if (f->tep)
                tep_free(f->tep);
        *f = FORMAT_NULL;
}

/* -ENOMEM, or 0 with .event NULL if even the fields can not be parsed. */
static int format_init(Format *f, const char *group, const char *text, size_t length) {
        *f = (Format){ .tep = tep_alloc() };
        if (!f->tep)
                return -ENOMEM;
        tep_set_loglevel(TEP_LOG_NONE); /* of the whole library: what it has to say is in its result */
        tep_set_long_size(f->tep, sizeof(long));
        (void)tep_parse_format(f->tep, &f->event, text, length, group); /* a bad print format is a flag of the event */
        return 0;
}

/* `type` has `word` as a whole word */
static bool has_word(const char *type, const char *word) {
        size_t n = strlen(word);

        for (const char *at = type; (at = strstr(at, word)); at += n)
                if ((at == type || !format_text_is_word(at[-1])) && !format_text_is_word(at[n]))
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
        for (size_t i = 0; i < sizeof(element_types) / sizeof(element_types[0]); i++)
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

static FieldKind number_kind(const struct tep_format_field *t) {
        if (strchr(t->type, '*') && !has_word(t->type, "cpumask_t"))
                return FIELD_POINTER;
        if (has_word(t->type, "bool") || has_word(t->type, "_Bool"))
                return FIELD_BOOL;
        return t->flags & TEP_FIELD_IS_SIGNED ? FIELD_SIGNED : FIELD_UNSIGNED;
}

static bool is_aggregate(const char *type) {
        return (has_word(type, "struct") || has_word(type, "union")) && !strchr(type, '*');
}

static void set_bytes(PlanField *f, uint32_t count) {
        f->kind = FIELD_BYTES;
        f->element_size = 1;
        f->count = count;
}

static void set_dynamic(PlanField *f, const struct tep_format_field *t) {
        f->place = strstr(t->type, "__rel_loc") ? PLACE_REL_LOC : PLACE_DATA_LOC;
        f->count = 0;
        f->element_size = strchr(t->type, '*') && !has_word(t->type, "cpumask_t") ? sizeof(void *)
                                                                                  : element_size(t->type);
        if (is_text(t->type))
                f->kind = FIELD_TEXT;
        else if (is_aggregate(t->type) || f->element_size == 0)
                set_bytes(f, 0);
        else
                f->kind = number_kind(t);
        f->hex = has_word(t->type, "cpumask_t");
        if (f->kind == FIELD_TEXT)
                f->element_size = 1;
}

static void set_fixed(PlanField *f, const struct tep_format_field *t) {
        uint32_t size = (uint32_t)t->size, element = size;

        if (t->flags & TEP_FIELD_IS_ARRAY)
                element = t->arraylen > 0 && size % t->arraylen == 0 ? size / t->arraylen : element_size(t->type);
        if (is_text(t->type) && (t->flags & TEP_FIELD_IS_ARRAY)) {
                f->kind = FIELD_TEXT;
                f->count = size;
        } else if (is_aggregate(t->type) || !is_number_size(element) || size % element != 0) {
                set_bytes(f, size);
        } else {
                f->kind = number_kind(t);
                f->element_size = element;
                f->count = size / element;
        }
}

/* The declaration as it stood in the text: libtraceevent moved the name out of "unsigned long args[6]". */
static char *declaration(const struct tep_format_field *t) {
        bool dynamic = t->flags & TEP_FIELD_IS_DYNAMIC;
        const char *bracket = dynamic ? NULL : strchr(t->type, '[');
        int length = bracket ? (int)(bracket - t->type) : (int)strlen(t->type);
        char *text;

        if (asprintf(&text, "%.*s %s%s", length, t->type, t->name, bracket ? bracket : "") < 0)
                return NULL;
        return text;
}

static int add_field(Plan *p, const struct tep_format_field *t, Explanation *e) {
        bool dynamic = t->flags & TEP_FIELD_IS_DYNAMIC;
        int64_t end = (int64_t)t->offset + t->size;
        _cleanup_free_ char *type = NULL;
        PlanField *f;

        if (t->offset < 0 || t->size < 0 || end > (int64_t)FORMAT_MAX_SIZE || (dynamic && t->size != sizeof(uint32_t)))
                return refuse(e, REFUSED_INVALID, "bad-format",
                              "the kernel's format of %s:%s puts field %s at offset %d with size %d, where no record "
                              "has it; the event can not be decoded on this kernel", p->group, p->name, t->name,
                              t->offset, t->size);
        if (t->size == 0) /* "char buf[]" without a place of its own: only in ftrace's own events */
                return 0;
        type = declaration(t);
        f = type ? plan_add_field(p, t->name, type) : NULL;
        if (!f)
                return -ENOMEM;
        f->offset = (uint32_t)t->offset;
        if (dynamic)
                set_dynamic(f, t);
        else
                set_fixed(f, t);
        if (end > p->min_size)
                p->min_size = (uint32_t)end;
        return 0;
}

/* The same fields with a print format of only this call. */
static int add_call_names(Plan *p, const char *text, size_t head, const char *call, size_t length) {
        _cleanup_(format_deinit) Format f = FORMAT_NULL;
        _cleanup_free_ char *alone = NULL;
        int size, error;

        size = asprintf(&alone, "%.*sprint fmt: \"%%s\", %.*s\n", (int)head, text, (int)length, call);
        if (size < 0)
                return -ENOMEM;
        error = format_init(&f, p->group, alone, (size_t)size);
        if (error < 0)
                return error;
        if (!f.event || (f.event->flags & TEP_EVENT_FL_FAILED))
                return 0; /* then these names can not be known, and numbers stay numbers */
        return format_add_names(p, f.event);
}

static int add_names_singly(Plan *p, const char *text, size_t length) {
        static const char *const calls[] = { "__print_symbolic(", "__print_flags(" };
        const char *end = text + length, *print = memmem(text, length, "print fmt:", strlen("print fmt:"));

        for (size_t i = 0; print && i < sizeof(calls) / sizeof(calls[0]); i++) {
                const char *at = print;

                while ((at = memmem(at, (size_t)(end - at), calls[i], strlen(calls[i])))) {
                        const char *behind = format_text_call_end(at, end);
                        int error;

                        if (!behind)
                                break;
                        error = add_call_names(p, text, (size_t)(print - text), at, (size_t)(behind - at));
                        if (error < 0)
                                return error;
                        at = behind;
                }
        }
        return 0;
}

static int refuse_text(const char *group, const char *text, size_t length, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-format",
                      "the kernel's format of an event in group %s can not be parsed: it begins \"%.*s\"; the event can "
                      "not be decoded on this kernel", group, length < 60 ? (int)length : 60, text);
}

int format_parse(const char *group, const char *text, size_t length, Plan **ret, Explanation *e) {
        _cleanup_(format_deinit) Format f = FORMAT_NULL;
        _cleanup_(plan_unrefp) Plan *p = NULL;
        int n_fields, code;

        thread_assert(THREAD_MAIN);
        if (!format_text_check(text, length, &n_fields))
                return refuse_text(group, text, length, e);
        code = format_init(&f, group, text, length);
        if (code < 0)
                return code;
        if (!f.event || f.event->id < 0 || f.event->format.nr_common + f.event->format.nr_fields != n_fields)
                return refuse_text(group, text, length, e);
        p = plan_new((uint32_t)f.event->id, group, f.event->name);
        if (!p)
                return -ENOMEM;
        for (const struct tep_format_field *t = f.event->format.fields; t; t = t->next) {
                code = add_field(p, t, e);
                if (code != 0)
                        return code;
        }
        code = f.event->flags & TEP_EVENT_FL_FAILED ? add_names_singly(p, text, length) : format_add_names(p, f.event);
        if (code < 0)
                return code;
        *ret = TAKE_PTR(p);
        return 0;
}
