/* Entries are found once, when the section is read, and each is run up to the address that is asked for. DWARF 5, 6.4; LSB for .eh_frame. */
#include "client/symbols/call-frames.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "client/recording/bytes.h"

#define STATES_MAX 8     /* that are remembered: compilers remember one */
#define WORDS_MAX 100000 /* instructions of one entry */

/* What the entries of some functions have in common. */
typedef struct Common {
        uint64_t code_align;
        int64_t data_align;
        uint64_t return_register;
        uint8_t encoding;
        bool has_length, is_signal; /* of what it is augmented by */
        Bytes words;
} Common;

typedef struct Entry {
        Common common;
        uint64_t start, length;
        Bytes words;
} Entry;

typedef struct Run {
        const FrameSection *section;
        const Entry *entry;
        FrameRules *rules, begun; /* begun: what the common part says */
        FrameRules states[STATES_MAX];
        size_t n_states;
        uint64_t at, until;
} Run;

static uint8_t take_u8(Bytes *b) {
        const uint8_t *from = bytes_take(b, 1);

        return from ? *from : 0;
}

/* LEB128; bits: that were there. Gives the last byte. */
static uint8_t take_leb(Bytes *b, uint64_t *ret, unsigned *bits) {
        uint8_t byte;

        *ret = 0;
        *bits = 0;
        do {
                byte = take_u8(b);
                if (*bits < 64)
                        *ret |= (uint64_t)(byte & 0x7f) << *bits;
                *bits += 7;
        } while (byte & 0x80);
        return byte;
}

static uint64_t take_uleb(Bytes *b) {
        uint64_t v;
        unsigned bits;

        (void)take_leb(b, &v, &bits);
        return v;
}

static int64_t take_sleb(Bytes *b) {
        uint64_t v;
        unsigned shift;
        uint8_t byte = take_leb(b, &v, &shift);

        if (shift < 64 && (byte & 0x40))
                v |= ~UINT64_C(0) << shift;
        return (int64_t)v;
}

static Bytes bytes_from(const FrameSection *f, uint64_t at, uint64_t n) {
        Bytes b = { .at = f->bytes, .end = f->bytes + f->n };

        if (!bytes_take(&b, at) || n > bytes_left(&b))
                bytes_fail(&b, "is behind the end of the section");
        else
                b.end = b.at + n;
        return b;
}

/* DW_EH_PE_*: relative to where it stands, or to nothing; others are of other machines. */
static uint64_t take_pointer(Bytes *b, const FrameSection *f, uint8_t encoding) {
        const uint64_t here = f->address + b->offset;
        uint64_t v = 0;

        switch (encoding & 0x0f) {
        case DW_EH_PE_absptr:
        case DW_EH_PE_udata8:
        case DW_EH_PE_sdata8:
                v = bytes_u64(b);
                break;
        case DW_EH_PE_uleb128:
                v = take_uleb(b);
                break;
        case DW_EH_PE_sleb128:
                v = (uint64_t)take_sleb(b);
                break;
        case DW_EH_PE_udata2:
                v = bytes_u16(b);
                break;
        case DW_EH_PE_sdata2:
                v = (uint64_t)(int16_t)bytes_u16(b);
                break;
        case DW_EH_PE_udata4:
                v = bytes_u32(b);
                break;
        case DW_EH_PE_sdata4:
                v = (uint64_t)(int32_t)bytes_u32(b);
                break;
        default:
                bytes_fail(b, "is no encoding of a pointer");
        }
        if ((encoding & 0xf0) == DW_EH_PE_pcrel)
                v += here;
        else if (encoding & 0xf0)
                bytes_fail(b, "is no encoding of an address");
        return v;
}

/* ---- entries -------------------------------------------------------------------------------------------------------------------- */

/* Its bytes behind its length, up to the next. False: there is none. */
static bool take_unit(const FrameSection *f, uint64_t at, Bytes *ret, bool *ret_is_long) {
        Bytes b = bytes_from(f, at, at <= f->n ? f->n - at : 0);
        uint64_t length = bytes_u32(&b);

        *ret_is_long = length == UINT32_MAX;
        if (*ret_is_long)
                length = bytes_u64(&b);
        if (b.failed || length > bytes_left(&b))
                return false;
        b.end = b.at + length;
        *ret = b;
        return true;
}

