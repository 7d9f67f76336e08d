/*
 * Stacks that are unwound: this program's own, as backtrace(3) shows it; rules and expressions that are written here, one by one; and
 * whatever files, registers and stacks that lie may say, which ends.
 */
#include <dwarf.h>
#include <elf.h>
#include <execinfo.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/symbols/symbolizer.h"

static uint64_t seed = 1;

static uint32_t random_number(uint32_t below) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (uint32_t)(seed >> 33) % below;
}

/* ---- expressions ---------------------------------------------------------------------------------------------------------------- */

typedef struct ExpressionCase {
        const char *name;
        uint8_t code[24];
        size_t n;
        bool is_right;
        uint64_t value;
} ExpressionCase;

static void test_expressions(void **state) {
        static const uint64_t stack[] = { 0x1122334455667788, UINT64_MAX - 1 };
        static const ExpressionCase cases[] = {
                { "the CFA", { 0 }, 0, true, 0x5000 },
                { "of a procedure linkage table", { DW_OP_drop, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3,
                        DW_OP_shl, DW_OP_plus }, 12, true, 0x4000 + 8 + 8 },
                { "memory", { DW_OP_breg7, 0, DW_OP_deref }, 3, true, 0x1122334455667788 },
                { "a part of it", { DW_OP_breg7, 4, DW_OP_deref_size, 4 }, 4, true, 0x11223344 },
                { "a negative offset", { DW_OP_breg7, 0x78 }, 2, true, 0x4000 - 8 },
                { "constants", { DW_OP_const1s, 0xff, DW_OP_const2u, 0xff, 0xff, DW_OP_plus }, 6, true, 0xfffe },
                { "a jump forwards", { DW_OP_lit1, DW_OP_bra, 1, 0, DW_OP_drop, DW_OP_lit7 }, 6, true, 7 },
                { "pick and swap", { DW_OP_lit5, DW_OP_lit9, DW_OP_pick, 2, DW_OP_swap, DW_OP_minus }, 6, true, 0x5000 - 9 },
                { "a shift of all", { DW_OP_lit1, DW_OP_const1u, 64, DW_OP_shl }, 4, true, 0 },
                { "behind the stack", { DW_OP_breg7, 9, DW_OP_deref }, 3, false, 0 },
                { "before the stack", { DW_OP_breg7, 0x7f, DW_OP_deref }, 3, false, 0 },
                { "a register that is not known", { DW_OP_breg3, 0 }, 2, false, 0 },
                { "no such register", { DW_OP_bregx, 0xff, 0x7f, 0 }, 4, false, 0 },
                { "an empty stack", { DW_OP_drop, DW_OP_drop }, 2, false, 0 },
                { "cut off", { DW_OP_const8u, 1, 2 }, 3, false, 0 },
                { "a loop", { DW_OP_skip, 0xfd, 0xff }, 3, false, 0 },
                { "a loop that pushes", { DW_OP_lit0, DW_OP_skip, 0xfc, 0xff }, 4, false, 0 },
                { "a jump out of it", { DW_OP_skip, 0x80, 0xff }, 3, false, 0 },
                { "no such word", { 0xff }, 1, false, 0 },
        };
        FrameState s = { .known = 1 << 7 | 1 << 16, .stack = (const uint8_t *)stack, .stack_at = 0x4000, .n_stack = sizeof(stack) };
        const uint64_t cfa = 0x5000;

        s.registers[7] = 0x4000;
        s.registers[16] = 0x101b;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                uint64_t value = 0;
                const bool is_right = frame_expression(&s, cases[i].code, cases[i].n, &cfa, &value);

                if (is_right != cases[i].is_right || (is_right && value != cases[i].value))
                        fail_msg("%s: %d %#lx", cases[i].name, is_right, (unsigned long)value);
        }
}

static void test_hostile_expressions(void **state) {
        static const uint64_t stack[4];
        FrameState s = { .known = UINT64_MAX, .stack = (const uint8_t *)stack, .n_stack = sizeof(stack) };
        uint64_t value;

        for (int i = 0; i < 100000; i++) {
                const size_t n = random_number(32);
                uint8_t *code = malloc(n + 1);

                for (size_t k = 0; k < n; k++)
                        code[k] = (uint8_t)random_number(256);
                (void)frame_expression(&s, code, n, &value, &value);
                free(code);
        }
}

/* ---- call frame information ----------------------------------------------------------------------------------------------------- */

/* A common part, and a function of 0x40 bytes at 0x1000 that pushes rbp at 1, and remembers that from 0x20 to 0x30. */
static const uint8_t section[] = {
        20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, DW_EH_PE_udata4, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, 0, 0,
        36, 0, 0, 0, 28, 0, 0, 0, 0, 0x10, 0, 0, 0x40, 0, 0, 0, 0,
        DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
        DW_CFA_advance_loc1, 0x1f, DW_CFA_remember_state, DW_CFA_restore | 6, DW_CFA_def_cfa_offset, 8,
        DW_CFA_advance_loc | 16, DW_CFA_restore_state, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, DW_CFA_nop,
        DW_CFA_nop, DW_CFA_nop, DW_CFA_nop, 0, 0, 0, 0,
};

