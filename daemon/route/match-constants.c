/*
 * What can be a mistake only: a comparison with a constant that no sample can fulfil, because the field has not as many bits, the
 * text no room, or the host no such CPU. Others than these, such as the always true `u8 != 300`, are let through.
 */
#include "daemon/route/match.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/model/record.h"
#include "daemon/route/match-resolve.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with the zero that the kernel always puts behind it */

typedef struct Span {
        bool is_signed;
        uint64_t least, most; /* two's complement */
} Span;

static bool is_cpu(const Operand *o) {
        return o->sample && o->sample->offset == offsetof(Record, cpu);
}

static Span span_of(const Operand *leaf, uint32_t n_cpus) {
        unsigned bits = leaf->process ? 32 : 8 * (leaf->sample ? leaf->sample->size : leaf->field->element_size);
        uint64_t most = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;

        if (is_cpu(leaf) && n_cpus > 0)
                return (Span){ .most = n_cpus - 1 };
        if (leaf->is_signed)
                return (Span){ .is_signed = true, .least = ~(most >> 1), .most = most >> 1 };
        return (Span){ .most = most };
}

/* As the integers that they are. */
static int compare(uint64_t a, bool a_negative, uint64_t b, bool b_negative) {
        if (a_negative != b_negative)
                return a_negative ? -1 : 1;
        return a < b ? -1 : a > b;
}

static bool any_in_span(const Span *s, FilterKind relation, const Operand *constant) {
        bool is_negative = constant->is_signed;
        int least = compare(s->least, s->is_signed, constant->set, is_negative), most = compare(s->most, false, constant->set, is_negative);

        switch (relation) {
        case FILTER_EQUAL:
                return least <= 0 && most >= 0;
        case FILTER_LESS:
                return least < 0;
        case FILTER_LESS_EQUAL:
                return least <= 0;
        case FILTER_GREATER:
                return most > 0;
        case FILTER_GREATER_EQUAL:
                return most >= 0;
        default:
                return true;
        }
}

/* A number as it was written: the name of a value is the format's, which may be wider than the field. */
static bool is_written(const Filter *f, const Operand *operands, uint16_t node) {
        return f->nodes[node].kind == FILTER_NUMBER && operands[node].is_simple && !operands[node].has_source;
}

static bool number_can_be(const Filter *f, const Operand *operands, const FilterNode *n, uint32_t n_cpus) {
        bool is_right = is_written(f, operands, n->right);
        uint16_t place = is_right ? n->left : n->right;
        const Operand *o = &operands[place], *constant = &operands[is_right ? n->right : n->left];
        const Operand *leaf;
        Span span;

        if ((!is_right && !is_written(f, operands, n->left)) || !o->is_simple || !o->has_source)
                return true;
        leaf = &operands[o->source];
        span = span_of(leaf, n_cpus);
        if (o->keep == UINT64_MAX && o->set == 0)
                return any_in_span(&span, is_right ? n->kind : filter_mirror(n->kind), constant);
        if (n->kind != FILTER_EQUAL || leaf->is_signed)
                return true;
        return (constant->set & ~((span.most & o->keep) | o->set)) == 0 && (o->set & ~constant->set) == 0;
}

static bool ends_with_comm(const char *name) {
        size_t n = strlen(name);

        return n >= 4 && strcmp(name + n - 4, "comm") == 0;
}

/* The most bytes that the text can have; SIZE_MAX: not known. */
static size_t room_of(const Operand *o) {
        if (o->sample)
                return COMM_SIZE - 1;
        if (!o->field || o->field->place != PLACE_FIXED)
                return SIZE_MAX;
        return o->field->count - (o->field->count == COMM_SIZE && ends_with_comm(o->field->name));
}

static size_t least_length(const Filter *f, const FilterNode *text) {
        size_t n = 0;

        for (uint32_t i = 0; i < text->n_units; i++)
                n += f->units[text->unit + i] != UNIT_STAR;
        return n;
}

static bool text_can_be(const Filter *f, const Operand *operands, const FilterNode *n) {
        bool is_right = f->nodes[n->right].kind == FILTER_TEXT;
        const FilterNode *text = &f->nodes[is_right ? n->right : n->left];

        return text->kind != FILTER_TEXT || n->kind == FILTER_UNEQUAL ||
               least_length(f, text) <= room_of(&operands[is_right ? n->left : n->right]);
}

