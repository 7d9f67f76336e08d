/*
 * The opcode maps of the Intel and AMD manuals, as far as they say how many bytes follow.
 *
 * This is no disassembler's library: that of Debian 12 (capstone 4.0.2) does not know the instructions of AVX-512 for masks, and so
 * can say nothing of most implementations of memcpy() in glibc, nor of what RDPKRU and WRPKRU are in; its tables have 6 MiB.
 *
 * A new instruction in an old map has the length that the map gives it. A new map, or a new prefix, is unknown.
 */
#include "daemon/kernel/elf/instruction.h"

#include <stdbool.h>

/*
 * What follows each opcode:
 *   -  not known, or no instruction      .  nothing
 *   M  ModRM                             R  ModRM, always of registers
 *   m  ModRM, 1 byte                     z  ModRM, 4 bytes (2 with the prefix 66)
 *   3  as m if ModRM.reg is 0 or 1       4  as z if ModRM.reg is 0 or 1
 *   B  1 byte    W  2 bytes    E  3 bytes    Z  4 bytes (2 with 66)
 *   V  4 bytes (2 with 66, 8 with REX.W)     A  8 bytes (4 with 67)
 *   J  4 bytes: with 66 alone Intel reads 4, AMD 2
 */
static const char one_byte[] = "MMMMBZ--MMMMBZ--" "MMMMBZ--MMMMBZ--" "MMMMBZ--MMMMBZ--" "MMMMBZ--MMMMBZ--"
                               "----------------" "................" "---M----ZzBm...." "BBBBBBBBBBBBBBBB"
                               "mz-mMMMMMMMMMMMM" "..........-....." "AAAA....BZ......" "BBBBBBBBVVVVVVVV"
                               "mmW.--mzE.W..B-." "MMMM---.MMMMMMMM" "BBBBBBBBJJ-B...." "-.--..34......MM";
static const char map_0f[] = "MMMM-.....-.-M.m" "MMMMMMMMMMMMMMMM" "RRRR----MMMMMMMM" "......-.--------"
                             "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "mmmmMMM.MM--MMMM"
                             "JJJJJJJJJJJJJJJJ" "MMMMMMMMMMMMMMMM" "...MmMMM...MmMMM" "MMMMMMMMMMmMMMMM"
                             "MMmMmmmM........" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMM-";

_Static_assert(sizeof(one_byte) == 257 && sizeof(map_0f) == 257, "an opcode map has 256 opcodes");

typedef struct Instruction {
        const uint8_t *bytes;
        size_t n, at;
        bool has_66, has_67, has_repeat, has_f2, has_lock, has_rex, is_wide; /* REX.W */
} Instruction;

/* -1: there is none. */
static int next(Instruction *i) {
        return i->at < i->n ? i->bytes[i->at++] : -1;
}

/* The first byte behind the prefixes. A REX that another prefix follows is none. */
static int skip_prefixes(Instruction *i) {
        for (;;) {
                int b = next(i);

                switch (b) {
                case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
                        break;
                case 0x66:
                        i->has_66 = true;
                        break;
                case 0x67:
                        i->has_67 = true;
                        break;
                case 0xf0:
                        i->has_lock = true;
                        break;
                case 0xf2: case 0xf3:
                        i->has_repeat = true;
                        i->has_f2 = b == 0xf2;
                        break;
                case 0x40 ... 0x4f:
                        i->has_rex = true;
                        i->is_wide = b & 8;
                        continue;
                default:
                        return b;
                }
                i->has_rex = i->is_wide = false;
        }
}

/* ModRM, and the SIB and displacement that it says there are. Gives it, or -1. */
static int skip_modrm(Instruction *i, bool is_register) {
        int modrm = next(i), mod = modrm >> 6, sib = 0;

        if (modrm < 0 || mod == 3 || is_register)
                return modrm;
        if ((modrm & 7) == 4 && (sib = next(i)) < 0)
                return -1;
        if (mod == 1)
                i->at += 1;
        else if (mod == 2 || (modrm & 7) == 5 || ((modrm & 7) == 4 && (sib & 7) == 5))
                i->at += 4;
        return modrm;
}