static uint8_t *copy_of(const void *bytes, size_t n) {
        uint8_t *copy = malloc(n ? n : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, n);
        return copy;
}

static void assert_rules(const FrameSection *f, uint64_t address, int64_t cfa, RuleKind rbp) {
        FrameRules rules;

        assert_true(frame_section_find(f, address, &rules));
        assert_int_equal(rules.cfa.kind, RULE_REGISTER);
        assert_int_equal(rules.cfa.number, 7);
        assert_int_equal(rules.cfa_offset, cfa);
        assert_int_equal(rules.return_register, 16);
        assert_int_equal(rules.registers[16].kind, RULE_AT_CFA);
        assert_int_equal(rules.registers[16].number, -8);
        assert_int_equal(rules.registers[6].kind, rbp);
        assert_false(rules.is_signal);
}

static void test_rules(void **state) {
        FrameSection f;
        FrameRules rules;

        assert_int_equal(frame_section_init(&f, copy_of(section, sizeof(section)), sizeof(section), 0, false), 0);
        assert_int_equal(f.n_entries, 1);
        assert_false(frame_section_find(&f, 0xfff, &rules));
        assert_rules(&f, 0x1000, 8, RULE_SAME);
        assert_rules(&f, 0x1001, 16, RULE_AT_CFA);
        assert_rules(&f, 0x101f, 16, RULE_AT_CFA);
        assert_rules(&f, 0x1020, 8, RULE_SAME);
        assert_rules(&f, 0x1030, 16, RULE_AT_CFA);
        assert_rules(&f, 0x103f, 16, RULE_AT_CFA);
        assert_false(frame_section_find(&f, 0x1040, &rules));
        frame_section_deinit(&f);
}

/* Cut off at each byte: it is there from its last one on. */
static void test_cut_off(void **state) {
        FrameSection f;

        for (size_t n = 0; n <= sizeof(section); n++) {
                assert_int_equal(frame_section_init(&f, copy_of(section, n), n, 0, false), 0);
                assert_int_equal(f.n_entries, n >= sizeof(section) - 4);
                frame_section_deinit(&f);
        }
}

static void test_hostile_sections(void **state) {
        FrameSection f;
        FrameRules rules;

        for (int i = 0; i < 50000; i++) {
                uint8_t *bytes = copy_of(section, sizeof(section));

                for (uint32_t k = random_number(4) + 1; k > 0; k--)
                        bytes[random_number(sizeof(section))] = (uint8_t)random_number(256);
                assert_int_equal(frame_section_init(&f, bytes, sizeof(section), 0, i % 2), 0);
                for (size_t k = 0; k < f.n_entries; k++)
                        (void)frame_section_find(&f, f.entries[k].start + f.entries[k].length - 1, &rules);
                frame_section_deinit(&f);
        }
}

#ifdef __x86_64__ /* how registers are saved */
/* ---- this program --------------------------------------------------------------------------------------------------------------- */

#define STACK_SIZE 8192

typedef struct Place {
        uint64_t values[17];
        perfd_registers registers;
        uint8_t stack[STACK_SIZE];
        void *expected[64];
        int n_expected;
} Place;

static void take_registers(Place *p, const ucontext_t *c) {
        static const int order[] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
                                     REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

        for (size_t i = 0; i < 17; i++)
                p->values[i] = (uint64_t)c->uc_mcontext.gregs[order[i]];
        p->registers = (perfd_registers){ .abi = PERF_SAMPLE_REGS_ABI_64, .machine = EM_X86_64, .mask = 0xff01ff, .values = p->values, .n_values = 17 };
}

__attribute__((noinline, noclone, no_sanitize_address)) static void here(Place *p) {
        ucontext_t c;
        const uint8_t *from;

        p->n_expected = backtrace(p->expected, 64);
        assert_int_equal(getcontext(&c), 0);
        take_registers(p, &c);
        from = (const uint8_t *)p->values[7];
        for (size_t i = 0; i < STACK_SIZE && from + i < (const uint8_t *)getauxval(AT_EXECFN); i++) /* not memcpy(3), which sanitizers look at */
                p->stack[i] = from[i];
}

__attribute__((noinline, noclone)) static int deeper(Place *p, int depth) {
        volatile int n = depth;

        if (depth > 0)
                n += deeper(p, depth - 1);
        else
                here(p);
        return n;
}

static const perfd_caller *unwind(perfd_symbolizer *s, const Place *p, size_t n_stack, size_t *n) {
        const perfd_caller *callers;

        assert_int_equal(perfd_symbolizer_unwind(s, (uint32_t)getpid(), 1, &p->registers,
                                                 (perfd_text){ .bytes = (const char *)p->stack, .length = n_stack }, &callers, n), 0);
        return callers;
}

