/*
 * The arguments of a static probe, which the assembler's operands describe, as fetch args of uprobe_events. Only what
 * means the same in both is translated: a register, memory behind a register, a number. The kernel has no index
 * registers, no vector registers and no names of the file; such arguments are left out, never fetched from elsewhere.
 */
#include "daemon/kernel/elf/file.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERAND_SIZE 96

/* Kernel name of a register, by what the assembler calls its parts: 8, 4, 2, 1 bytes. regs_query_register_offset(). */
static const struct {
        const char *kernel, *parts[4];
} x86_registers[] = {
        { "ax", { "rax", "eax", "ax", "al" } },       { "bx", { "rbx", "ebx", "bx", "bl" } },
        { "cx", { "rcx", "ecx", "cx", "cl" } },       { "dx", { "rdx", "edx", "dx", "dl" } },
        { "si", { "rsi", "esi", "si", "sil" } },      { "di", { "rdi", "edi", "di", "dil" } },
        { "bp", { "rbp", "ebp", "bp", "bpl" } },      { "sp", { "rsp", "esp", "sp", "spl" } },
        { "r8", { "r8", "r8d", "r8w", "r8b" } },      { "r9", { "r9", "r9d", "r9w", "r9b" } },
        { "r10", { "r10", "r10d", "r10w", "r10b" } }, { "r11", { "r11", "r11d", "r11w", "r11b" } },
        { "r12", { "r12", "r12d", "r12w", "r12b" } }, { "r13", { "r13", "r13d", "r13w", "r13b" } },
        { "r14", { "r14", "r14d", "r14w", "r14b" } }, { "r15", { "r15", "r15d", "r15w", "r15b" } },
};

typedef struct Operand {
        const char *text;
        size_t n;
} Operand;

/* first, last: which of the parts it may be. */
static const char *x86_register(const char *text, size_t n, size_t first, size_t last) {
        for (size_t i = 0; i < ARRAY_SIZE(x86_registers); i++)
                for (size_t k = first; k <= last; k++)
                        if (strlen(x86_registers[i].parts[k]) == n && memcmp(x86_registers[i].parts[k], text, n) == 0)
                                return x86_registers[i].kernel;
        return NULL;
}

/* [-+]DIGITS or 0xDIGITS that fits into 64 bits, and nothing else. */
static bool parse_number(const char *text, size_t n, long long *ret) {
        size_t sign = n > 0 && (*text == '-' || *text == '+');
        char copy[32], *end;
        long long value;

        if (n <= sign || n >= sizeof(copy) || text[sign] < '0' || text[sign] > '9') /* strtoll(3) takes more */
                return false;
        memcpy(copy, text, n);
        copy[n] = '\0';
        errno = 0;
        value = strtoll(copy, &end, 0);
        if (*end || errno == ERANGE)
                return false;
        *ret = value;
        return true;
}

/* "%reg", "$number", "[displacement](%reg)" */
static bool translate_x86(bool is_64, const char *text, size_t n, char ret[static OPERAND_SIZE]) {
        const char *open = memchr(text, '(', n), *name;
        long long number = 0;

        if (n > 1 && text[0] == '%') {
                name = x86_register(text + 1, n - 1, 0, 3);
                return name && snprintf(ret, OPERAND_SIZE, "%%%s", name) > 0;
        }
        if (n > 1 && text[0] == '$')
                return parse_number(text + 1, n - 1, &number) && snprintf(ret, OPERAND_SIZE, "\\%lld", number) > 0;
        if (!open || text[n - 1] != ')' || n - (size_t)(open - text) < 4 || open[1] != '%')
                return false;
        if (open > text && !parse_number(text, (size_t)(open - text), &number))
                return false;
        /* half of a register is an address only to a 32-bit program, where the other half is 0 */
        name = x86_register(open + 2, n - (size_t)(open - text) - 3, !is_64, !is_64);
        return name && snprintf(ret, OPERAND_SIZE, "%+lld(%%%s)", number, name) > 0;
}

/* x0 to x30, w0 to w30, sp; xzr and wzr are a zero that no register holds. */
static bool arm_register(const char *text, size_t n, char ret[static 8]) {
        long long number;

        if (n == 2 && memcmp(text, "sp", 2) == 0)
                return snprintf(ret, 8, "%%sp") > 0;
        if (n < 2 || n > 3 || (text[0] != 'x' && text[0] != 'w') || text[1] < '0' || text[1] > '9' ||
            !parse_number(text + 1, n - 1, &number) || number > 30 || (text[1] == '0' && n > 2))
                return false;
        return snprintf(ret, 8, "%%x%lld", number) > 0;
}