static bool can_be(const Filter *f, const Operand *operands, uint16_t node, uint32_t n_cpus) {
        const FilterNode *n = &f->nodes[node];

        if (!filter_is_comparison(n->kind))
                return true;
        return operands[n->left].is_text && operands[n->right].is_text ? text_can_be(f, operands, n) :
                                                                         number_can_be(f, operands, n, n_cpus);
}

static int refuse_text(const Filter *f, const Operand *operands, const FilterNode *n, Explanation *e) {
        uint16_t text = f->nodes[n->right].kind == FILTER_TEXT ? n->right : n->left, name = text == n->right ? n->left : n->right;
        size_t room = room_of(&operands[name]);

        return filter_refuse(e, f->nodes[text].position, "this can never match: %s has %zu bytes at most, and this needs %zu%s",
                             QUOTE(f->nodes[name].name), room, least_length(f, &f->nodes[text]),
                             room == COMM_SIZE - 1 ? ": the kernel cuts the names of threads, so write what is left, or "
                                                     "its beginning, as in comm ~ \"name*\"" : "");
}

static int refuse_number(const Filter *f, const Operand *operands, const FilterNode *n, uint32_t n_cpus, Explanation *e) {
        uint16_t constant = is_written(f, operands, n->right) ? n->right : n->left, place = constant == n->right ? n->left : n->right;
        const Operand *o = &operands[place];
        const char *name = f->nodes[o->source].name;
        Span span = span_of(&operands[o->source], n_cpus);
        uint32_t position = f->nodes[constant].position;

        if (o->keep != UINT64_MAX || o->set != 0)
                return filter_refuse(e, position, "this can never match: the bits of %s that are left of it are never equal to this number",
                                     QUOTE(name));
        if (is_cpu(&operands[o->source]))
                return filter_refuse(e, position, "this can never match: the CPUs of this host are 0 to %" PRIu64, span.most);
        if (span.is_signed)
                return filter_refuse(e, position, "this can never match: %s is a number from %" PRId64 " to %" PRId64, QUOTE(name),
                                     (int64_t)span.least, (int64_t)span.most);
        return filter_refuse(e, position, "this can never match: %s is a number from 0 to %" PRIu64, QUOTE(name), span.most);
}

static int refuse_node(const Filter *f, const Operand *operands, uint16_t node, uint32_t n_cpus, Explanation *e) {
        const FilterNode *n = &f->nodes[node];

        return operands[n->left].is_text && operands[n->right].is_text ? refuse_text(f, operands, n, e) :
                                                                         refuse_number(f, operands, n, n_cpus, e);
}

typedef struct Constants {
        Operand *operands; /* of the last event that the filter fits */
        uint32_t n_cpus;
        bool *is_never; /* by node: of no event so far */
        uint32_t n_never;
} Constants;

static void look_at_event(Constants *c, const Filter *f, bool is_first) {
        c->n_never = 0;
        for (uint32_t i = 0; i < f->n_nodes; i++) {
                c->is_never[i] = (is_first || c->is_never[i]) && !can_be(f, c->operands, (uint16_t)i, c->n_cpus);
                c->n_never += c->is_never[i];
        }
}

static int refuse_first(const Constants *c, const Filter *f, Explanation *e) {
        for (uint32_t i = 0; i < f->n_nodes; i++)
                if (c->is_never[i])
                        return refuse_node(f, c->operands, (uint16_t)i, c->n_cpus, e);
        return 0;
}

int filter_check_constants(const Filter *f, const FilterSubject *subjects, size_t n, Explanation *e) {
        _cleanup_free_ Operand *operands = calloc(f->n_nodes, sizeof(*operands)), *fitting = calloc(f->n_nodes, sizeof(*fitting));
        _cleanup_free_ bool *is_never = calloc(f->n_nodes, sizeof(*is_never));
        Constants c = { .operands = fitting, .is_never = is_never };
        bool is_first = true;

        if (!operands || !fitting || !is_never)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n && (is_first || c.n_never > 0); i++) {
                int r = match_resolve(f, subjects[i].plan, subjects[i].event, operands, NULL);

                if (r < 0)
                        return r;
                if (r > 0)
                        continue; /* it has no samples of this one */
                memcpy(fitting, operands, f->n_nodes * sizeof(*operands));
                c.n_cpus = subjects[i].n_cpus;
                look_at_event(&c, f, is_first);
                is_first = false;
        }
        return c.n_never > 0 ? refuse_first(&c, f, e) : 0;
}
