/*
 * libtraceevent reads the fields: names, types, places, sizes, signs. What a field is, is decided from these here,
 * because libtraceevent calls every array of small elements a string and leaves some element sizes at zero. Only texts
 * that passed a check get there, and without their print formats: tracefs/format-text.c and tracefs/format-names.c say why.
 *
 * A handle is made for each format: that costs less than 1 us, and one that lives on would keep every event that was
 * ever looked at.
 */
#include "daemon/kernel/tracefs/format.h"

#include <event-parse.h>
#include <string.h>

#include "daemon/kernel/tracefs/format-names.h"
#include "daemon/kernel/tracefs/format-text.h"

DEFINE_CLEANUP(struct tep_handle *, tep_free)

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
static bool is_text(const struct tep_format_field *t, const char *type) {
        return has_word(type, "char") && !has_word(type, "unsigned") && !(t->flags & TEP_FIELD_IS_POINTER);
}

static bool is_cpumask(const char *type) {
        return has_word(type, "cpumask_t");
}

static bool is_pointer(const struct tep_format_field *t) {
        return (t->flags & TEP_FIELD_IS_POINTER) && !is_cpumask(t->type);
}

static bool is_aggregate(const struct tep_format_field *t, const char *type) {
        return (has_word(type, "struct") || has_word(type, "union")) && !(t->flags & TEP_FIELD_IS_POINTER);
}

static FieldKind number_kind(const struct tep_format_field *t, const char *type) {
        if (is_pointer(t))
                return FIELD_POINTER;
        if (has_word(type, "bool") || has_word(type, "_Bool"))
                return FIELD_BOOL;
        return t->flags & TEP_FIELD_IS_SIGNED ? FIELD_SIGNED : FIELD_UNSIGNED;
}

static void set_bytes(PlanField *f, FieldKind kind, uint32_t count) {
        f->kind = kind;
        f->element_size = 1;
        f->count = count;
}

static void set_dynamic(PlanField *f, const struct tep_format_field *t, const char *type) {
        uint32_t element = is_pointer(t) ? (uint32_t)sizeof(void *) : element_size(type);

        f->place = t->flags & TEP_FIELD_IS_RELATIVE ? PLACE_REL_LOC : PLACE_DATA_LOC;
        if (is_text(t, type)) {
                set_bytes(f, FIELD_TEXT, 0);
        } else if (is_aggregate(t, type) || element == 0) {
                set_bytes(f, FIELD_BYTES, 0);
        } else {
                f->kind = number_kind(t, type);
                f->element_size = element;
                f->count = 0;
                f->hex = is_cpumask(type);
        }
}

/* 0: not known. Of an expression, "[6 * 2]" on old kernels, libtraceevent takes the last number. */
static uint32_t array_length(const struct tep_format_field *t) {
        const char *bracket = strchr(t->type, '[');

        return bracket && bracket[1 + strspn(bracket + 1, "0123456789")] == ']' ? t->arraylen : 0;
}

static void set_fixed(PlanField *f, const struct tep_format_field *t, const char *type) {
        bool array = t->flags & TEP_FIELD_IS_ARRAY;
        uint32_t size = (uint32_t)t->size, element = size, n = array_length(t);

        if (array)
                element = n > 0 && size % n == 0 ? size / n : element_size(type);
        if (array && is_text(t, type)) {
                set_bytes(f, FIELD_TEXT, size);
        } else if (is_aggregate(t, type) || !is_number_size(element) || size % element != 0) {
                set_bytes(f, FIELD_BYTES, size);
        } else {
                f->kind = number_kind(t, type);
                f->element_size = element;
                f->count = size / element;
        }
}

/*
 * Arguments of system calls are 8 bytes each, of which the format says "signed:0" whatever their type is: an int is the lower half
 * of its register, and what is in the upper one is left from before, so that -100 would be 0xffffff9c.
 */
static void narrow_argument(PlanField *f, const struct tep_format_field *t, const char *type) {
        static const char *const ints[] = { "int", "s32", "__s32", "pid_t", "key_t", "clockid_t", "timer_t", "mqd_t", "key_serial_t" };
        static const char *const longs[] = { "long", "off_t", "loff_t", "ssize_t" };

        if (f->kind != FIELD_UNSIGNED || f->element_size != 8 || f->count != 1 || (t->flags & TEP_FIELD_IS_ARRAY) ||
            has_word(type, "unsigned"))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(longs); i++)
                if (has_word(type, longs[i])) {
                        f->kind = FIELD_SIGNED;
                        return;
                }
        for (size_t i = 0; i < ARRAY_SIZE(ints); i++)
                if (has_word(type, ints[i])) {
                        f->kind = FIELD_SIGNED;
                        f->element_size = 4;
                        f->is_narrowed = true;
                        f->offset += __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
                        return;
                }
}

static int refuse_text(const char *group, Span s, Explanation *e) {
        int n = 0;

        while (s.at + n < s.end && n < 60 && isprint((unsigned char)s.at[n]))
                n++;
        return refuse(e, REFUSED_INVALID, "bad-format",
                      "the kernel's format of an event in group %s cannot be parsed: it begins \"%.*s\"; the event "
                      "cannot be decoded on this kernel", group, n, s.at);
}

