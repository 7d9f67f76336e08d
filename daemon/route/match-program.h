/*
 * The inside of a MatchProgram, for what makes it (match-compile.c) and what runs it (match.c).
 *
 * Each instruction is a question with two ways on. Programs are made from their end, so that both ways are known when
 * an instruction is made: the first two are the answers, and `start` is the last one made, or an answer if nothing is
 * left to ask.
 */
#pragma once

#include <stdatomic.h>

#include "daemon/model/field.h"
#include "daemon/model/record.h"
#include "daemon/base/pattern.h"
#include "daemon/route/match.h"

typedef enum MatchOp {
        MATCH_NO,
        MATCH_YES,

        /* ((the number at offset & keep) | set) - low <= span, in 64 bits that wrap: every comparison with a constant */
        MATCH_TEST_U8,
        MATCH_TEST_U16,
        MATCH_TEST_U32,
        MATCH_TEST_U64, /* signed ones too: their order is a range like any other */
        MATCH_TEST_S8,
        MATCH_TEST_S16,
        MATCH_TEST_S32,
        MATCH_TEST_ELEMENT, /* of element `offset` of fields[text]; `no` without one */

        MATCH_PATTERN,   /* text, pattern, negate */
        MATCH_SAME_TEXT, /* text, other_text, negate */

        /* Two operands that both come from the record: on a stack, which a comparison begins and leaves empty. */
        MATCH_PUSH,         /* (the number at offset & keep) | set */
        MATCH_PUSH_ELEMENT, /* the same of an element; `no` without one */
        MATCH_PUSH_CONSTANT, /* set */
        MATCH_BIT_AND,
        MATCH_BIT_OR,
        MATCH_COMPARE, /* relation of the second from the top to the top */
} MatchOp;

#define MATCH_MAX_STACK 16
#define MATCH_TEXT_COMM UINT16_MAX /* as `text`: the record's comm; else an index into fields */

typedef struct MatchInsn {
        uint8_t op;
        uint8_t base; /* of offset: 0 raw bytes, 1 the Record */
        uint16_t yes, no;
        union {
                uint16_t text;
                struct {
                        uint8_t width; /* PUSH: bytes */
                        bool is_signed;
                };
                struct {
                        uint8_t relation; /* COMPARE: a FilterKind */
                        bool left_signed, right_signed;
                };
        };
        uint32_t offset;
        union {
                struct {
                        uint64_t keep, set, low, span;
                };
                struct {
                        const Pattern *pattern;
                        uint16_t other_text;
                        bool negate;
                };
        };
} MatchInsn;

/*
 * A question about the number that ends where the 8 bytes at `at` end, so that one form serves all widths and signs:
 * (those bytes & keep) - low <= span.
 */
typedef struct MatchRange {
        uint64_t keep, low, span;
        uint32_t at;
        uint16_t insn; /* that asks the same */
        uint8_t base;  /* as MatchInsn.base */
} MatchRange;

#define MATCH_RANGES 4

struct MatchProgram {
        _Atomic(unsigned) n_refs; /* taken relaxed by who has one; given with acq_rel: the last one sees all that was done */
        atomic_bool is_over; /* main's; alone: whoever sees it later has asked in vain */
        uint16_t start;
        uint16_t rest;     /* where it goes on behind `ranges`; an answer, if they are all */
        uint32_t n_ranges; /* with which it begins: all must hold, or the answer is no */
        MatchRange ranges[MATCH_RANGES];
        uint32_t n_insns, n_fields, n_patterns;
        MatchInsn *insns;
        PlanField *fields; /* shapes only: without names and values */
        Pattern **patterns;
        uint16_t *parts; /* where each part of the condition begins that readers know; NULL: the program is the whole of it */
        uint32_t known;  /* which these are */
        uint32_t of_comm; /* those that readers know only if the record's comm is sure */
        bool needs_comm;
        bool has_faults; /* as Plan.has_faults */
};

static inline bool match_in_range(const MatchInsn *i, uint64_t number) {
        return ((number & i->keep) | i->set) - i->low <= i->span;
}

static inline const uint8_t *match_number(const MatchInsn *i, const Record *r) {
        return (i->base ? (const uint8_t *)r : r->raw) + i->offset;
}

/* match_run() from one instruction on; `at` may be an answer. */
bool match_run_from(const MatchProgram *p, uint16_t at, const Record *r);

/* match-ranges.c: sets `rest` and the ranges of a program that is whole otherwise. */
void match_find_ranges(MatchProgram *p);

static inline bool match_range_holds(const MatchRange *q, const uint8_t *at) {
        return (field_load(at, sizeof(uint64_t), false) & q->keep) - q->low <= q->span;
}

/* For readers: match_run(), with those questions in place that are the commonest. Most samples are asked no others. */
static inline bool match_ask(const MatchProgram *p, const Record *r) {
        for (const MatchRange *q = p->ranges, *end = q + p->n_ranges; q < end; q++)
                if (!match_range_holds(q, (q->base ? (const uint8_t *)r : r->raw) + q->at))
                        return false;
        return p->rest == MATCH_YES || match_run_from(p, p->rest, r);
}
