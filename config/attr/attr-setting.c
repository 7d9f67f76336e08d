/*
 * The table knows where a field lies by its bit, not by its C name: bit-fields have no address, and what newer kernels
 * added inside of the struct's size can be set by a build whose header does not name it yet. The layout is ABI
 * (perf_event.h), on a little-endian machine; a test proves each row against the C name where there is one.
 */
#include "config/attr/attr-setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/attr/words.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits of struct perf_event_attr are counted from the lowest");

#define WORD_MAX 31 /* bytes of a name or word */

typedef enum AttrKind {
        ATTR_FLAG,
        ATTR_NUMBER,
        ATTR_WORDS,
} AttrKind;

struct AttrField {
        const char *name;
        AttrKind kind;
        unsigned bit, n_bits; /* from the start of the struct; never across 64 bits */
        const AttrWords *words;
        const char *help;
};

#define FLAG(name, n, help) { name, ATTR_FLAG, 40 * 8 + (n), 1, NULL, help }
#define NUMBER(name, byte, n_bits, help) { name, ATTR_NUMBER, (byte) * 8, n_bits, NULL, help }
#define WORDS(name, byte, n_bits, words, help) { name, ATTR_WORDS, (byte) * 8, n_bits, &(words), help }

static const AttrField fields[] = {
        WORDS("sample-type", 24, 64, attr_sample_words, "added to the parts of each sample that perfd needs"),
        FLAG("pinned", 2, "always on the PMU, or in error; the leader of a group only"),
        FLAG("exclusive", 3, "alone on the PMU; the leader of a group only"),
        FLAG("exclude-user", 4, "not in user space"),
        FLAG("exclude-kernel", 5, "not in the kernel"),
        FLAG("exclude-hv", 6, "not in the hypervisor"),
        FLAG("exclude-idle", 7, "not while the CPU is idle"),
        FLAG("mmap", 8, "records of executable mappings"),
        FLAG("comm", 9, "records of changed names of processes"),
        FLAG("inherit-stat", 11, "separate counts of each task, saved at a context switch"),
        FLAG("enable-on-exec", 12, "enabled by the next exec of the task"),
        FLAG("task", 13, "records of forks and exits"),
        { "precise-ip", ATTR_NUMBER, 40 * 8 + 15, 2, NULL, "how exact the ip of a sample must be" },
        FLAG("mmap-data", 17, "records of mappings that are not executable"),
        FLAG("exclude-host", 19, "not in the host of virtual machines"),
        FLAG("exclude-guest", 20, "not in guests"),
        FLAG("exclude-callchain-kernel", 21, "callchains without the kernel's part"),
        FLAG("exclude-callchain-user", 22, "callchains without user space's part"),
        FLAG("mmap2", 23, "records of mappings with the inode"),
        FLAG("comm-exec", 24, "records of names say whether an exec changed them"),
        FLAG("context-switch", 26, "records of context switches"),
        FLAG("namespaces", 28, "records of namespaces"),
        FLAG("ksymbol", 29, "records of symbols that are added to or removed from the kernel"),
        FLAG("bpf-event", 30, "records of BPF programs"),
        FLAG("aux-output", 31, "writes into the AUX area of the group's leader instead of samples"),
        FLAG("cgroup", 32, "records of new cgroups"),
        FLAG("text-poke", 33, "records of changed code of the kernel"),
        FLAG("build-id", 34, "build ids in the records of mappings, instead of inodes"),
        FLAG("inherit-thread", 35, "threads inherit, processes do not"),
        FLAG("remove-on-exec", 36, "removed from the task by an exec"),
        FLAG("sigtrap", 37, "the traced task gets SIGTRAP: this changes what it does"),
        NUMBER("wakeup-events", 48, 32, "the reader is woken after so many samples"),
        NUMBER("wakeup-watermark", 48, 32, "the reader is woken after so many bytes"),
        WORDS("bp-type", 52, 32, attr_access_words, "breakpoint: what access"),
        NUMBER("bp-addr", 56, 64, "breakpoint: address"),
        NUMBER("bp-len", 64, 64, "breakpoint: bytes"),
        NUMBER("config1", 56, 64, "second word of the PMU's configuration"),
        NUMBER("config2", 64, 64, "third word of the PMU's configuration"),
        WORDS("branch-sample-type", 72, 64, attr_branch_words, "the branches of the branch stack"),
        WORDS("sample-regs-user", 80, 64, attr_register_words, "registers of user space in each sample"),
        NUMBER("sample-stack-user", 88, 32, "bytes of the user's stack in each sample, a multiple of 8 up to 65528"),
        WORDS("sample-regs-intr", 96, 64, attr_register_words, "registers at the time of the sample"),
        NUMBER("aux-watermark", 104, 32, "bytes in the AUX area after which the reader is woken"),
        NUMBER("sample-max-stack", 108, 16, "maximum number of frames of a callchain"),
        NUMBER("aux-sample-size", 112, 32, "bytes of the AUX area in each sample"),
        { "aux-start-paused", ATTR_FLAG, 116 * 8, 1, NULL, "AUX tracing begins paused" }, /* Linux 6.13 */
        { "aux-pause", ATTR_FLAG, 116 * 8 + 1, 1, NULL, "a sample pauses AUX tracing" },
        { "aux-resume", ATTR_FLAG, 116 * 8 + 2, 1, NULL, "a sample resumes AUX tracing" },
        NUMBER("sig-data", 120, 64, "data that SIGTRAP carries to the task"),
        NUMBER("config3", 128, 64, "fourth word of the PMU's configuration"), /* Linux 6.3 */
};

