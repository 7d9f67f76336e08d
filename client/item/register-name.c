/*
 * Names of registers by the bits of asm/perf_regs.h, of every machine that can be traced and not only of the one that
 * this is compiled for: a stream may come from another host, and a recording from any. XMM registers have two bits each, for
 * their halves.
 */
#include <elf.h>
#include <stddef.h>

#include "client/perfd.h"

#define XMM(n) "XMM" #n "L", "XMM" #n "H"
#define SEVEN(before, tens) before #tens "1", before #tens "2", before #tens "3", before #tens "4", before #tens "5", before #tens "6", before #tens "7"
#define TEN(before, tens) before #tens "0", SEVEN(before, tens), before #tens "8", before #tens "9"
#define SIXTEEN(before) TEN(before, ), before "10", before "11", before "12", before "13", before "14", before "15"
#define THIRTY_TWO(before) TEN(before, ), TEN(before, 1), TEN(before, 2), before "30", before "31"

static const char *const x86[64] = {
        "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS",
        "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
        [32] = XMM(0), XMM(1), XMM(2), XMM(3), XMM(4), XMM(5), XMM(6), XMM(7), XMM(8), XMM(9), XMM(10), XMM(11),
        XMM(12), XMM(13), XMM(14), XMM(15),
};

static const char *const arm64[64] = {
        "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "lr", "sp", "pc",
        [46] = "vg",
};

static const char *const arm[64] = { TEN("r", ), "r10", "fp", "ip", "sp", "lr", "pc" };

static const char *const powerpc[64] = {
        THIRTY_TWO("r"), "nip", "msr", "orig_r3", "ctr", "link", "xer", "ccr", "softe", "trap", "dar", "dsisr", "sier", "mmcra",
        "mmcr0", "mmcr1", "mmcr2", "mmcr3", "sier2", "sier3", "pmc1", "pmc2", "pmc3", "pmc4", "pmc5", "pmc6", "sdar", "siar",
};

static const char *const s390[64] = { SIXTEEN("R"), SIXTEEN("FP"), "MASK", "PC" };

static const char *const riscv[64] = {
        "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
        "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};

/* Register 0 is always 0, and its place is that of the PC. */
static const char *const mips[64] = { "PC", SEVEN("$", ), "$8", "$9", TEN("$", 1), TEN("$", 2), "$30", "$31" };
static const char *const loongarch[64] = { "PC", SEVEN("%r", ), "%r8", "%r9", TEN("%r", 1), TEN("%r", 2), "%r30", "%r31" };

static const char *const *names_of(uint32_t machine) {
        switch (machine) {
        case EM_X86_64:
        case EM_386:
                return x86;
        case EM_AARCH64:
                return arm64;
        case EM_ARM:
                return arm;
        case EM_PPC:
        case EM_PPC64:
                return powerpc;
        case EM_S390:
                return s390;
        case EM_RISCV:
                return riscv;
        case EM_MIPS:
                return mips;
        case EM_LOONGARCH:
                return loongarch;
        default:
                return NULL;
        }
}

const char *perfd_register_name(uint32_t machine, unsigned bit) {
        const char *const *names = names_of(machine);

        return names && bit < 64 ? names[bit] : NULL;
}
