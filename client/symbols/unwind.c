/*
 * Frame after frame: what the registers were when the function was called is computed of what they are, until one says that it has no
 * caller, or something is not known. Code without call frame information (that of JIT compilers) is believed to keep a frame pointer, where
 * what it points to looks like one.
 */
#include "client/symbols/unwind.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "client/symbols/symbolizer.h"

#define N_RULES ((size_t)1024) /* a power of two */
#define ARM64_ADDRESS ((UINT64_C(1) << 48) - 1) /* what is above is a signature, of pointers that return */

/* Of a machine: where its registers are, by DWARF's numbers. */
typedef struct Machine {
        uint32_t elf;
        size_t n_registers;
        uint8_t pc, sp, fp;
        int8_t from_perf[33]; /* by the bits of perf_regs.h; -1: of no use */
} Machine;

static const Machine machines[] = {
        { EM_X86_64, 17, 16, 7, 6, { 0, 3, 2, 1, 4, 5, 6, 7, 16, -1, -1, -1, -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15,
                                     -1, -1, -1, -1, -1, -1, -1, -1, -1 } },
        { EM_AARCH64, 33, 32, 31, 29, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                        29, 30, 31, 32 } },
};

typedef struct Thread {
        perfd_symbolizer *symbolizer;
        const Machine *machine;
        uint32_t pid;
        uint64_t time;
        FrameState state;
        bool is_exact; /* its pc is of the instruction that runs, or was interrupted; else of the one behind a call */
} Thread;

static bool begin(Thread *t, const perfd_registers *r, perfd_text stack) {
        size_t at = 0;

        for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
                if (machines[i].elf == r->machine)
                        t->machine = machines + i;
        if (!t->machine || r->abi != PERF_SAMPLE_REGS_ABI_64)
                return false;
        for (unsigned bit = 0; bit < 64 && at < r->n_values; bit++) {
                const int number = bit < sizeof(t->machine->from_perf) ? t->machine->from_perf[bit] : -1;

                if ((r->mask & UINT64_C(1) << bit) == 0)
                        continue;
                if (number >= 0) {
                        t->state.registers[number] = r->values[at];
                        t->state.known |= UINT64_C(1) << number;
                }
                at++;
        }
        t->state.stack = (const uint8_t *)stack.bytes;
        t->state.stack_at = t->state.registers[t->machine->sp];
        t->state.n_stack = (t->state.known & UINT64_C(1) << t->machine->sp) != 0 ? stack.length : 0;
        return (t->state.known & UINT64_C(1) << t->machine->pc) != 0;
}

/* ---- one frame ------------------------------------------------------------------------------------------------------------------- */

static bool evaluate(const FrameState *from, const FrameRules *rules, const Rule *rule, const uint64_t *cfa, uint64_t *ret) {
        return frame_expression(from, rules->section->bytes + rule->number, rule->length, cfa, ret);
}

static bool find_cfa(const FrameState *from, const FrameRules *rules, uint64_t *ret) {
        if (rules->cfa.kind == RULE_VALUE_EXPRESSION)
                return evaluate(from, rules, &rules->cfa, NULL, ret);
        *ret = from->registers[rules->cfa.number] + (uint64_t)rules->cfa_offset;
        return (from->known & UINT64_C(1) << rules->cfa.number) != 0;
}

/* False: it is not known. */
static bool find_register(const FrameState *from, const FrameRules *rules, size_t i, uint64_t cfa, uint64_t *ret) {
        const Rule *rule = rules->registers + i;
        const size_t same = rule->kind == RULE_REGISTER ? (size_t)rule->number : i;

        switch (rule->kind) {
        case RULE_SAME:
        case RULE_REGISTER:
                if (same >= FRAME_REGISTERS)
                        return false;
                *ret = from->registers[same];
                return (from->known & UINT64_C(1) << same) != 0;
        case RULE_AT_CFA:
                return frame_state_read(from, cfa + (uint64_t)rule->number, sizeof(*ret), ret);
        case RULE_CFA:
                *ret = cfa + (uint64_t)rule->number;
                return true;
        case RULE_EXPRESSION:
                return evaluate(from, rules, rule, &cfa, ret) && frame_state_read(from, *ret, sizeof(*ret), ret);
        case RULE_VALUE_EXPRESSION:
                return evaluate(from, rules, rule, &cfa, ret);
        default:
                return false;
        }
}