/* Fields that have a place of their own, so that perfd knows what it counts and can read its own rings. */
static const struct {
        const char *name, *why;
} ours[] = {
        { "type", "the event's name says it" },
        { "size", "perfd uses the smallest that contains the fields that are set" },
        { "config", "the name of the event sets it, such as r01c2 or cpu/config=0x1c2/" },
        { "sample-period", "the key 'period' sets it" },
        { "sample-freq", "the key 'frequency' sets it" },
        { "freq", "the key 'frequency' sets it" },
        { "read-format", "counts are read with their times, losses and group; the key 'interval' sets how often" },
        { "disabled", "the key 'enabled' sets it" },
        { "inherit", "the key 'inherit' of the target sets it" },
        { "watermark", "wakeup-watermark and wakeup-events set it" },
        { "sample-id-all", "perfd needs it to tell events apart" },
        { "use-clockid", "the key 'clock' sets it" },
        { "clockid", "the key 'clock' sets it" },
        { "write-backward", "perfd's ring buffers are written forward" },
        { "defer-callchain", "perfd takes callchains at the time of the sample" },
        { "defer-output", "perfd takes callchains at the time of the sample" },
        { "kprobe-func", "the name of the event sets it: kprobe:SYMBOL" },
        { "kprobe-addr", "the name of the event sets it: kprobe:0xADDRESS" },
        { "uprobe-path", "the name of the event sets it: uprobe:PATH:SYMBOL" },
        { "probe-offset", "the name of the event sets it: kprobe:SYMBOL+OFFSET" },
};

/* A name as it stands in the table: perf_event.h's '_' is as good as '-'. */
static void word_copy(char ret[static WORD_MAX + 1], const char *text, size_t length) {
        if (length > WORD_MAX)
                length = WORD_MAX; /* longer than any word, cut it is still none */
        for (size_t i = 0; i < length; i++)
                ret[i] = text[i] == '_' ? '-' : text[i];
        ret[length] = '\0';
}

static const AttrField *field_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (strcmp(fields[i].name, name) == 0)
                        return &fields[i];
        return NULL;
}

static uint64_t field_mask(const AttrField *f) {
        return UINT64_MAX >> (64 - f->n_bits);
}

