/*
 * The readers' side: one loop over a few instructions. It trusts two things that were checked before, the program (made
 * by match-compile.c) and that the raw bytes are at least as long as the plan says; what a record itself says about
 * places in it, dynamic fields, is checked at each use.
 */
#include "daemon/route/match.h"

#include <string.h>

#include "daemon/model/field.h"
#include "daemon/route/filter-tree.h"
#include "daemon/route/match-program.h"

static bool text_at(const MatchProgram *p, uint16_t text, const Record *r, const uint8_t **ret, size_t *ret_size) {
        uint32_t size;

        if (text == MATCH_TEXT_COMM) {
                *ret = (const uint8_t *)r->comm;
                *ret_size = strnlen(r->comm, COMM_SIZE);
                return true;
        }
        if (field_locate(&p->fields[text], r->raw, r->raw_size, ret, &size) != 0)
                return false;
        if (size == 0 && p->has_faults && p->fields[text].place != PLACE_FIXED) /* the probe could not read it */
                return false;
        *ret_size = size;
        return true;
}

/* The commonest of all: no calls for at most 16 bytes, of which mostly the first differs. */
static bool match_comm(const Pattern *p, const char *comm) {
        for (uint32_t k = 0; k < p->min_length; k++)
                if (k == COMM_SIZE || (uint8_t)comm[k] != p->bytes[k])
                        return false;
        return p->min_length == COMM_SIZE || comm[p->min_length] == '\0';
}

static bool match_pattern(const MatchProgram *p, const MatchInsn *i, const Record *r) {
        const uint8_t *text;
        size_t size;

        if (i->text == MATCH_TEXT_COMM && pattern_is_plain(i->pattern))
                return match_comm(i->pattern, r->comm) != i->negate;
        return text_at(p, i->text, r, &text, &size) && pattern_match(i->pattern, text, size) != i->negate;
}

static bool match_same_text(const MatchProgram *p, const MatchInsn *i, const Record *r) {
        const uint8_t *a, *b;
        size_t n_a, n_b;

        if (!text_at(p, i->text, r, &a, &n_a) || !text_at(p, i->other_text, r, &b, &n_b))
                return false;
        n_a = strnlen((const char *)a, n_a);
        n_b = strnlen((const char *)b, n_b);
        return (n_a == n_b && memcmp(a, b, n_a) == 0) != i->negate;
}

/* Two of the same sign, either sign, have the order of their bits. */
static bool match_compare(const MatchInsn *i, uint64_t a, uint64_t b) {
        bool a_negative = i->left_signed && (int64_t)a < 0, b_negative = i->right_signed && (int64_t)b < 0;
        bool is_less = a_negative != b_negative ? a_negative : a < b;
        bool is_equal = a_negative == b_negative && a == b;

        switch ((FilterKind)i->relation) {
        case FILTER_EQUAL:
                return is_equal;
        case FILTER_UNEQUAL:
                return !is_equal;
        case FILTER_LESS:
                return is_less;
        case FILTER_LESS_EQUAL:
                return is_less || is_equal;
        case FILTER_GREATER:
                return !is_less && !is_equal;
        default:
                return !is_less;
        }
}

#define FIELD_OF(i) &p->fields[(i)->text], r->raw, r->raw_size, (i)->offset

/* Long because it is one switch. */
bool match_run_from(const MatchProgram *p, uint16_t at, const Record *r) {
        uint64_t stack[MATCH_MAX_STACK], number;
        unsigned n = 0;

        if (at > MATCH_YES && atomic_load_explicit(&p->is_over, memory_order_relaxed))
                return false;
        while (at > MATCH_YES) {
                const MatchInsn *i = &p->insns[at];
                bool hit = true;

                switch ((MatchOp)i->op) {
                case MATCH_TEST_U8:
                        hit = match_in_range(i, field_load(match_number(i, r), 1, false));
                        break;
                case MATCH_TEST_U16:
                        hit = match_in_range(i, field_load(match_number(i, r), 2, false));
                        break;
                case MATCH_TEST_U32:
                        hit = match_in_range(i, field_load(match_number(i, r), 4, false));
                        break;
                case MATCH_TEST_U64:
                        hit = match_in_range(i, field_load(match_number(i, r), 8, false));
                        break;
                case MATCH_TEST_S8:
                        hit = match_in_range(i, field_load(match_number(i, r), 1, true));
                        break;
                case MATCH_TEST_S16:
                        hit = match_in_range(i, field_load(match_number(i, r), 2, true));
                        break;
                case MATCH_TEST_S32:
                        hit = match_in_range(i, field_load(match_number(i, r), 4, true));
                        break;
                case MATCH_TEST_ELEMENT:
                        hit = field_number(FIELD_OF(i), &number) == 0 && match_in_range(i, number);
                        break;
                case MATCH_PATTERN:
                        hit = match_pattern(p, i, r);
                        break;
                case MATCH_SAME_TEXT:
                        hit = match_same_text(p, i, r);
                        break;
                case MATCH_PUSH:
                        number = field_load(match_number(i, r), i->width, i->is_signed);
                        stack[n++] = (number & i->keep) | i->set;
                        break;
                case MATCH_PUSH_ELEMENT:
                        hit = field_number(FIELD_OF(i), &number) == 0;
                        if (hit)
                                stack[n++] = (number & i->keep) | i->set;
                        else
                                n = 0;
                        break;
                case MATCH_PUSH_CONSTANT:
                        stack[n++] = i->set;
                        break;
                case MATCH_BIT_AND:
                        n--;
                        stack[n - 1] &= stack[n];
                        break;
                case MATCH_BIT_OR:
                        n--;
                        stack[n - 1] |= stack[n];
                        break;
                case MATCH_COMPARE:
                        hit = match_compare(i, stack[0], stack[1]);
                        n = 0;
                        break;
                case MATCH_NO: /* the loop has ended */
                case MATCH_YES:
                        break;
                }
                at = hit ? i->yes : i->no;
        }
        return at == MATCH_YES;
}

bool match_run(const MatchProgram *p, const Record *r) {
        return match_run_from(p, p->start, r);
}

bool match_is_partial(const MatchProgram *p) {
        return p->parts;
}

ConditionWord match_run_parts(const MatchProgram *p, const Record *r, uint32_t number) {
        ConditionWord word = { .number = number, .known = p->known | (r->is_comm_sure ? p->of_comm : 0) };

        FOR_EACH_BIT(part, word.known)
                if (match_run_from(p, p->parts[part], r))
                        word.holds |= 1U << part;
        return word;
}

MatchProgram *match_program_ref(MatchProgram *p) {
        if (p)
                atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
        return p;
}

MatchProgram *match_program_unref(MatchProgram *p) {
        if (!p || atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        for (uint32_t i = 0; i < p->n_patterns; i++)
                pattern_free(p->patterns[i]);
        free(p->patterns);
        free(p->parts);
        free(p->fields);
        free(p->insns);
        free(p);
        return NULL;
}

void match_program_end(MatchProgram *p) {
        atomic_store_explicit(&p->is_over, true, memory_order_relaxed);
}

bool match_needs_comm(const MatchProgram *p) {
        return p->needs_comm;
}
