/*
 * What each node of a Filter is for one event: fields found, value names replaced by their values, kinds checked. After
 * this nothing about the expression can be wrong any more.
 */
#pragma once

#include "daemon/model/plan.h"
#include "daemon/route/filter-process.h"

/* A part of every sample: `size` bytes at `offset` of a Record; comm, the only text, is a pointer. */
typedef struct SamplePart {
        char name[8];
        uint16_t offset;
        uint8_t size;
        bool without_plan; /* only of events that have no Plan */
} SamplePart;

/* Of a leaf, & or |. Of conditions nothing but their operands is looked at. */
typedef struct Operand {
        bool is_text;
        const PlanField *field;   /* NAME of the event's own, or NULL */
        const SamplePart *sample; /* NAME of every sample's, or NULL */
        bool is_event;            /* NAME of the event's name, which is known: compared with texts in quotes, and nothing else */
        /* NAME of what only the dispatcher knows: compared with constants, and nothing else. COMM: see Record.is_comm_sure */
        ProcessPart process;
        bool is_certain;          /* what the leaf names lies in every record */

        /* Numbers: what values it can have: below 0, and 2^63 or more. Never both. */
        bool is_signed, is_wide;
        /* (the leaf `source` & keep) | set; without a source just `set`, a constant that is below 0 if is_signed */
        bool is_simple, has_source;
        uint16_t source;
        uint64_t keep, set;
        uint8_t depth; /* numbers that must be held at once to work it out */
} Operand;

/* `operands` has an entry for each node. event: its name, or NULL: it cannot be asked for. REFUSED_NOT_FOUND, REFUSED_INVALID, -ENOMEM as filter_compile(). */
int match_resolve(const Filter *f, const Plan *plan, const char *event, Operand *operands, Explanation *e);