static bool step_by_rules(Thread *t, const FrameRules *rules) {
        const Machine *m = t->machine;
        const FrameState from = t->state;
        FrameState *to = &t->state;
        uint64_t cfa, pc;

        if (!find_cfa(&from, rules, &cfa) || !find_register(&from, rules, rules->return_register, cfa, &pc))
                return false;
        for (size_t i = 0; i < m->n_registers; i++) {
                to->known &= ~(UINT64_C(1) << i);
                if (i == m->sp && rules->registers[i].kind == RULE_SAME)
                        to->registers[i] = cfa;
                else if (!find_register(&from, rules, i, cfa, &to->registers[i]))
                        continue;
                to->known |= UINT64_C(1) << i;
        }
        to->registers[m->pc] = m->elf == EM_AARCH64 ? pc & ARM64_ADDRESS : pc;
        to->known |= UINT64_C(1) << m->pc;
        t->is_exact = rules->is_signal;
        return to->registers[m->pc] != from.registers[m->pc] || cfa != from.registers[m->sp];
}

/* On both machines it points to that of the caller, and the address that is returned to is behind it. */
static bool step_by_pointer(Thread *t) {
        FrameState *s = &t->state;
        const Machine *m = t->machine;
        const uint64_t fp = s->registers[m->fp];
        const uint64_t needed = UINT64_C(1) << m->fp | UINT64_C(1) << m->sp;
        uint64_t before, pc;

        if ((s->known & needed) != needed || fp < s->registers[m->sp] || !frame_state_read(s, fp, 8, &before) ||
            !frame_state_read(s, fp + 8, 8, &pc) || (before != 0 && before <= fp))
                return false;
        s->registers[m->fp] = before;
        s->registers[m->sp] = fp + 16;
        s->registers[m->pc] = m->elf == EM_AARCH64 ? pc & ARM64_ADDRESS : pc;
        s->known = needed | UINT64_C(1) << m->pc;
        t->is_exact = false;
        return true;
}

static int find_rules(perfd_symbolizer *s, const CallFrames *f, uint64_t address, const FrameRules **ret) {
        CachedRules *c;

        if (!s->unwinder.cache) {
                s->unwinder.cache = calloc(N_RULES, sizeof(CachedRules));
                if (!s->unwinder.cache)
                        return -ENOMEM;
                symbolizer_count_table(s, 0, N_RULES * sizeof(CachedRules));
        }
        c = s->unwinder.cache + ((address ^ f->serial << 40) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
        if (c->serial != f->serial || c->address != address) {
                c->serial = f->serial;
                c->address = address;
                c->is_found = frame_section_find(&f->sections[0], address, &c->rules) || frame_section_find(&f->sections[1], address, &c->rules);
        }
        *ret = c->is_found ? &c->rules : NULL;
        return 0;
}

_Static_assert(N_RULES == (size_t)1 << (64 - 54), "find_rules() takes as many bits of its hash");

/* What is mapped at its pc. False: nothing is, and so it is no address that anything returned to. */
static int find_mapping(Thread *t, const Mapping **ret, uint64_t *ret_pc) {
        Validity validity = VALIDITY_ALWAYS;
        Process *owner;

        *ret_pc = t->state.registers[t->machine->pc] - !t->is_exact;
        return user_mapping(t->symbolizer, t->pid, t->time, *ret_pc, &validity, &owner, ret);
}

/* From a frame to its caller. 1; 0: there is none, or it is not known; -ENOMEM */
static int step(Thread *t, const Mapping *m, uint64_t pc) {
        const FrameRules *rules = NULL;
        CallFrames *frames = NULL;
        uint64_t address;
        int r = 0;

        if (m->dso && (m->dso->kind == DSO_FILE || m->dso->kind == DSO_VDSO))
                r = call_frames_of(t->symbolizer, m->dso, &frames);
        if (r == 0 && frames && elf_symbols_address(&frames->place, pc - m->start + m->offset, &address))
                r = find_rules(t->symbolizer, frames, address, &rules);
        if (r != 0)
                return r;
        return rules ? step_by_rules(t, rules) : step_by_pointer(t);
}

int perfd_symbolizer_unwind(perfd_symbolizer *s, uint32_t pid, uint64_t time, const perfd_registers *registers, perfd_text stack,
                            const perfd_caller **ret_callers, size_t *ret_n) {
        Thread t = { .symbolizer = s, .pid = pid, .time = time, .is_exact = true };
        perfd_caller *callers = s->unwinder.callers;
        int r = 1;

        *ret_callers = callers;
        *ret_n = 0;
        if (!begin(&t, registers, stack))
                return 0;
        callers[(*ret_n)++] = (perfd_caller){ .ip = t.state.registers[t.machine->pc] };
        while (r > 0 && *ret_n < UNWOUND_MAX) {
                const Mapping *m = NULL;
                uint64_t pc;

                r = find_mapping(&t, &m, &pc);
                if (r == 0 && m)
                        r = step(&t, m, pc);
                if (r > 0 && t.state.registers[t.machine->pc] == 0)
                        r = 0;
                if (r > 0)
                        callers[(*ret_n)++] = (perfd_caller){ .ip = t.state.registers[t.machine->pc], .returns = !t.is_exact };
        }
        return r < 0 ? r : 0;
}