static void read_augmentation(Bytes *b, const FrameSection *f, const char *text, Common *c) {
        Bytes more;
        uint64_t length;

        if (*text == '\0')
                return;
        if (*text++ != 'z') {
                bytes_fail(b, "is of an old compiler");
                return;
        }
        c->has_length = true;
        length = take_uleb(b);
        more = *b;
        if (bytes_take(b, length))
                more.end = b->at;
        for (; *text; text++)
                if (*text == 'R')
                        c->encoding = take_u8(&more);
                else if (*text == 'L')
                        (void)take_u8(&more);
                else if (*text == 'P') {
                        const uint8_t encoding = take_u8(&more);

                        (void)take_pointer(&more, f, encoding & 0x0f);
                } else if (*text == 'S')
                        c->is_signal = true;
                else if (*text != 'B' && *text != 'G') /* of arm64: pointers are signed, memory is tagged */
                        break;
        if (more.failed)
                bytes_fail(b, more.failed);
}

static bool read_common(const FrameSection *f, uint64_t at, Common *c) {
        bool is_long;
        const char *text;
        uint8_t version;
        Bytes b;

        if (!take_unit(f, at, &b, &is_long))
                return false;
        if (is_long && f->is_debug ? bytes_u64(&b) != UINT64_MAX : bytes_u32(&b) != (f->is_debug ? UINT32_MAX : 0))
                return false;
        version = take_u8(&b);
        text = (const char *)b.at;
        if (!bytes_take(&b, strnlen(text, bytes_left(&b)) + 1) || (version != 1 && version != 3 && version != 4))
                return false;
        if (version == 4 && (take_u8(&b) != 8 || take_u8(&b) != 0)) /* bytes of an address, of a segment */
                return false;
        *c = (Common){ .code_align = take_uleb(&b) };
        c->data_align = take_sleb(&b);
        c->return_register = version == 1 ? take_u8(&b) : take_uleb(&b);
        read_augmentation(&b, f, text, c);
        c->words = b;
        return !b.failed && c->return_register < FRAME_REGISTERS;
}

/* False: it is none, or is damaged. */
static bool read_entry(const FrameSection *f, uint64_t at, Entry *e) {
        bool is_long;
        uint64_t where, id;
        Bytes b;

        if (!take_unit(f, at, &b, &is_long))
                return false;
        where = b.offset;
        id = is_long && f->is_debug ? bytes_u64(&b) : bytes_u32(&b);
        if (b.failed || (f->is_debug ? id == (is_long ? UINT64_MAX : UINT32_MAX) : id == 0 || id > where))
                return false;
        if (!read_common(f, f->is_debug ? id : where - id, &e->common))
                return false;
        e->start = take_pointer(&b, f, e->common.encoding);
        e->length = take_pointer(&b, f, e->common.encoding & 0x0f);
        if (e->common.has_length)
                (void)bytes_take(&b, take_uleb(&b));
        e->words = b;
        return !b.failed && e->length > 0 && e->length <= UINT64_MAX - e->start;
}

static int by_address(const void *a, const void *b) {
        const FrameEntry *x = a, *y = b;

        return x->start != y->start ? (x->start < y->start ? -1 : 1) : (x->at > y->at) - (x->at < y->at);
}

static int add_entry(FrameSection *f, uint64_t at, const Entry *e) {
        if (f->n_entries == f->room) {
                const size_t room = f->room ? 2 * f->room : 64;
                FrameEntry *more = reallocarray(f->entries, room, sizeof(*more));

                if (!more)
                        return -ENOMEM;
                f->entries = more;
                f->room = room;
        }
        f->entries[f->n_entries++] = (FrameEntry){ .start = e->start, .length = e->length, .at = (uint32_t)at };
        return 0;
}

