/* DWARF 5, 2.5: those words that stand in call frame information. */
#include <dwarf.h>

#include "client/recording/bytes.h"
#include "client/symbols/call-frames.h"

#define STACK_MAX 64
#define STEPS_MAX 1000 /* it may go backwards */

typedef struct Machine {
        const FrameState *state;
        Bytes code;
        const uint8_t *begin;
        uint64_t stack[STACK_MAX];
        size_t n;
        bool failed;
} Machine;

bool frame_state_read(const FrameState *s, uint64_t address, size_t size, uint64_t *ret) {
        *ret = 0;
        if (address < s->stack_at || s->n_stack < size || address - s->stack_at > s->n_stack - size)
                return false;
        memcpy(ret, s->stack + (address - s->stack_at), size);
        return true;
}

static void push(Machine *m, uint64_t v) {
        if (m->n == STACK_MAX)
                m->failed = true;
        else
                m->stack[m->n++] = v;
}

/* The one that many below the top, which stays. */
static uint64_t look(Machine *m, uint64_t below) {
        if (below >= m->n) {
                m->failed = true;
                return 0;
        }
        return m->stack[m->n - 1 - below];
}

static uint64_t pop(Machine *m) {
        const uint64_t v = look(m, 0);

        m->n -= m->n > 0;
        return v;
}

static uint64_t take_leb(Bytes *b, bool is_signed) {
        uint64_t v = 0;
        unsigned shift = 0;
        uint8_t byte;

        do {
                const uint8_t *from = bytes_take(b, 1);

                byte = from ? *from : 0;
                if (shift < 64)
                        v |= (uint64_t)(byte & 0x7f) << shift;
                shift += 7;
        } while (byte & 0x80);
        return is_signed && shift < 64 && (byte & 0x40) ? v | ~UINT64_C(0) << shift : v;
}

static void read_memory(Machine *m, uint64_t size) {
        uint64_t v = 0;

        if (size == 0 || size > sizeof(v) || !frame_state_read(m->state, pop(m), size, &v))
                m->failed = true;
        push(m, v);
}

static void push_register(Machine *m, uint64_t number) {
        const uint64_t offset = take_leb(&m->code, true);

        if (number >= FRAME_REGISTERS || (m->state->known & UINT64_C(1) << number) == 0)
                m->failed = true;
        else
                push(m, m->state->registers[number] + offset);
}

static void jump(Machine *m, bool is_taken) {
        const int64_t by = (int16_t)bytes_u16(&m->code);

        if (!is_taken)
                return;
        if (by < m->begin - m->code.at || by > m->code.end - m->code.at)
                m->failed = true;
        else
                m->code.at += by;
}

static void push_constant(Machine *m, uint8_t word) {
        Bytes *b = &m->code;
        const size_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8 }, size = sizes[word - DW_OP_const1u];
        const uint8_t *from = bytes_take(b, size);
        uint64_t v = 0;

        if (from)
                memcpy(&v, from, size);
        if ((word - DW_OP_const1u) % 2 == 1 && size < 8 && v >> (8 * size - 1))
                v |= ~UINT64_C(0) << 8 * size;
        push(m, v);
}

/* Of two numbers, `b` on top. */
static uint64_t compute(Machine *m, uint8_t word, uint64_t a, uint64_t b) {
        switch (word) {
        case DW_OP_and: return a & b;
        case DW_OP_or: return a | b;
        case DW_OP_xor: return a ^ b;
        case DW_OP_plus: return a + b;
        case DW_OP_minus: return a - b;
        case DW_OP_mul: return a * b;
        case DW_OP_shl: return b < 64 ? a << b : 0;
        case DW_OP_shr: return b < 64 ? a >> b : 0;
        case DW_OP_shra: return (uint64_t)((int64_t)a >> (b < 63 ? b : 63));
        case DW_OP_eq: return a == b;
        case DW_OP_ne: return a != b;
        case DW_OP_ge: return (int64_t)a >= (int64_t)b;
        case DW_OP_gt: return (int64_t)a > (int64_t)b;
        case DW_OP_le: return (int64_t)a <= (int64_t)b;
        case DW_OP_lt: return (int64_t)a < (int64_t)b;
        default: m->failed = true; return 0; /* divisions, which no compiler needs here */
        }
}

static void run_stack(Machine *m, uint8_t word) {
        const uint64_t top = look(m, 0);
        const uint8_t *from;

        switch (word) {
        case DW_OP_dup: push(m, top); return;
        case DW_OP_drop: (void)pop(m); return;
        case DW_OP_over: push(m, look(m, 1)); return;
        case DW_OP_pick:
                from = bytes_take(&m->code, 1);
                push(m, look(m, from ? *from : STACK_MAX));
                return;
        case DW_OP_swap:
                if (m->n >= 2) {
                        m->stack[m->n - 1] = m->stack[m->n - 2];
                        m->stack[m->n - 2] = top;
                } else
                        m->failed = true;
                return;
        case DW_OP_neg: push(m, -pop(m)); return;
        case DW_OP_not: push(m, ~pop(m)); return;
        case DW_OP_abs: push(m, (int64_t)pop(m) < 0 ? -top : top); return;
        case DW_OP_plus_uconst: push(m, pop(m) + take_leb(&m->code, false)); return;
        case DW_OP_bra: jump(m, pop(m) != 0); return;
        default:
                (void)pop(m);
                push(m, compute(m, word, pop(m), top));
        }
}

static void run_word(Machine *m, uint8_t word) {
        const uint8_t *from;

        if (word >= DW_OP_lit0 && word <= DW_OP_lit31)
                push(m, word - DW_OP_lit0);
        else if (word >= DW_OP_breg0 && word <= DW_OP_breg31)
                push_register(m, word - DW_OP_breg0);
        else if (word >= DW_OP_const1u && word <= DW_OP_const8s)
                push_constant(m, word);
        else if (word == DW_OP_addr)
                push(m, bytes_u64(&m->code));
        else if (word == DW_OP_constu || word == DW_OP_consts)
                push(m, take_leb(&m->code, word == DW_OP_consts));
        else if (word == DW_OP_bregx)
                push_register(m, take_leb(&m->code, false));
        else if (word == DW_OP_deref)
                read_memory(m, sizeof(uint64_t));
        else if (word == DW_OP_deref_size) {
                from = bytes_take(&m->code, 1);
                read_memory(m, from ? *from : 0);
        } else if (word == DW_OP_skip)
                jump(m, true);
        else if (word != DW_OP_nop)
                run_stack(m, word);
}

bool frame_expression(const FrameState *s, const uint8_t *bytes, size_t n, const uint64_t *first, uint64_t *ret) {
        Machine m = { .state = s, .code = { .at = bytes, .end = bytes + n }, .begin = bytes };
        int steps = 0;

        if (first)
                push(&m, *first);
        while (bytes_left(&m.code) > 0 && !m.failed && steps++ < STEPS_MAX)
                run_word(&m, *bytes_take(&m.code, 1));
        *ret = pop(&m);
        return !m.failed && !m.code.failed && bytes_left(&m.code) == 0;
}