/* The first one is of another instruction of the same function. */
static void test_own_stack(void **state) {
        perfd_symbolizer *s = perfd_symbolizer_new(NULL);
        const perfd_caller *callers;
        static Place p;
        size_t n, before = 0, own = 1;

        assert_int_equal(deeper(&p, 5), 15);
        callers = unwind(s, &p, STACK_SIZE, &n);
        assert_true(p.n_expected > 8 && n > 8);
        while (own < 3 && (uint64_t)p.expected[own] != callers[1].ip) /* of a sanitizer, which is called in its place */
                own++;
        assert_false(callers[0].returns);
        for (size_t i = 1; i < n && i + own - 1 < (size_t)p.n_expected; i++) {
                assert_true(callers[i].returns);
                assert_int_equal(callers[i].ip, (uint64_t)p.expected[i + own - 1]);
        }
        for (size_t n_stack = 0; n_stack <= STACK_SIZE; n_stack += 8) { /* as far as the stack is there */
                unwind(s, &p, n_stack, &n);
                assert_true(n >= 1 && n >= before);
                before = n;
        }
        p.registers.abi = PERF_SAMPLE_REGS_ABI_32;
        unwind(s, &p, STACK_SIZE, &n);
        assert_int_equal(n, 0);
        p.registers.abi = PERF_SAMPLE_REGS_ABI_64;
        p.registers.machine = EM_S390;
        unwind(s, &p, STACK_SIZE, &n);
        assert_int_equal(n, 0);
        p.registers.machine = EM_X86_64;
        p.registers.mask &= ~(UINT64_C(1) << 8);
        unwind(s, &p, STACK_SIZE, &n);
        assert_int_equal(n, 0); /* no instruction pointer */
        perfd_symbolizer_free(s);
}

/* Each word of the stack is an address of the stack or of the code by chance: it ends. */
static void test_hostile_stacks(void **state) {
        perfd_symbolizer *s = perfd_symbolizer_new(NULL);
        static Place p;
        size_t n;

        deeper(&p, 5);
        for (int i = 0; i < 5000; i++) {
                Place bad = p;

                bad.registers.values = bad.values;
                for (uint32_t k = random_number(20); k > 0; k--) {
                        const uint64_t words[] = { p.values[7] + random_number(STACK_SIZE), (uint64_t)p.expected[1 + random_number(6)], UINT64_MAX - random_number(16) };

                        memcpy(bad.stack + 8 * random_number(STACK_SIZE / 8), &words[random_number(3)], 8);
                        bad.values[random_number(17)] = words[random_number(3)];
                }
                unwind(s, &bad, random_number(STACK_SIZE + 1), &n);
                assert_true(n >= 1 && n <= UNWOUND_MAX);
        }
        perfd_symbolizer_free(s);
}

#endif

/* A circle of frame pointers in code that no file has is none; a chain of them is followed. */
static void test_frame_pointers(void **state) {
        static const uint64_t stack[] = { 0, 0x7010, 0x1010, 0, 0, 0x7008, 0x1020 };
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        perfd_mapping m = PERFD_MAPPING_INIT;
        uint64_t values[] = { 0x7008, 0x7000, 0x1000 };
        const perfd_registers registers = { .abi = PERF_SAMPLE_REGS_ABI_64, .machine = EM_X86_64, .mask = 0x1c0, .values = values, .n_values = 3 };
        uint64_t chain[8] = { 0 };
        const perfd_caller *callers;
        perfd_symbolizer *s;
        size_t n;

        options.is_remote = true;
        s = perfd_symbolizer_new(&options);
        m.pid = 7;
        m.start = 0x1000;
        m.length = 0x1000;
        m.path = symbols_text("//anon");
        assert_int_equal(perfd_symbolizer_map(s, &m), 0);
        chain[1] = 0x7018;
        chain[2] = 0x1010;
        chain[3] = 0;
        chain[4] = 0x1020;
        assert_int_equal(perfd_symbolizer_unwind(s, 7, 1, &registers, (perfd_text){ .bytes = (const char *)chain, .length = sizeof(chain) }, &callers, &n), 0);
        assert_int_equal(n, 3);
        assert_int_equal(callers[0].ip, 0x1000);
        assert_int_equal(callers[1].ip, 0x1010);
        assert_int_equal(callers[2].ip, 0x1020);
        values[0] = 0x7028; /* its caller's would be below */
        assert_int_equal(perfd_symbolizer_unwind(s, 7, 1, &registers, (perfd_text){ .bytes = (const char *)stack, .length = sizeof(stack) }, &callers, &n), 0);
        assert_int_equal(n, 1);
        perfd_symbolizer_free(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_expressions),
                cmocka_unit_test(test_hostile_expressions),
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_cut_off),
                cmocka_unit_test(test_hostile_sections),
#ifdef __x86_64__
                cmocka_unit_test(test_own_stack),
                cmocka_unit_test(test_hostile_stacks),
#endif
                cmocka_unit_test(test_frame_pointers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
