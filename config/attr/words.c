/*
 * Words are those of perf_event.h in small letters with '-' for '_', and beside them those of perf record (-j, --user-regs)
 * where they differ. A bit that this machine's header does not know yet is written as its number.
 */
#include "config/attr/words.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "daemon/base/cleanup.h"

#define BRANCH_COUNTERS (1u << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */

static const AttrWord samples[] = {
        { "ip", PERF_SAMPLE_IP },
        { "tid", PERF_SAMPLE_TID },
        { "time", PERF_SAMPLE_TIME },
        { "addr", PERF_SAMPLE_ADDR },
        { "read", PERF_SAMPLE_READ },
        { "callchain", PERF_SAMPLE_CALLCHAIN },
        { "id", PERF_SAMPLE_ID },
        { "cpu", PERF_SAMPLE_CPU },
        { "period", PERF_SAMPLE_PERIOD },
        { "stream-id", PERF_SAMPLE_STREAM_ID },
        { "raw", PERF_SAMPLE_RAW },
        { "branch-stack", PERF_SAMPLE_BRANCH_STACK },
        { "regs-user", PERF_SAMPLE_REGS_USER },
        { "stack-user", PERF_SAMPLE_STACK_USER },
        { "weight", PERF_SAMPLE_WEIGHT },
        { "data-src", PERF_SAMPLE_DATA_SRC },
        { "identifier", PERF_SAMPLE_IDENTIFIER },
        { "transaction", PERF_SAMPLE_TRANSACTION },
        { "regs-intr", PERF_SAMPLE_REGS_INTR },
        { "phys-addr", PERF_SAMPLE_PHYS_ADDR },
        { "aux", PERF_SAMPLE_AUX },
        { "cgroup", PERF_SAMPLE_CGROUP },
        { "data-page-size", PERF_SAMPLE_DATA_PAGE_SIZE },
        { "code-page-size", PERF_SAMPLE_CODE_PAGE_SIZE },
        { "weight-struct", PERF_SAMPLE_WEIGHT_STRUCT },
};

const AttrWords attr_sample_words = {
        samples, ARRAY_SIZE(samples), PERF_SAMPLE_WEIGHT_STRUCT * 2 - 1,
        "ip, tid, time, addr, read, callchain, id, cpu, period, stream-id, raw, branch-stack, regs-user, stack-user, "
        "weight, data-src, identifier, transaction, regs-intr, phys-addr, aux, cgroup, data-page-size, "
        "code-page-size, weight-struct",
};

static const AttrWord branches[] = {
        { "user", PERF_SAMPLE_BRANCH_USER },
        { "kernel", PERF_SAMPLE_BRANCH_KERNEL },
        { "hv", PERF_SAMPLE_BRANCH_HV },
        { "any", PERF_SAMPLE_BRANCH_ANY },
        { "any-call", PERF_SAMPLE_BRANCH_ANY_CALL },
        { "any-return", PERF_SAMPLE_BRANCH_ANY_RETURN },
        { "ind-call", PERF_SAMPLE_BRANCH_IND_CALL },
        { "abort-tx", PERF_SAMPLE_BRANCH_ABORT_TX },
        { "in-tx", PERF_SAMPLE_BRANCH_IN_TX },
        { "no-tx", PERF_SAMPLE_BRANCH_NO_TX },
        { "cond", PERF_SAMPLE_BRANCH_COND },
        { "call-stack", PERF_SAMPLE_BRANCH_CALL_STACK },
        { "ind-jump", PERF_SAMPLE_BRANCH_IND_JUMP },
        { "call", PERF_SAMPLE_BRANCH_CALL },
        { "no-flags", PERF_SAMPLE_BRANCH_NO_FLAGS },
        { "no-cycles", PERF_SAMPLE_BRANCH_NO_CYCLES },
        { "type-save", PERF_SAMPLE_BRANCH_TYPE_SAVE },
        { "hw-index", PERF_SAMPLE_BRANCH_HW_INDEX },
        { "priv-save", PERF_SAMPLE_BRANCH_PRIV_SAVE },
        { "counters", BRANCH_COUNTERS },
        { "u", PERF_SAMPLE_BRANCH_USER }, /* from here on, perf record's own words */
        { "k", PERF_SAMPLE_BRANCH_KERNEL },
        { "any-ret", PERF_SAMPLE_BRANCH_ANY_RETURN },
        { "ind-jmp", PERF_SAMPLE_BRANCH_IND_JUMP },
        { "save-type", PERF_SAMPLE_BRANCH_TYPE_SAVE },
        { "stack", PERF_SAMPLE_BRANCH_CALL_STACK },
        { "priv", PERF_SAMPLE_BRANCH_PRIV_SAVE },
        { "counter", BRANCH_COUNTERS },
};