int frame_section_init(FrameSection *f, uint8_t *bytes, size_t n, uint64_t address, bool is_debug) {
        Bytes unit;
        bool is_long;
        Entry e;
        int r = 0;

        *f = (FrameSection){ .bytes = bytes, .n = n < UINT32_MAX ? n : UINT32_MAX, .address = address, .is_debug = is_debug };
        for (uint64_t at = 0; r == 0 && at < f->n && take_unit(f, at, &unit, &is_long); at = (uint64_t)(unit.end - f->bytes))
                if (read_entry(f, at, &e))
                        r = add_entry(f, at, &e);
        if (f->n_entries > 0)
                qsort(f->entries, f->n_entries, sizeof(*f->entries), by_address);
        return r;
}

void frame_section_deinit(FrameSection *f) {
        free(f->bytes);
        free(f->entries);
        *f = (FrameSection){ .n = 0 };
}

size_t frame_section_bytes(const FrameSection *f) {
        return f->n + f->room * sizeof(*f->entries);
}

/* ---- instructions --------------------------------------------------------------------------------------------------------------- */

/* Others are vectors, in which nothing is that matters here. */
static void set(Run *r, uint64_t number, RuleKind kind, int64_t value) {
        if (number < FRAME_REGISTERS)
                r->rules->registers[number] = (Rule){ .kind = kind, .number = value };
}

static int64_t scaled(const Run *r, uint64_t n) {
        return (int64_t)(n * (uint64_t)r->entry->common.data_align);
}

static void set_cfa(Run *r, Bytes *b, uint64_t number, int64_t offset) {
        if (number >= FRAME_REGISTERS)
                bytes_fail(b, "is no register that is known");
        r->rules->cfa = (Rule){ .kind = RULE_REGISTER, .number = (int64_t)number };
        r->rules->cfa_offset = offset;
}

static Rule take_expression(Bytes *b, RuleKind kind) {
        const uint64_t n = take_uleb(b);
        const Rule rule = { .kind = kind, .number = (int64_t)b->offset, .length = (uint32_t)n };

        return bytes_take(b, n) ? rule : (Rule){ .kind = RULE_UNDEFINED };
}

static void restore(Run *r, uint64_t number) {
        if (number < FRAME_REGISTERS)
                r->rules->registers[number] = r->begun.registers[number];
}

static void advance(Run *r, uint64_t units) {
        const uint64_t by = units * r->entry->common.code_align;

        r->at = by > UINT64_MAX - r->at ? UINT64_MAX : r->at + by;
}

static void remember(Run *r, Bytes *b, bool is_back) {
        if (is_back ? r->n_states == 0 : r->n_states == STATES_MAX)
                bytes_fail(b, "remembers more than any compiler does");
        else if (is_back)
                *r->rules = r->states[--r->n_states];
        else
                r->states[r->n_states++] = *r->rules;
}

static void run_cfa(Run *r, Bytes *b, uint8_t word) {
        uint64_t number;

        switch (word) {
        case DW_CFA_def_cfa:
                number = take_uleb(b);
                set_cfa(r, b, number, (int64_t)take_uleb(b));
                return;
        case DW_CFA_def_cfa_sf:
                number = take_uleb(b);
                set_cfa(r, b, number, scaled(r, (uint64_t)take_sleb(b)));
                return;
        case DW_CFA_def_cfa_register:
                set_cfa(r, b, take_uleb(b), r->rules->cfa_offset);
                return;
        case DW_CFA_def_cfa_offset:
                r->rules->cfa_offset = (int64_t)take_uleb(b);
                return;
        case DW_CFA_def_cfa_offset_sf:
                r->rules->cfa_offset = scaled(r, (uint64_t)take_sleb(b));
                return;
        case DW_CFA_def_cfa_expression:
                r->rules->cfa = take_expression(b, RULE_VALUE_EXPRESSION);
                return;
        default:
                bytes_fail(b, "is no instruction that is known");
        }
}

