/*
 * Conditions to questions with two ways on, from the last to the first: && and || then cost nothing, and what is decided
 * by constants leaves no question behind. A comparison of one number with constants is always one range test, and a
 * text in a fixed place compared with a short one is a few number tests.
 */
#include <assert.h>
#include <malloc.h>
#include <string.h>

#include "daemon/model/field.h"
#include "daemon/route/filter-process.h"
#include "daemon/route/match-program.h"
#include "daemon/route/match-resolve.h"

#define MAX_TESTED_TEXT 32 /* bytes of a text that are tested as numbers */
#define MAX_TESTS 8        /* that this can need: 8 8 8 4 2 1, or fewer that overlap the place's end */

typedef struct Compiler {
        const Filter *filter;
        const Operand *operands;
        const char *event;
        MatchProgram *program;
        bool is_denied; /* below an odd number of ! */
        bool is_part;   /* comm is asked without a doubt: who asks knows that it is sure */
        int error;
} Compiler;

static uint16_t emit(Compiler *c, MatchInsn insn) {
        MatchProgram *p = c->program;

        p->insns[p->n_insns] = insn;
        return (uint16_t)p->n_insns++;
}

static uint16_t add_field(Compiler *c, const PlanField *f) {
        MatchProgram *p = c->program;

        p->fields[p->n_fields] = (PlanField){ .kind = f->kind, .place = f->place, .offset = f->offset,
                                              .element_size = f->element_size, .count = f->count };
        return (uint16_t)p->n_fields++;
}

/* The place of a leaf's number, for a TEST or a PUSH, with everything else still to be set. */
static MatchInsn number_at(Compiler *c, uint16_t leaf, uint8_t *ret_width, bool *ret_certain) {
        const Operand *o = &c->operands[leaf];
        int32_t element = c->filter->nodes[leaf].element;

        *ret_certain = o->is_certain;
        if (o->sample) {
                *ret_width = o->sample->size;
                return (MatchInsn){ .base = 1, .offset = o->sample->offset };
        }
        *ret_width = (uint8_t)o->field->element_size;
        if (!o->is_certain)
                return (MatchInsn){ .text = add_field(c, o->field), .offset = element < 0 ? 0 : (uint32_t)element };
        return (MatchInsn){ .offset = o->field->offset + (element < 0 ? 0 : (uint32_t)element * *ret_width) };
}

typedef struct Range {
        enum { RANGE_NONE, RANGE_SOME, RANGE_ALL } which;
        uint64_t low, span; /* number - low <= span */
} Range;

/*
 * The numbers that have this relation to a constant. Ordered numbers are counted from the least that they can be (0, or
 * -2^63 if they may be negative), as is the constant, if it is not beyond all of them.
 */
static Range find_range(FilterKind relation, uint64_t constant, bool is_negative, bool may_be_negative) {
        const Range none = { .which = RANGE_NONE }, all = { .which = RANGE_ALL, .span = UINT64_MAX };
        uint64_t least = may_be_negative ? (uint64_t)1 << 63 : 0, at = constant - least;
        bool below = is_negative && !may_be_negative, above = may_be_negative && !is_negative && (int64_t)constant < 0;

        switch (relation) {
        case FILTER_EQUAL:
                return below || above ? none : (Range){ RANGE_SOME, constant, 0 };
        case FILTER_UNEQUAL:
                return below || above ? all : (Range){ RANGE_SOME, constant + 1, UINT64_MAX - 1 };
        case FILTER_LESS:
                return below || (!above && at == 0) ? none : above ? all : (Range){ RANGE_SOME, least, at - 1 };
        case FILTER_LESS_EQUAL:
                return below ? none : above || at == UINT64_MAX ? all : (Range){ RANGE_SOME, least, at };
        case FILTER_GREATER:
                return above || (!below && at == UINT64_MAX) ? none
                       : below                               ? all
                                                             : (Range){ RANGE_SOME, constant + 1, UINT64_MAX - at - 1 };
        default:
                return above ? none : below || at == 0 ? all : (Range){ RANGE_SOME, constant, UINT64_MAX - at };
        }
}

static uint8_t test_op(uint8_t width, bool is_signed) {
        switch (width) {
        case 8:
                return MATCH_TEST_U64;
        case 4:
                return is_signed ? MATCH_TEST_S32 : MATCH_TEST_U32;
        case 2:
                return is_signed ? MATCH_TEST_S16 : MATCH_TEST_U16;
        default:
                return is_signed ? MATCH_TEST_S8 : MATCH_TEST_U8;
        }
}