static int add_field(Plan *p, const struct tep_format_field *t, Span declaration, Explanation *e) {
        _cleanup_free_ char *declared = NULL, *type = NULL;
        int64_t end = (int64_t)t->offset + t->size;
        bool dynamic = t->flags & TEP_FIELD_IS_DYNAMIC;
        PlanField *f;

        if (!format_is_word(*t->name)) /* "int *" */
                return refuse_text(p->group, declaration, e);
        if (t->offset < 0 || t->size < 0 || end > (int64_t)FORMAT_MAX_SIZE || (dynamic && t->size != sizeof(uint32_t)))
                return refuse(e, REFUSED_INVALID, "bad-format",
                              "the kernel's format of %s:%s puts field %s at offset %d with size %d, outside of any record; the "
                              "event cannot be decoded on this kernel", p->group, p->name, t->name,
                              t->offset, t->size);
        if (t->size == 0)
                return 0; /* "char buf[]" has no size in ftrace's own events only */
        declared = strndup(declaration.at, (size_t)(declaration.end - declaration.at));
        type = strndup(t->type, strcspn(t->type, "[")); /* it is "char[16]" there */
        f = declared && type ? plan_add_field(p, t->name, declared) : NULL;
        if (!f)
                return error_origin(-ENOMEM);
        f->offset = (uint32_t)t->offset;
        if (dynamic)
                set_dynamic(f, t, type);
        else
                set_fixed(f, t, type);
        if (!dynamic && strcmp(p->group, "syscalls") == 0)
                narrow_argument(f, t, type);
        if (end > p->min_size)
                p->min_size = (uint32_t)end;
        return 0;
}

/* Of a system call: a size, a file descriptor or -ENOENT, which the kernel's format shows as 0xfffffffffffffffe. */
static void show_result(Plan *p) {
        for (size_t i = 0; i < p->n_fields; i++)
                if (strcmp(p->group, "syscalls") == 0 && strcmp(p->fields[i].name, "ret") == 0 && p->fields[i].kind == FIELD_SIGNED)
                        p->fields[i].hex = false;
}

/* Where the kernel's own number of the thread is. */
static uint32_t find_common_pid(const struct tep_event *event) {
        for (const struct tep_format_field *f = event->format.common_fields; f; f = f->next)
                if (strcmp(f->name, "common_pid") == 0 && f->offset > 0 && f->offset < (int)FORMAT_MAX_SIZE &&
                    f->size == sizeof(uint32_t))
                        return (uint32_t)f->offset;
        return 0;
}

/* Fields and their declarations go side by side, after the common ones. */
static int add_fields(Plan *p, const struct tep_event *event, const char *head, Explanation *e) {
        Span declaration;
        int code = 0;

        for (int i = 0; i < event->format.nr_common; i++)
                (void)format_text_next(&head, &declaration);
        for (const struct tep_format_field *f = event->format.fields; f && code == 0; f = f->next)
                code = format_text_next(&head, &declaration) ? add_field(p, f, declaration, e) : 0;
        return code;
}

/* trace_syscalls.c prints what no format of its events says, "fd: 3" for "fd: 0x%08lx". */
static bool is_used(const char *group) {
        return strcmp(group, "syscalls") != 0;
}

/* Strings of the protocol are; formats are ASCII but for an error. */
static bool is_ascii(Span s) {
        for (const char *at = s.at; at < s.end; at++)
                if (!isprint((unsigned char)*at) && *at != '\t' && *at != '\n')
                        return false;
        return true;
}

int format_parse(const char *group, const char *text, size_t length, Plan **ret, Explanation *e) {
        _cleanup_(format_text_deinit) FormatText t = FORMAT_TEXT_NULL;
        _cleanup_(tep_freep) struct tep_handle *tep = NULL;
        _cleanup_(plan_unrefp) Plan *p = NULL;
        struct tep_event *event = NULL;
        int code;

        code = format_text_init(&t, text, length);
        if (code != 0)
                return code < 0 ? code : refuse_text(group, t.refused, e);
        tep = tep_alloc();
        if (!tep)
                return error_origin(-ENOMEM);
        tep_set_loglevel(TEP_LOG_NONE); /* of the whole library: what it has to say is in its result */
        (void)tep_parse_format(tep, &event, t.head, strlen(t.head), group); /* 0 even for what it could not read */
        if (!event || (event->flags & TEP_EVENT_FL_FAILED))
                return refuse_text(group, t.refused, e);
        p = plan_new((uint32_t)event->id, group, event->name);
        if (!p)
                return error_origin(-ENOMEM);
        p->common_pid = find_common_pid(event);
        code = add_fields(p, event, t.head, e);
        if (code != 0)
                return code;
        p->has_faults = plan_find(p, "__probe_ip") || plan_find(p, "__probe_func");
        code = format_add_names(p, t.print);
        show_result(p);
        if (code == 0 && is_used(group) && is_ascii(t.print))
                code = plan_set_print(p, t.print.at, (size_t)(t.print.end - t.print.at));
        if (code < 0)
                return code;
        *ret = TAKE_PTR(p);
        return 0;
}
