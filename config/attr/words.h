/* For attr-setting.c alone: words for the bits of a field of struct perf_event_attr. Static, any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct AttrWord {
        const char *word;
        uint64_t bits;
} AttrWord;

typedef struct AttrWords {
        const AttrWord *words; /* those that are written come before aliases of the same bits */
        size_t n_words;
        uint64_t known;        /* bits that a number may have */
        const char *list;      /* of them, for people */
} AttrWords;

extern const AttrWords attr_sample_words; /* PERF_SAMPLE_ */
extern const AttrWords attr_branch_words; /* PERF_SAMPLE_BRANCH_ */
extern const AttrWords attr_register_words; /* asm/perf_regs.h of the architecture that this is compiled for */
extern const uint64_t attr_unwinding_registers; /* of them, what call frames are found by; 0: this architecture is not unwound */
extern const AttrWords attr_access_words; /* HW_BREAKPOINT_ */