static void run_register(Run *r, Bytes *b, uint8_t word) {
        const uint64_t number = take_uleb(b);
        Rule rule;

        switch (word) {
        case DW_CFA_offset_extended:
                set(r, number, RULE_AT_CFA, scaled(r, take_uleb(b)));
                return;
        case DW_CFA_offset_extended_sf:
                set(r, number, RULE_AT_CFA, scaled(r, (uint64_t)take_sleb(b)));
                return;
        case DW_CFA_GNU_negative_offset_extended:
                set(r, number, RULE_AT_CFA, -scaled(r, take_uleb(b)));
                return;
        case DW_CFA_val_offset:
                set(r, number, RULE_CFA, scaled(r, take_uleb(b)));
                return;
        case DW_CFA_val_offset_sf:
                set(r, number, RULE_CFA, scaled(r, (uint64_t)take_sleb(b)));
                return;
        case DW_CFA_restore_extended:
                restore(r, number);
                return;
        case DW_CFA_undefined:
                set(r, number, RULE_UNDEFINED, 0);
                return;
        case DW_CFA_same_value:
                set(r, number, RULE_SAME, 0);
                return;
        case DW_CFA_register:
                set(r, number, RULE_REGISTER, (int64_t)take_uleb(b));
                return;
        default:
                rule = take_expression(b, word == DW_CFA_expression ? RULE_EXPRESSION : RULE_VALUE_EXPRESSION);
                if (number < FRAME_REGISTERS)
                        r->rules->registers[number] = rule;
        }
}

static void run_word(Run *r, Bytes *b, uint8_t word) {
        switch (word) {
        case DW_CFA_nop:
        case DW_CFA_GNU_window_save: /* of arm64: the return address is signed from here on */
                return;
        case DW_CFA_set_loc:
                r->at = take_pointer(b, r->section, r->entry->common.encoding);
                return;
        case DW_CFA_advance_loc1:
                advance(r, take_u8(b));
                return;
        case DW_CFA_advance_loc2:
                advance(r, bytes_u16(b));
                return;
        case DW_CFA_advance_loc4:
                advance(r, bytes_u32(b));
                return;
        case DW_CFA_remember_state:
        case DW_CFA_restore_state:
                remember(r, b, word == DW_CFA_restore_state);
                return;
        case DW_CFA_GNU_args_size:
                (void)take_uleb(b);
                return;
        case DW_CFA_offset_extended:
        case DW_CFA_offset_extended_sf:
        case DW_CFA_GNU_negative_offset_extended:
        case DW_CFA_val_offset:
        case DW_CFA_val_offset_sf:
        case DW_CFA_restore_extended:
        case DW_CFA_undefined:
        case DW_CFA_same_value:
        case DW_CFA_register:
        case DW_CFA_expression:
        case DW_CFA_val_expression:
                run_register(r, b, word);
                return;
        default:
                run_cfa(r, b, word);
        }
}

/* Until the first address behind the one that is asked for. */
static bool run(Run *r, Bytes b) {
        for (int i = 0; i < WORDS_MAX && bytes_left(&b) > 0; i++) {
                const uint8_t word = take_u8(&b), low = word & 0x3f;

                switch (word & 0xc0) {
                case DW_CFA_advance_loc:
                        advance(r, low);
                        break;
                case DW_CFA_offset:
                        set(r, low, RULE_AT_CFA, scaled(r, take_uleb(&b)));
                        break;
                case DW_CFA_restore:
                        restore(r, low);
                        break;
                default:
                        run_word(r, &b, word);
                }
                if (r->at > r->until)
                        break;
        }
        return !b.failed;
}

static const FrameEntry *find_entry(const FrameSection *f, uint64_t address) {
        size_t from = 0, to = f->n_entries;

        while (from < to) {
                const size_t middle = from + (to - from) / 2;

                if (f->entries[middle].start <= address)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from > 0 && address - f->entries[from - 1].start < f->entries[from - 1].length ? f->entries + from - 1 : NULL;
}

bool frame_section_find(const FrameSection *f, uint64_t address, FrameRules *ret) {
        const FrameEntry *found = find_entry(f, address);
        Entry e;
        Run r = { .section = f, .entry = &e, .rules = ret, .until = address };

        if (!found || !read_entry(f, found->at, &e))
                return false;
        *ret = (FrameRules){ .section = f, .cfa = { .kind = RULE_UNDEFINED }, .return_register = (uint8_t)e.common.return_register,
                             .is_signal = e.common.is_signal };
        if (!run(&r, e.common.words))
                return false;
        r.begun = *ret;
        r.at = e.start;
        return run(&r, e.words) && ret->cfa.kind != RULE_UNDEFINED;
}