/* One number, alone or with constants, in a relation to a constant. */
static uint16_t emit_test(Compiler *c, FilterKind relation, const Operand *o, const Operand *constant, uint16_t yes,
                          uint16_t no) {
        Range range = find_range(relation, constant->set, constant->is_signed, o->is_signed);
        const Operand *leaf = &c->operands[o->source];
        bool is_certain;
        uint8_t width;
        MatchInsn i;

        if (range.which == RANGE_NONE || (range.which == RANGE_ALL && leaf->is_certain))
                return range.which == RANGE_NONE ? no : yes;
        i = number_at(c, o->source, &width, &is_certain);
        i.op = is_certain ? test_op(width, leaf->is_signed) : MATCH_TEST_ELEMENT;
        i.keep = o->keep;
        i.set = o->set;
        i.low = range.low;
        i.span = range.span;
        i.yes = yes;
        i.no = no;
        return emit(c, i);
}

/* A number is put on the stack, then `next`; or `no`, if it is not there. */
static uint16_t emit_push(Compiler *c, uint16_t node, uint16_t next, uint16_t no) {
        const FilterNode *n = &c->filter->nodes[node];
        const Operand *o = &c->operands[node];
        bool is_certain, right_first;
        uint16_t first, second;
        uint8_t width;
        MatchInsn i;

        if (o->is_simple && !o->has_source)
                return emit(c, (MatchInsn){ .op = MATCH_PUSH_CONSTANT, .set = o->set, .yes = next, .no = no });
        if (!o->is_simple) {
                right_first = c->operands[n->right].depth > c->operands[n->left].depth;
                first = right_first ? n->right : n->left;
                second = right_first ? n->left : n->right;
                next = emit(c, (MatchInsn){ .op = n->kind == FILTER_BIT_AND ? MATCH_BIT_AND : MATCH_BIT_OR, .yes = next,
                                            .no = no });
                return emit_push(c, first, emit_push(c, second, next, no), no);
        }
        i = number_at(c, o->source, &width, &is_certain);
        i.op = is_certain ? MATCH_PUSH : MATCH_PUSH_ELEMENT;
        if (is_certain) {
                i.width = width;
                i.is_signed = c->operands[o->source].is_signed;
        }
        i.keep = o->keep;
        i.set = o->set;
        i.yes = next;
        i.no = no;
        return emit(c, i);
}

static bool is_constant(const Operand *o) {
        return o->is_simple && !o->has_source;
}

static bool compare_constants(FilterKind relation, const Operand *a, const Operand *b) {
        Range range = find_range(relation, b->set, b->is_signed, a->is_signed);

        return range.which == RANGE_ALL || (range.which == RANGE_SOME && a->set - range.low <= range.span);
}

static uint16_t emit_numbers(Compiler *c, const FilterNode *n, uint16_t yes, uint16_t no) {
        const Operand *a = &c->operands[n->left], *b = &c->operands[n->right];

        if (is_constant(a) && is_constant(b))
                return compare_constants(n->kind, a, b) ? yes : no;
        if (is_constant(b) && a->is_simple)
                return emit_test(c, n->kind, a, b, yes, no);
        if (is_constant(a) && b->is_simple)
                return emit_test(c, filter_mirror(n->kind), b, a, yes, no);
        assert(a->depth < MATCH_MAX_STACK && b->depth < MATCH_MAX_STACK); /* 2^depth terms: FILTER_MAX_TERMS is 2^8 */
        yes = emit(c, (MatchInsn){ .op = MATCH_COMPARE, .relation = (uint8_t)n->kind, .left_signed = a->is_signed,
                                   .right_signed = b->is_signed, .yes = yes, .no = no });
        return emit_push(c, n->left, emit_push(c, n->right, yes, no), no);
}

/* A number where a condition is needed: whether it is not 0. */
static uint16_t emit_number(Compiler *c, uint16_t node, uint16_t yes, uint16_t no) {
        const Operand zero = { .is_simple = true }, *o = &c->operands[node];

        if (is_constant(o))
                return o->set != 0 ? yes : no;
        if (o->is_simple)
                return emit_test(c, FILTER_UNEQUAL, o, &zero, yes, no);
        yes = emit(c, (MatchInsn){ .op = MATCH_COMPARE, .relation = FILTER_UNEQUAL, .yes = yes, .no = no });
        return emit_push(c, node, emit(c, (MatchInsn){ .op = MATCH_PUSH_CONSTANT, .yes = yes, .no = no }), no);
}