static uint64_t field_get(const AttrField *f, const struct perf_event_attr *attr) {
        uint64_t chunk = 0;

        if (f->bit / 64 * 8 < sizeof(*attr))
                memcpy(&chunk, (const char *)attr + f->bit / 64 * 8, sizeof(chunk));
        return chunk >> f->bit % 64 & field_mask(f);
}

static void field_set(const AttrField *f, struct perf_event_attr *attr, uint64_t value) {
        char *at = (char *)attr + f->bit / 64 * 8;
        uint64_t chunk;

        memcpy(&chunk, at, sizeof(chunk));
        chunk &= ~(field_mask(f) << f->bit % 64);
        chunk |= (value & field_mask(f)) << f->bit % 64;
        memcpy(at, &chunk, sizeof(chunk));
}

/* Decimal or 0x, and nothing else. */
static bool number_decode(const char *text, size_t length, uint64_t *ret) {
        uint64_t n = 0, base = length > 2 && text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10;

        for (size_t i = base == 16 ? 2 : 0; i < length; i++) {
                uint64_t digit = text[i] >= '0' && text[i] <= '9' ? (uint64_t)(text[i] - '0')
                                 : (text[i] | 32) >= 'a' && (text[i] | 32) <= 'f' ? (uint64_t)((text[i] | 32) - 'a') + 10
                                                                                  : base;

                if (digit >= base || __builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, digit, &n))
                        return false;
        }
        *ret = n;
        return length > 0;
}

static int refuse_value(const AttrField *f, const char *text, size_t offset, Explanation *e, const char *hint) {
        int r = refuse(e, REFUSED_INVALID, "bad-attr", "attr %s: found %s%s%s expected %s%s", f->name, QUOTE(text), hint,
                       *hint ? "" : ",", f->kind == ATTR_WORDS ? "a number, or words joined by | or ',' of " : "",
                       attr_field_values(f));

        if (e)
                e->position = 1 + (unsigned)offset;
        return r;
}

/* One word or number of a set of bits. */
static int bits_add(const AttrField *f, const char *text, size_t from, size_t to, uint64_t *ret, Explanation *e) {
        const AttrWords *w = f->words;
        Nearest near = NEAREST_NULL;
        char word[WORD_MAX + 1];
        uint64_t bits;

        if (number_decode(text + from, to - from, &bits)) {
                if (bits & ~(w->known & field_mask(f)))
                        return refuse_value(f, text, from, e, ", which has bits unknown to perfd,");
                *ret |= bits;
                return 0;
        }
        word_copy(word, text + from, to - from);
        for (size_t i = 0; i < w->n_words; i++) {
                if (strcmp(w->words[i].word, word) == 0) {
                        *ret |= w->words[i].bits;
                        return 0;
                }
                nearest_add(&near, word, w->words[i].word);
        }
        return refuse_value(f, text, from, e, HINT(&near));
}

static int bits_decode(const AttrField *f, const char *text, uint64_t *ret, Explanation *e) {
        for (size_t from = 0;;) {
                size_t to = from + strcspn(text + from, "|,"), end = to;
                int r;

                while (from < end && text[from] == ' ')
                        from++;
                while (end > from && text[end - 1] == ' ')
                        end--;
                r = bits_add(f, text, from, end, ret, e);
                if (r != 0 || text[to] == '\0')
                        return r;
                from = to + 1;
        }
}

static int value_decode(const AttrField *f, const char *text, uint64_t *ret, Explanation *e) {
        bool is_true = strcmp(text, "true") == 0;
        uint64_t value = 0;
        int r;

        switch (f->kind) {
        case ATTR_FLAG:
                if (!is_true && strcmp(text, "false") != 0)
                        return refuse_value(f, text, 0, e, "");
                value = is_true;
                break;
        case ATTR_NUMBER:
                if (!number_decode(text, strlen(text), &value) || value > field_mask(f))
                        return refuse_value(f, text, 0, e, "");
                break;
        case ATTR_WORDS:
                r = bits_decode(f, text, &value, e);
                if (r != 0)
                        return r;
        }
        *ret = value;
        return 0;
}

