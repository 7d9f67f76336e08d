/*
 * Names of registers by the bits of asm/perf_regs.h, of every machine that can be traced and not only of the one that
 * this is compiled for: a stream may come from another host. XMM registers have two bits each, for their halves.
 */
#include <elf.h>
#include <stddef.h>

#include "client/perfd.h"

#define XMM(n) "XMM" #n "L", "XMM" #n "H"

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

const char *perfd_register_name(uint32_t machine, unsigned bit) {
        if (bit >= 64)
                return NULL;
        return machine == EM_X86_64 ? x86[bit] : machine == EM_AARCH64 ? arm64[bit] : NULL;
}
