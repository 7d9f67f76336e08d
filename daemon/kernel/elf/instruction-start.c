/*
 * Whether an instruction begins at a place. The kernel does not ask: in the middle of one, its breakpoint would change what the
 * program does. Where an instruction of x86-64 begins can be known only from the function's own begin, one after the other.
 */
#include "daemon/kernel/elf/layout.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/elf/instruction.h"

#include <inttypes.h>
#include <stdio.h>

#define DISTANCE_MAX (UINT64_C(1) << 20) /* from the function's begin: some 10 ms */
#define INSTRUCTIONS_AT_ONCE 1024        /* between two looks at the clock */
#define ARM64_INSTRUCTION_SIZE 4

typedef struct Function {
        uint64_t begin;
        uint64_t size; /* 0: unknown */
} Function;

/* Of functions that hold the address the one that begins last. */
static int find_function(const ElfFile *f, uint64_t address, Function *ret, bool *ret_is_known, Explanation *e) {
        *ret_is_known = false;
        for (size_t t = 0; t < ARRAY_SIZE(f->tables); t++)
                for (size_t i = 0; i < f->tables[t].n; i++) {
                        ElfSymbol s;
                        int r = elf_table_symbol(f, &f->tables[t], i, NULL, 0, &s, e);

                        if (r != 0)
                                return r;
                        if (!s.is_defined || (s.type != STT_FUNC && s.type != STT_GNU_IFUNC && s.type != STT_NOTYPE) ||
                            s.address > address || address - s.address >= s.size)
                                continue;
                        if (*ret_is_known && s.address <= ret->begin)
                                continue;
                        *ret = (Function){ .begin = s.address, .size = s.size };
                        *ret_is_known = true;
                }
        return 0;
}

/* "fib+0x1", or of a place that is given by its address that one. */
static void say_place(const ElfPlace *place, uint64_t address, char *ret, size_t size) {
        if (place->symbol[0])
                (void)snprintf(ret, size, "%.100s+0x%" PRIx64, place->symbol, address - place->begin);
        else
                (void)snprintf(ret, size, "0x%" PRIx64, address);
}

/* before, after: where the instruction begins that the place is in, and the next one. */
static int refuse_middle(const ElfFile *f, const ElfPlace *place, const Function *function, uint64_t before, uint64_t after,
                         Explanation *e) {
        const bool has_after = function->size == 0 || after - function->begin < function->size;
        char at[128], first[128], second[128];

        say_place(place, place->address, at, sizeof(at));
        say_place(place, before, first, sizeof(first));
        say_place(place, after, second, sizeof(second));
        return refuse(e, REFUSED_INVALID, "bad-address", "%s is in the middle of an instruction of %s, where a breakpoint breaks "
                      "the program: %s %s%s%s", at, QUOTE(f->path), has_after ? "instructions begin at" : "it begins at", first,
                      has_after ? " and " : "", has_after ? second : "");
}

/* The instructions of [function, place], which lie in segment s. */
static int walk(const ElfFile *f, const ElfPlace *place, const Function *function, const ElfSegment *s, bool *ret_is_known,
                Explanation *e) {
        uint64_t at = function->begin - s->address;
        const uint64_t end = place->address - s->address;

        for (size_t i = 0; at < end; i++) {
                uint8_t bytes[X86_64_INSTRUCTION_SIZE_MAX];
                size_t n = s->size - at < sizeof(bytes) ? s->size - at : sizeof(bytes);
                int r = i % INSTRUCTIONS_AT_ONCE == 0 ? checkpoint(e) : 0;

                if (r == 0)
                        r = elf_file_read(f, ELF_VIEW_ENTRIES, s->offset + at, bytes, n, e);
                if (r != 0)
                        return r;
                n = x86_64_instruction_size(bytes, n);
                if (n == 0)
                        return 0;
                if (n > end - at)
                        return refuse_middle(f, place, function, s->address + at, s->address + at + n, e);
                at += n;
        }
        *ret_is_known = true;
        return 0;
}

static int check_x86_64(const ElfFile *f, const ElfPlace *place, bool *ret_is_known, Explanation *e) {
        const ElfSegment *s = elf_file_segment(f, place->address);
        Function function = { .begin = place->begin, .size = place->size };
        bool has_function = place->symbol[0];
        int r = has_function ? 0 : find_function(f, place->address, &function, &has_function, e);

        if (r != 0 || !has_function || elf_file_segment(f, function.begin) != s ||
            place->address - function.begin > DISTANCE_MAX)
                return r;
        return walk(f, place, &function, s, ret_is_known, e);
}

int elf_file_check_instruction(const ElfFile *f, const ElfPlace *place, bool *ret_is_known, Explanation *e) {
        const uint64_t past = place->address % ARM64_INSTRUCTION_SIZE;
        const Function unknown = { .begin = place->address };

        *ret_is_known = false;
        if (place->symbol[0] && place->address == place->begin)
                *ret_is_known = true;
        else if (f->header.e_machine == EM_X86_64)
                return check_x86_64(f, place, ret_is_known, e);
        else if (f->header.e_machine == EM_AARCH64 && past > 0)
                return refuse_middle(f, place, &unknown, place->address - past, place->address - past + ARM64_INSTRUCTION_SIZE, e);
        else
                *ret_is_known = f->header.e_machine == EM_AARCH64;
        return 0;
}