static int refuse_name(const char *name, const char *word, Explanation *e) {
        Nearest near = NEAREST_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                if (strcmp(ours[i].name, word) == 0)
                        return refuse(e, REFUSED_INVALID, "bad-attr", "attr %s cannot be set here: %s", word,
                                      ours[i].why);
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                nearest_add(&near, word, fields[i].name);
        return refuse(e, REFUSED_INVALID, "bad-attr", "attr: %s is not a field of struct perf_event_attr%s", QUOTE(name),
                      HINT(&near));
}

int attr_setting_parse(const char *name, const char *text, AttrSetting *ret, Explanation *e) {
        AttrSetting s = { .field = NULL };
        char word[WORD_MAX + 1];
        int r;

        word_copy(word, name, strlen(name));
        s.field = field_find(word);
        if (!s.field)
                return refuse_name(name, word, e);
        if (s.field->bit / 8 >= sizeof(struct perf_event_attr))
                return refuse(e, REFUSED_INVALID, "bad-attr", "attr %s: this perfd was built for older kernels, which do not "
                        "have it; use a term of the PMU, such as cpu/config3=1/", word);
        r = value_decode(s.field, text, &s.value, e);
        if (r != 0)
                return r;
        *ret = s;
        return 0;
}

const char *attr_field_name(const AttrField *f) {
        return f->name;
}

const char *attr_field_values(const AttrField *f) {
        if (f->kind == ATTR_FLAG)
                return "true or false";
        if (f->kind == ATTR_WORDS)
                return f->words->list;
        return f->n_bits == 2    ? "a number from 0 to 3"
               : f->n_bits == 16 ? "a number from 0 to 65535"
               : f->n_bits == 32 ? "a number from 0 to 4294967295"
                                 : "a number of 64 bits, decimal or 0x";
}

const char *attr_field_help(const AttrField *f) {
        return f->help;
}

const AttrField *attr_field_at(size_t i) {
        return i < ARRAY_SIZE(fields) ? &fields[i] : NULL;
}

static void bits_print(FILE *to, const AttrWords *w, uint64_t bits) {
        const char *between = "";

        for (size_t i = 0; i < w->n_words; i++) {
                if ((bits & w->words[i].bits) != w->words[i].bits)
                        continue;
                fprintf(to, "%s%s", between, w->words[i].word);
                bits &= ~w->words[i].bits;
                between = "|";
        }
        if (bits != 0 || !*between)
                fprintf(to, "%s%#llx", between, (unsigned long long)bits);
}

char *attr_setting_text(const AttrSetting *s) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        bool is_address = s->field->kind == ATTR_NUMBER && s->field->n_bits == 64;

        if (!f)
                return NULL;
        if (s->field->kind == ATTR_FLAG)
                fputs(s->value ? "true" : "false", f);
        else if (s->field->kind == ATTR_WORDS)
                bits_print(f, s->field->words, s->value);
        else
                fprintf(f, is_address ? "%#llx" : "%llu", (unsigned long long)s->value);
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

bool attr_add_user_stack(struct perf_event_attr *attr) {
        if (attr_unwinding_registers == 0)
                return false;
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = attr_unwinding_registers;
        attr->sample_stack_user = 8192;
        attr->mmap_data = 1; /* perf reads call frame information where it is mapped, which is not where code is */
        return true;
}

void attr_settings_apply(const AttrSetting *settings, size_t n, struct perf_event_attr *attr) {
        for (size_t i = 0; i < n; i++) {
                const AttrField *f = settings[i].field;
                bool adds = strcmp(f->name, "sample-type") == 0;

                field_set(f, attr, settings[i].value | (adds ? field_get(f, attr) : 0));
                if (strcmp(f->name, "wakeup-events") == 0)
                        attr->watermark = 0;
                else if (strcmp(f->name, "wakeup-watermark") == 0)
                        attr->watermark = 1;
        }
}