const AttrWords attr_branch_words = {
        branches, ARRAY_SIZE(branches), BRANCH_COUNTERS * 2 - 1,
        "user, kernel, hv, any, any-call, any-return, ind-call, abort-tx, in-tx, no-tx, cond, call-stack, ind-jump, "
        "call, no-flags, no-cycles, type-save, hw-index, priv-save, counters",
};

#if defined(__x86_64__)
#include <asm/perf_regs.h>

#define BIT(name) (UINT64_C(1) << PERF_REG_X86_##name)
#define XMM(n) { "xmm" #n, UINT64_C(3) << PERF_REG_X86_XMM##n } /* 128 bits are two registers */

static const AttrWord registers[] = {
        { "ax", BIT(AX) },   { "bx", BIT(BX) },   { "cx", BIT(CX) },   { "dx", BIT(DX) },   { "si", BIT(SI) },
        { "di", BIT(DI) },   { "bp", BIT(BP) },   { "sp", BIT(SP) },   { "ip", BIT(IP) },   { "flags", BIT(FLAGS) },
        { "cs", BIT(CS) },   { "ss", BIT(SS) },   { "r8", BIT(R8) },   { "r9", BIT(R9) },   { "r10", BIT(R10) },
        { "r11", BIT(R11) }, { "r12", BIT(R12) }, { "r13", BIT(R13) }, { "r14", BIT(R14) }, { "r15", BIT(R15) },
        XMM(0), XMM(1), XMM(2), XMM(3), XMM(4), XMM(5), XMM(6), XMM(7),
        XMM(8), XMM(9), XMM(10), XMM(11), XMM(12), XMM(13), XMM(14), XMM(15),
};

const AttrWords attr_register_words = {
        registers, ARRAY_SIZE(registers), UINT64_MAX,
        "ax, bx, cx, dx, si, di, bp, sp, ip, flags, cs, ss, r8 to r15, xmm0 to xmm15",
};
const uint64_t attr_unwinding_registers = UINT64_C(0xff0fff); /* without the segments, which Linux refuses */
#elif defined(__aarch64__)
#define X(n) { "x" #n, UINT64_C(1) << n }

static const AttrWord registers[] = {
        X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9),
        X(10), X(11), X(12), X(13), X(14), X(15), X(16), X(17), X(18), X(19),
        X(20), X(21), X(22), X(23), X(24), X(25), X(26), X(27), X(28), X(29),
        { "lr", UINT64_C(1) << 30 }, { "sp", UINT64_C(1) << 31 }, { "pc", UINT64_C(1) << 32 },
        { "vg", UINT64_C(1) << 46 }, /* PERF_REG_ARM64_VG, Linux 6.1 */
};

const AttrWords attr_register_words = {
        registers, ARRAY_SIZE(registers), UINT64_MAX, "x0 to x29, lr, sp, pc, vg",
};
const uint64_t attr_unwinding_registers = (UINT64_C(1) << 33) - 1; /* up to pc */
#else
const AttrWords attr_register_words = { NULL, 0, UINT64_MAX, "the bits of asm/perf_regs.h" };
const uint64_t attr_unwinding_registers = 0;
#endif

static const AttrWord accesses[] = {
        { "r", HW_BREAKPOINT_R },
        { "w", HW_BREAKPOINT_W },
        { "x", HW_BREAKPOINT_X },
        { "rw", HW_BREAKPOINT_RW },
};

const AttrWords attr_access_words = {
        accesses, ARRAY_SIZE(accesses), HW_BREAKPOINT_RW | HW_BREAKPOINT_X, "r, w, x",
};
