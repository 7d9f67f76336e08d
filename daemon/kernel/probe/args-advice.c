/*
 * The texts are those of ERRORS in the kernel's kernel/trace/trace_probe.h, by words of them that have not changed since Linux 5.2;
 * what is possible is in the kernel's kprobetrace.rst and uprobetracer.rst.
 */
#include "daemon/kernel/probe/args-advice.h"

#include <string.h>

#include "daemon/base/cleanup.h"

#if defined(__x86_64__)
#define REGISTERS "%ax, %bx, %cx, %dx, %si, %di, %bp, %sp, %r8 to %r15, %ip and %flags"
#define FIRST "%di"
#elif defined(__aarch64__)
#define REGISTERS "%x0 to %x30, %sp, %pc and %pstate"
#define FIRST "%x0"
#else
#define REGISTERS "those of this machine's struct pt_regs, as regs_query_register_offset() of the kernel names them"
#define FIRST "%REGISTER"
#endif

#define AS_FETCHED "a register, as in name=" FIRST ", its place on the stack, as in name=$stack1"

static const struct {
        const char *words, *advice;
} advices[] = {
        { "register name", "; registers are " REGISTERS },
        { "Unknown type", "; types are u8, s8, x8 and the same with 16, 32 and 64, string and ustring of memory of the kernel and of a "
                          "program, symbol, bWIDTH@OFFSET/SIZE of bits, and TYPE[N] of an array" },
        { "String accepts only memory", "; it lies where an address leads, as in name=+0(" FIRST "):ustring" },
        { "$-va", "; there are $arg1, $arg2 and so on at the beginning of a function, $retval at its return, $stack, $stack0 and so on, "
                  "and $comm" }, /* "$-valiable" until Linux 6.x */
        { "needs a brace", "; memory is read as +OFFSET(ARG), as in name=+0(" FIRST "):ustring" },
        { "dereference offset", "; memory is read as +OFFSET(ARG) or -OFFSET(ARG), as in name=+8(" FIRST "):u64" },
        { "brace is not closed", "; memory is read as +OFFSET(ARG), as in name=+0(" FIRST "):ustring" },
        { "No argument expression", "; behind its = there has to be what is fetched, as in name=" FIRST },
        { "name is not specified", "; before its = there has to be a name, as in name=" FIRST },
        { "rules as C identifiers", "; a name has letters, digits and _, and no digit first" },
        { "already used", "; each is a field of its own: give it another name" },
        { "Invalid bitfield", "; it is bWIDTH@OFFSET/SIZE, as in flag=" FIRST ":b1@3/32" },
        { "Invalid array size", "; it is TYPE[N], with N from 1 to 64" },
        { "Array number is too big", "; it is TYPE[N], with N from 1 to 64" },
        { "Invalid stack number", "; $stack0 is the word that the stack pointer points at, $stack1 the next one" },
};

static bool has_words(const char *text, size_t n, const char *words) {
        return memmem(text, n, words, strlen(words)) != NULL;
}

/* "BTF is not available or not supported": a word that is none of the kernel's is an argument's name to it. */
static const char *advise_on_names(bool is_kernel) {
        return is_kernel ? "; an argument can be named only at the beginning of a function that BTF describes: fetch it from " AS_FETCHED
                         : "; in programs the kernel knows no arguments by their names: fetch one from " AS_FETCHED
                           ", or memory, as in name=+0(%si):ustring; at the beginning of a function they are also $arg1, $arg2 and so on";
}

const char *probe_args_advice(const char *text, size_t n, bool is_kernel, bool is_return) {
        if (has_words(text, n, "BTF"))
                return advise_on_names(is_kernel);
        if (has_words(text, n, "$retval is not available"))
                return is_kernel ? "; it is what a kretprobe fetches" : "; it is what a uretprobe fetches";
        for (size_t i = 0; i < ARRAY_SIZE(advices); i++)
                if (has_words(text, n, advices[i].words))
                        return advices[i].advice;
        if (has_words(text, n, "Invalid fetch argument"))
                return is_return ? "; there are $retval, registers, as in name=" FIRST ", memory, as in name=+0($retval):string, and numbers, as in name=\\5"
                                 : "; there are $arg1, $arg2 and so on, registers, as in name=" FIRST ", memory, as in name=+0($arg1):string, "
                                   "and numbers, as in name=\\5";
        return "";
}