static bool skip_operands(Instruction *i, char what) {
        const size_t by_operand = i->has_66 && !i->is_wide ? 2 : 4;
        int modrm = 0;

        if (what == 'M' || what == 'R' || what == 'm' || what == 'z' || what == '3' || what == '4')
                modrm = skip_modrm(i, what == 'R');
        if (modrm < 0)
                return false;
        if ((what == '3' || what == '4') && (modrm & 0x38) <= 8)
                what = what == '3' ? 'm' : 'z';
        switch (what) {
        case '-':
                return false;
        case 'm': case 'B':
                i->at += 1;
                return true;
        case 'W':
                i->at += 2;
                return true;
        case 'E':
                i->at += 3;
                return true;
        case 'z': case 'Z':
                i->at += by_operand;
                return true;
        case 'V':
                i->at += i->is_wide ? 8 : by_operand;
                return true;
        case 'A':
                i->at += i->has_67 ? 4 : 8;
                return true;
        case 'J':
                i->at += 4;
                return by_operand == 4;
        default:
                return true;
        }
}

/* Behind 0F. */
static bool skip_two_bytes(Instruction *i) {
        int opcode = next(i);

        if (opcode < 0)
                return false;
        if (opcode == 0x38 || opcode == 0x3a)
                return next(i) >= 0 && skip_operands(i, opcode == 0x38 ? 'M' : 'm');
        if (opcode == 0x78 && (i->has_66 || i->has_f2)) /* EXTRQ, INSERTQ */
                i->at += 2;
        return skip_operands(i, map_0f[opcode]);
}

/* Opcode and operands of a map of VEX or EVEX. */
static bool skip_vector(Instruction *i, int map) {
        int opcode = next(i);

        if (opcode < 0)
                return false;
        switch (map) {
        case 1:
                if (map_0f[opcode] == 'J') /* none of these has one */
                        return false;
                return skip_operands(i, opcode == 0x77 ? '.' : map_0f[opcode] == 'm' ? 'm' : 'M');
        case 2: case 5: case 6:
                return skip_operands(i, 'M');
        case 3:
                return skip_operands(i, 'm');
        default:
                return false;
        }
}

/* AMD's XOP: 8F with a map that no POP has. */
static bool skip_xop(Instruction *i, int map) {
        static const char operands[] = { 'm', 'M', 'z' };

        i->at++;
        return map <= 10 && next(i) >= 0 && skip_operands(i, operands[map - 8]);
}

static bool skip_opcode(Instruction *i, int opcode) {
        const bool is_plain = !i->has_66 && !i->has_repeat && !i->has_lock && !i->has_rex;
        const int map = i->at < i->n ? i->bytes[i->at] & 0x1f : -1;

        switch (opcode) {
        case 0x0f:
                return skip_two_bytes(i);
        case 0x62: /* a map of more than 3 bits would be new */
                i->at += 3;
                return is_plain && map >= 0 && skip_vector(i, map & 7) && !(map & 8);
        case 0x8f:
                if (map < 8)
                        return skip_operands(i, 'M');
                i->at++;
                return is_plain && skip_xop(i, map);
        case 0xc4:
                i->at += 2;
                return is_plain && map >= 0 && map < 4 && skip_vector(i, map);
        case 0xc5:
                i->at += 1;
                return is_plain && skip_vector(i, 1);
        default:
                return opcode >= 0 && skip_operands(i, one_byte[opcode]);
        }
}

size_t x86_64_instruction_size(const uint8_t *bytes, size_t n) {
        Instruction i = { .bytes = bytes, .n = n < X86_64_INSTRUCTION_SIZE_MAX ? n : X86_64_INSTRUCTION_SIZE_MAX };

        return skip_opcode(&i, skip_prefixes(&i)) && i.at <= i.n ? i.at : 0;
}
