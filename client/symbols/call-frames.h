/*
 * For this folder alone: call frame information, .eh_frame and .debug_frame: where a function's caller has its registers, for each address
 * of the function. It is read here and not by libdw, which allocates as many registers as a file names, and reads all of a file for one
 * section of it: what is read here is bounded, whatever the file says.
 */
#pragma once

#include "client/symbols/elf-symbols.h"

#define FRAME_REGISTERS 33 /* by DWARF's numbers: 0 to 16 of x86-64, 16 is where it returns to; 0 to 31 of arm64, 30 is that */

typedef enum RuleKind {
        RULE_SAME,             /* as it is; of the stack pointer: the CFA */
        RULE_UNDEFINED,        /* of where it returns to: it does not */
        RULE_AT_CFA,           /* in memory, `number` bytes from the CFA */
        RULE_CFA,              /* the CFA and `number` bytes */
        RULE_REGISTER,         /* in another one, `number` */
        RULE_EXPRESSION,       /* in memory, where the expression says */
        RULE_VALUE_EXPRESSION, /* what the expression says */
} RuleKind;

typedef struct Rule {
        RuleKind kind;
        uint32_t length; /* of the expression */
        int64_t number;  /* of the expression: where it is in the section */
} Rule;

/* Of one address. */
typedef struct FrameRules {
        const struct FrameSection *section; /* in which expressions are */
        Rule cfa; /* RULE_REGISTER: and cfa_offset bytes; RULE_VALUE_EXPRESSION; RULE_UNDEFINED: none */
        int64_t cfa_offset;
        uint8_t return_register;
        bool is_signal; /* what it returns to was interrupted, and has not called */
        Rule registers[FRAME_REGISTERS];
} FrameRules;

/* The addresses of a function, and where its entry is. */
typedef struct FrameEntry {
        uint64_t start, length;
        uint32_t at; /* bytes from the beginning of the section */
} FrameEntry;

typedef struct FrameSection {
        uint8_t *bytes;
        size_t n;
        uint64_t address; /* that it was linked for */
        bool is_debug;    /* .debug_frame */
        FrameEntry *entries; /* by address */
        size_t n_entries, room;
} FrameSection;

/* Takes the bytes, allocated, in either case. What is damaged in it is stepped over. 0; -ENOMEM */
int frame_section_init(FrameSection *f, uint8_t *bytes, size_t n, uint64_t address, bool is_debug);
void frame_section_deinit(FrameSection *f);
size_t frame_section_bytes(const FrameSection *f);
/* False: it knows nothing of that address, or what it says makes no sense. */
bool frame_section_find(const FrameSection *f, uint64_t address, FrameRules *ret);

/* What an expression and a rule read. */
typedef struct FrameState {
        uint64_t registers[FRAME_REGISTERS];
        uint64_t known; /* a bit for each that is */
        const uint8_t *stack;
        uint64_t stack_at, n_stack; /* its lowest address; bytes */
} FrameState;

/* size: up to 8 bytes. False: it is not in the stack. */
bool frame_state_read(const FrameState *s, uint64_t address, size_t size, uint64_t *ret);
/* frame-expression.c: first: what is on its stack already (NULL: nothing). False: it makes no sense, or reads what is not there. */
bool frame_expression(const FrameState *s, const uint8_t *bytes, size_t n, const uint64_t *first, uint64_t *ret);