/* The first `size` bytes at `offset` are these; `place` bytes may be read. */
static uint16_t emit_bytes(Compiler *c, const uint8_t *bytes, uint32_t size, uint32_t offset, uint32_t place,
                           uint16_t yes, uint16_t no) {
        uint8_t ones[8] = { 0 }, wanted[8] = { 0 }, width = 8;
        uint32_t n;

        if (size == 0)
                return yes;
        while (width > place)
                width /= 2;
        n = size < width ? size : width;
        memset(ones, 0xff, n);
        memcpy(wanted, bytes, n);
        yes = emit_bytes(c, bytes + n, size - n, offset + n, place - n, yes, no);
        return emit(c, (MatchInsn){ .op = test_op(width, false), .offset = offset, .keep = field_load(ones, width, false),
                                    .low = field_load(wanted, width, false), .yes = yes, .no = no });
}

/* A text in a fixed place, and plain characters, alone or with a * behind them. */
static uint16_t emit_fixed_text(Compiler *c, const PlanField *f, const Pattern *pattern, uint16_t yes, uint16_t no) {
        uint32_t length = pattern->parts[0].length;
        uint8_t wanted[MAX_TESTED_TEXT + 1] = { 0 };

        if (length > f->count)
                return no;
        memcpy(wanted, pattern->bytes, length);
        if (pattern_is_plain(pattern) && length < f->count)
                length++; /* with the zero behind it */
        return emit_bytes(c, wanted, length, f->offset, f->count, yes, no);
}

static uint16_t add_text(Compiler *c, uint16_t leaf) {
        const Operand *o = &c->operands[leaf];

        c->program->needs_comm |= o->sample && !o->process;
        return o->sample ? MATCH_TEXT_COMM : add_field(c, o->field);
}

static uint16_t emit_texts(Compiler *c, const FilterNode *n, uint16_t yes, uint16_t no) {
        bool constant_left = c->filter->nodes[n->left].kind == FILTER_TEXT, negate = n->kind == FILTER_UNEQUAL;
        uint16_t leaf = constant_left ? n->right : n->left, other = constant_left ? n->left : n->right;
        const FilterNode *constant = &c->filter->nodes[other];
        const Operand *o = &c->operands[leaf];
        _cleanup_(pattern_freep) Pattern *pattern = NULL;
        MatchInsn i = { .op = MATCH_SAME_TEXT, .negate = negate, .yes = yes, .no = no };

        if (constant->kind != FILTER_TEXT) {
                i.text = add_text(c, leaf);
                i.other_text = add_text(c, other);
                return emit(c, i);
        }
        pattern = pattern_new(c->filter->units + constant->unit, constant->n_units, c->filter->sets);
        if (!pattern) {
                c->error = error_origin(-ENOMEM);
                return no;
        }
        if (o->is_event)
                return pattern_match(pattern, (const uint8_t *)c->event, strlen(c->event)) != negate ? yes : no;
        if (o->field && o->is_certain && pattern->min_length < MAX_TESTED_TEXT &&
            (pattern_is_plain(pattern) || pattern_is_prefix(pattern)))
                return emit_fixed_text(c, o->field, pattern, negate ? no : yes, negate ? yes : no);
        i.op = MATCH_PATTERN;
        i.text = add_text(c, leaf);
        i.pattern = c->program->patterns[c->program->n_patterns++] = TAKE_PTR(pattern);
        return emit(c, i);
}

/* The reader cannot answer it: what may be true is taken for true, and what is denied for false. */
static bool is_of_process(const Compiler *c, uint16_t node) {
        const FilterNode *n = &c->filter->nodes[node];

        return filter_is_comparison(n->kind) && (c->operands[n->left].process || c->operands[n->right].process);
}

/* Of comm: where it is sure, that is answered. */
static uint16_t emit_process(Compiler *c, uint16_t node, uint16_t yes, uint16_t no) {
        const FilterNode *n = &c->filter->nodes[node];
        const bool is_comm = c->operands[n->left].process == PROCESS_COMM ||
                             c->operands[n->right].process == PROCESS_COMM;
        const uint16_t maybe = c->is_denied ? no : yes;
        uint16_t sure;

        if (!is_comm)
                return maybe;
        sure = emit_texts(c, n, yes, no);
        if (c->is_part)
                return sure;
        return emit(c, (MatchInsn){ .op = MATCH_TEST_U8, .base = 1, .offset = offsetof(Record, is_comm_sure), .keep = UINT64_MAX,
                                    .low = 1, .yes = sure, .no = maybe });
}