/* "x0", "w0", "5", "#5", "[x0]", "[sp, 16]", "[x0, #-8]" */
static bool translate_arm(const char *text, size_t n, char ret[static OPERAND_SIZE]) {
        const char *comma, *end = text + n - 1;
        long long number = 0;
        char name[8];

        if (n == 3 && (memcmp(text, "xzr", 3) == 0 || memcmp(text, "wzr", 3) == 0))
                return snprintf(ret, OPERAND_SIZE, "\\0") > 0;
        if (n > 0 && text[0] != '[') {
                if (arm_register(text, n, name))
                        return snprintf(ret, OPERAND_SIZE, "%s", name) > 0;
                if (text[0] == '#')
                        text++, n--;
                return parse_number(text, n, &number) && snprintf(ret, OPERAND_SIZE, "\\%lld", number) > 0;
        }
        if (n < 4 || *end != ']')
                return false;
        comma = memchr(text, ',', n);
        if (!arm_register(text + 1, (size_t)((comma ?: end) - text) - 1, name) || text[1] == 'w')
                return false;
        if (comma) {
                comma++;
                comma += strspn(comma, " ");
                comma += *comma == '#';
                if (comma >= end || !parse_number(comma, (size_t)(end - comma), &number))
                        return false;
        }
        return snprintf(ret, OPERAND_SIZE, "%+lld(%s)", number, name) > 0;
}

/* "-4@" says how many bytes, and with a minus that they are signed; without it a whole unsigned word. */
static const char *take_type(Operand *o) {
        static const struct {
                const char *text, *type;
        } sizes[] = {
                { "1@", "u8" }, { "2@", "u16" }, { "4@", "u32" }, { "8@", "u64" },
                { "-1@", "s8" }, { "-2@", "s16" }, { "-4@", "s32" }, { "-8@", "s64" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                if (o->n > strlen(sizes[i].text) && memcmp(o->text, sizes[i].text, strlen(sizes[i].text)) == 0) {
                        o->text += strlen(sizes[i].text);
                        o->n -= strlen(sizes[i].text);
                        return sizes[i].type;
                }
        return memchr(o->text, '@', o->n) ? NULL : "u64";
}

/* Up to the next space that is in no brackets: arm64 writes "[sp, 16]". */
static Operand next_operand(const char **text) {
        Operand o = { .text = *text + strspn(*text, " \t\n") };
        unsigned depth = 0;

        while (o.text[o.n] && (depth > 0 || !strchr(" \t\n", o.text[o.n]))) {
                depth += o.text[o.n] == '[' || o.text[o.n] == '(';
                depth -= depth > 0 && (o.text[o.n] == ']' || o.text[o.n] == ')');
                o.n++;
        }
        *text = o.text + o.n;
        return o;
}

static bool translate(uint16_t machine, Operand o, char ret[static OPERAND_SIZE]) {
        if (machine == EM_X86_64 || machine == EM_386)
                return translate_x86(machine == EM_X86_64, o.text, o.n, ret);
        return machine == EM_AARCH64 && translate_arm(o.text, o.n, ret);
}

char *elf_probe_fetch_args(const ElfProbe *p, Explanation *e) {
        _cleanup_free_ char *args = NULL, *left = NULL;
        size_t n_args = 0, n_left = 0;
        FILE *to = open_memstream(&args, &n_args), *without = open_memstream(&left, &n_left);
        const char *text = p->arguments;
        bool is_whole;

        for (unsigned i = 1; to && without; i++) {
                Operand all = next_operand(&text), o = all;
                char fetched[OPERAND_SIZE];
                const char *type;

                if (all.n == 0)
                        break;
                type = take_type(&o);
                if (type && translate(p->machine, o, fetched))
                        fprintf(to, "%sarg%u=%s:%s", ftell(to) > 0 ? " " : "", i, fetched, type);
                else {
                        _cleanup_free_ char *operand = strndup(all.text, all.n);

                        fprintf(without, "%sarg%u (%s)", ftell(without) > 0 ? ", " : "", i,
                                operand ? QUOTE(operand) : "");
                }
        }
        is_whole = to && without && !ferror(to) && !ferror(without);
        is_whole = (!to || fclose(to) == 0) && is_whole;
        is_whole = (!without || fclose(without) == 0) && is_whole;
        if (!is_whole)
                return NULL;
        if (n_left > 0)
                (void)refuse(e, REFUSED_UNSUPPORTED, "unfetchable", "%s:%s: the kernel cannot fetch %s",
                             QUOTE(p->provider), QUOTE(p->name), left);
        return TAKE_PTR(args);
}