static uint16_t emit_condition(Compiler *c, uint16_t node, uint16_t yes, uint16_t no) {
        const FilterNode *n = &c->filter->nodes[node];

        if (yes == no)
                return yes;
        if (is_of_process(c, node))
                return emit_process(c, node, yes, no);
        switch (n->kind) {
        case FILTER_OR:
                return emit_condition(c, n->left, yes, emit_condition(c, n->right, yes, no));
        case FILTER_AND:
                return emit_condition(c, n->left, emit_condition(c, n->right, yes, no), no);
        case FILTER_NOT:
                c->is_denied = !c->is_denied;
                no = emit_condition(c, n->left, no, yes);
                c->is_denied = !c->is_denied;
                return no;
        default:
                if (!filter_is_comparison(n->kind))
                        return emit_number(c, node, yes, no);
                return c->operands[n->left].is_text ? emit_texts(c, n, yes, no) : emit_numbers(c, n, yes, no);
        }
}

/* What a part is of that readers do not always know: it has one name. */
static ProcessPart asked_of_process(const Compiler *c, uint16_t node) {
        for (uint32_t i = c->filter->nodes[node].first; i < node; i++)
                if (c->operands[i].process)
                        return c->operands[i].process;
        return PROCESS_NONE;
}

/* Of an expression that asks for the process somewhere, if not of this event: what the dispatcher has to know. */
static int emit_parts(Compiler *c, Explanation *e) {
        FilterSplit split;
        int r;

        if (!filter_asks_process(c->filter))
                return 0;
        r = filter_split(c->filter, &split, e);
        if (r != 0)
                return r;
        c->program->parts = calloc(split.n, sizeof(*c->program->parts));
        if (!c->program->parts)
                return error_origin(-ENOMEM);
        c->is_part = true;
        for (unsigned i = 0; i < split.n; i++) {
                const uint16_t node = split.parts[i].node;
                const ProcessPart asked = asked_of_process(c, node);

                if (asked != PROCESS_NONE && asked != PROCESS_COMM)
                        continue;
                c->program->parts[i] = emit_condition(c, node, MATCH_YES, MATCH_NO);
                *(asked == PROCESS_COMM ? &c->program->of_comm : &c->program->known) |= 1U << i;
        }
        return 0;
}

/* Room for the most that the filter can need: twice as much, if what is asked is also asked part by part. */
static MatchProgram *program_new(const Filter *f) {
        _cleanup_(match_program_unrefp) MatchProgram *p = calloc(1, sizeof(*p));
        size_t n_names = 0, n_texts = 0, times = filter_asks_process(f) ? 2 : 1;

        if (!p)
                return NULL;
        p->n_refs = 1;
        for (uint32_t i = 0; i < f->n_nodes; i++) {
                n_names += f->nodes[i].kind == FILTER_NAME;
                n_texts += f->nodes[i].kind == FILTER_TEXT;
        }
        p->insns = calloc(MATCH_YES + 1 + times * (3 * (size_t)f->n_nodes + MAX_TESTS * n_texts), sizeof(*p->insns));
        p->fields = calloc(times * n_names + 1, sizeof(*p->fields));
        p->patterns = calloc(times * n_texts + 1, sizeof(*p->patterns));
        if (!p->insns || !p->fields || !p->patterns)
                return NULL;
        return TAKE_PTR(p);
}

size_t match_program_size(const MatchProgram *p) {
        size_t size = sizeof(*p) + malloc_usable_size(p->parts) + malloc_usable_size(p->insns) +
                      malloc_usable_size(p->fields) + malloc_usable_size(p->patterns);

        for (uint32_t i = 0; i < p->n_patterns; i++)
                size += malloc_usable_size(p->patterns[i]);
        return size;
}

int filter_compile(const Filter *f, const Plan *plan, const char *event, MatchProgram **ret, Explanation *e) {
        _cleanup_(match_program_unrefp) MatchProgram *p = NULL;
        _cleanup_free_ Operand *operands = calloc(f->n_nodes, sizeof(*operands));
        Compiler c = { .filter = f, .operands = operands, .event = event };
        MatchInsn *insns;
        int k;

        if (!operands)
                return error_origin(-ENOMEM);
        k = match_resolve(f, plan, event, operands, e);
        if (k != 0)
                return k;
        c.program = p = program_new(f);
        if (!p)
                return error_origin(-ENOMEM);
        p->has_faults = plan && plan->has_faults;
        emit(&c, (MatchInsn){ .op = MATCH_NO });
        emit(&c, (MatchInsn){ .op = MATCH_YES });
        p->start = emit_condition(&c, (uint16_t)(f->n_nodes - 1), MATCH_YES, MATCH_NO);
        k = emit_parts(&c, e) ?: c.error;
        if (k != 0)
                return k;
        insns = reallocarray(p->insns, p->n_insns, sizeof(*insns));
        if (insns)
                p->insns = insns;
        match_find_ranges(p);
        *ret = TAKE_PTR(p);
        return 0;
}
