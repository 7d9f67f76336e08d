/*
 * Nodes are in post-order, so that two loops do it, without recursion. A number has a mathematical value here: `is_wide`
 * and `is_signed` say which half of the range -2^63 to 2^64-1 it can reach beyond the common one, so that comparisons
 * can be right for mixed signs. Only `signed | wide` could reach both: its bits are read as unsigned.
 */
#include "daemon/route/match-resolve.h"

#include <stdio.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/model/field.h"
#include "daemon/model/record.h"
#include "daemon/route/match.h"

typedef struct Resolver {
        const Filter *filter;
        const Plan *plan;
        const char *event; /* its name, or NULL */
        Operand *operands;
        const uint16_t *scopes; /* of each node, the root of the comparison or lone number around it */
        Explanation *e;
} Resolver;

#define SAMPLE_PART(part, without) { #part, offsetof(Record, part), sizeof(((Record *)0)->part), without }

static const SamplePart sample_parts[] = {
        SAMPLE_PART(pid, false), SAMPLE_PART(tid, false), SAMPLE_PART(cpu, false),  SAMPLE_PART(time, false),
        SAMPLE_PART(ip, true),   SAMPLE_PART(addr, true), SAMPLE_PART(period, true), { "comm", offsetof(Record, comm), 0, false },
};

/* Clients show the address, and call it so, where perf-script(1) has "addr". */
static const SamplePart *sample_find(const Plan *plan, const char *name) {
        if (strncmp(name, "sample.", strlen("sample.")) == 0)
                name += strlen("sample.");
        if (strcmp(name, "address") == 0)
                name = "addr";
        for (size_t i = 0; i < ARRAY_SIZE(sample_parts); i++)
                if (strcmp(sample_parts[i].name, name) == 0 && (!plan || !sample_parts[i].without_plan))
                        return &sample_parts[i];
        return NULL;
}

static const char event_part[] = "event";

/* "event", or "sample.event" if the event has a field of the former name. */
static bool is_event_part(const char *name) {
        static const char prefix[] = "sample.";

        return strcmp(strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name, event_part) == 0;
}

/* The nearest field with value names in the node's scope. */
static const PlanField *find_context(const Resolver *r, uint16_t node) {
        uint16_t end = r->scopes[node], begin = r->filter->nodes[end].first;

        for (uint32_t i = node; i-- > begin;)
                if (r->operands[i].field && r->operands[i].field->n_values > 0)
                        return r->operands[i].field;
        for (uint32_t i = node + 1u; i <= end; i++)
                if (r->operands[i].field && r->operands[i].field->n_values > 0)
                        return r->operands[i].field;
        return NULL;
}

static void set_constant(Operand *o, uint64_t number, bool negative) {
        *o = (Operand){ .is_simple = true, .set = number, .is_signed = negative, .depth = 1,
                        .is_wide = !negative && (int64_t)number < 0 };
}

/* The number that the field gives when it holds this value, which formats write in 64 bits or in the field's own. */
static void set_value(Operand *o, const PlanField *f, uint64_t value) {
        unsigned bits = f->element_size < 8 ? f->element_size * 8 : 64;
        uint64_t high = bits < 64 ? value >> bits : 0, ones = bits < 64 ? UINT64_MAX >> bits : 0;

        if (high == 0 || high == ones) {
                uint64_t low = bits < 64 ? value & (((uint64_t)1 << bits) - 1) : value;
                bool negative = f->kind == FIELD_SIGNED && low >> (bits - 1);

                value = negative && bits < 64 ? low | ones << bits : low;
                set_constant(o, value, negative);
        } else
                set_constant(o, value, false);
}

static bool resolve_value(Operand *o, const PlanField *context, const char *name) {
        for (size_t i = 0; context && i < context->n_values; i++)
                if (strcmp(context->values[i].name, name) == 0) {
                        set_value(o, context, context->values[i].value);
                        return true;
                }
        return false;
}

/* What an event has, for a message: as much of it as fits. */
typedef struct NameList {
        char text[240];
        size_t length;
        bool is_full;
        Nearest nearest;
} NameList;

static void list_add(NameList *l, const char *wanted, const char *name) {
        static const char rest[] = ", ...";
        const char *comma = l->length > 0 ? ", " : "";

        nearest_add(&l->nearest, wanted, name);
        if (l->is_full)
                return;
        l->is_full = l->length + strlen(comma) + strlen(name) + sizeof(rest) > sizeof(l->text);
        l->length += (size_t)(l->is_full ? sprintf(l->text + l->length, "%s", rest)
                                         : sprintf(l->text + l->length, "%s%s", comma, name));
}

/* What is not of the event alone: a field of this name stands in the list already. */
static void list_add_other(NameList *l, const Plan *plan, const char *wanted, const char *name) {
        if (!plan || !plan_find(plan, name))
                list_add(l, wanted, name);
}

static int refuse_name(const Resolver *r, uint16_t node, const PlanField *context, const char *name) {
        char event[120] = "this event", where[120] = "";
        NameList list = { .nearest = NEAREST_NULL };
        int k;

        for (size_t i = 0; r->plan && i < r->plan->n_fields; i++)
                list_add(&list, name, r->plan->fields[i].name);
        for (size_t i = 0; i < ARRAY_SIZE(sample_parts); i++)
                if (!r->plan || !sample_parts[i].without_plan)
                        list_add_other(&list, r->plan, name, sample_parts[i].name);
        if (r->event)
                list_add_other(&list, r->plan, name, event_part);
        for (ProcessPart p = PROCESS_UID; p < PROCESS_COMM; p++) /* comm is of those above */
                list_add_other(&list, r->plan, name, process_part_name(p));
        for (size_t i = 0; context && i < context->n_values; i++)
                nearest_add(&list.nearest, name, context->values[i].name);

        if (r->plan)
                (void)snprintf(event, sizeof(event), "%s:%s", r->plan->group, r->plan->name);
        if (context)
                (void)snprintf(where, sizeof(where), " and no value of %s", QUOTE(context->name));
        else if (node > r->filter->nodes[r->scopes[node]].first && r->operands[node - 1].is_text)
                (void)snprintf(where, sizeof(where), "; put a text into quotes");
        k = refuse(r->e, REFUSED_NOT_FOUND, "unknown-field", "%s is not a field of %s%s%s%sIt has: %s", QUOTE(name), event,
                   where, HINT(&list.nearest), list.nearest.word ? " " : ". ", list.text);
        if (r->e)
                r->e->position = r->filter->nodes[node].position + 1;
        return k;
}

static int refuse_kind(const Resolver *r, uint16_t node, const char *name, const char *what) {
        return filter_refuse(r->e, r->filter->nodes[node].position, "%s %s", QUOTE(name), what);
}

static int resolve_element(const Resolver *r, uint16_t node, const PlanField *f, bool is_array) {
        const FilterNode *n = &r->filter->nodes[node];

        if (!is_array && n->element >= 0)
                return refuse_kind(r, node, n->name, "is not an array of numbers, so [ ] cannot follow it");
        if (is_array && n->element < 0)
                return refuse_kind(r, node, n->name, "is an array: name one of its elements, such as [0]");
        if (is_array && f->place == PLACE_FIXED && (uint32_t)n->element >= f->count)
                return filter_refuse(r->e, n->position, "%s has the elements 0 to %u, and not %d", QUOTE(n->name),
                                     f->count - 1, (int)n->element);
        return 0;
}

static int resolve_field(const Resolver *r, uint16_t node) {
        Operand *o = &r->operands[node];
        const PlanField *f = o->field;
        uint64_t end = (uint64_t)f->offset + (uint64_t)f->element_size * f->count;

        if (f->kind == FIELD_BYTES)
                return refuse_kind(r, node, f->name, "is neither a number nor a text, and cannot be compared");
        o->is_text = f->kind == FIELD_TEXT;
        o->is_certain = f->place == PLACE_FIXED && end <= r->plan->min_size;
        o->is_signed = f->kind == FIELD_SIGNED;
        o->is_wide = !o->is_signed && f->element_size == 8;
        return resolve_element(r, node, f, !o->is_text && (f->count != 1 || f->place != PLACE_FIXED));
}

static int resolve_name(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        Operand *o = &r->operands[node];
        const PlanField *context;

        o->is_simple = o->has_source = true;
        o->source = node;
        o->keep = UINT64_MAX;
        o->depth = 1;
        if (o->field)
                return resolve_field(r, node);
        if (o->sample) {
                o->is_text = o->sample->size == 0;
                o->is_wide = o->sample->size == 8;
                o->is_certain = true;
                return resolve_element(r, node, NULL, false);
        }
        if (o->is_event) {
                o->is_text = true;
                return resolve_element(r, node, NULL, false);
        }
        if (o->process) {
                o->is_text = o->process != PROCESS_UID;
                return resolve_element(r, node, NULL, false);
        }
        context = find_context(r, node);
        if (n->element < 0 && resolve_value(o, context, n->name))
                return 0;
        return refuse_name(r, node, context, n->name);
}

/* What system calls are given: the sample has the address only. */
static int refuse_address(const Resolver *r, uint32_t position, const PlanField *f) {
        const char *name = QUOTE(f->name);

        return filter_refuse(r->e, position, "%s is the address of a text (%s), which is not in the sample: the filter of the event can "
                             "compare the text, as in --filter '%s.ustring ~ \"/etc/*\"', and a probe can fetch it, by "
                             "--args 'name=+0($arg2):string'", name, f->type, f->name);
}

/* A text in quotes that is compared with a number. */
static int refuse_quoted(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        uint16_t end = r->scopes[node];
        const PlanField *f = NULL;
        bool is_user = false;

        for (uint16_t i = r->filter->nodes[end].first; i <= end && !f; i++) {
                f = r->operands[i].field;
                is_user = is_user || r->operands[i].process == PROCESS_UID;
        }
        if (!f)
                return filter_refuse(r->e, n->position, "found a text where a number is needed%s",
                                     is_user ? ": `id -u NAME` prints that of a user" : "");
        if (strchr(f->type, '*'))
                return refuse_address(r, n->position, f);
        return filter_refuse(r->e, n->position, "%s is a number, and cannot be compared with a text", QUOTE(f->name));
}

/* A text in quotes where a number is needed: a value name that is no word (prev_state == "R+"), or a character. */
static int resolve_text(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        const PlanField *context = find_context(r, node);
        Operand *o = &r->operands[node];

        if (n->name && resolve_value(o, context, n->name))
                return 0;
        if (n->character) {
                set_constant(o, n->number, false);
                return 0;
        }
        if (n->name && context)
                return refuse_name(r, node, context, n->name);
        return refuse_quoted(r, node);
}

/* The name of a field that is a text, but stands at `node` where a number is needed. */
static int refuse_text(const Resolver *r, uint16_t node, const char *what) {
        return refuse_kind(r, node, r->filter->nodes[node].name, what);
}

/* Where the process at `node` is no side of a comparison that the dispatcher knows. */
static int refuse_process(const Resolver *r, uint16_t node) {
        bool is_text = r->operands[node].is_text;

        return refuse_kind(r, node, r->filter->nodes[node].name, is_text ?
                "is a text about the process, and can only be compared with a text in quotes" :
                "is a number about the process, and can only be compared with a number, as in uid == 0");
}

static int resolve_number(const Resolver *r, uint16_t node, const char *what) {
        if (r->operands[node].process && !r->operands[node].is_text)
                return refuse_process(r, node);
        if (!r->operands[node].is_text)
                return 0;
        return r->filter->nodes[node].kind == FILTER_TEXT ? resolve_text(r, node) : refuse_text(r, node, what);
}

static int resolve_bits(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        const Operand *a = &r->operands[n->left], *b = &r->operands[n->right];
        bool is_and = n->kind == FILTER_BIT_AND;
        Operand *o = &r->operands[node];
        int k;

        k = resolve_number(r, n->left, "is a text, and has no bits") ?:
            resolve_number(r, n->right, "is a text, and has no bits");
        if (k != 0)
                return k;
        if (b->has_source || !b->is_simple) { /* the constant, if there is one, is b */
                const Operand *swap = a;

                a = b;
                b = swap;
        }
        if (is_and) {
                o->is_signed = a->is_signed && b->is_signed;
                o->is_wide = (a->is_wide && (b->is_wide || b->is_signed)) || (b->is_wide && a->is_signed);
        } else {
                o->is_wide = a->is_wide || b->is_wide;
                o->is_signed = !o->is_wide && (a->is_signed || b->is_signed);
        }
        o->depth = a->depth == b->depth ? (uint8_t)(a->depth + 1) : a->depth > b->depth ? a->depth : b->depth;
        if (!a->is_simple || !b->is_simple || b->has_source)
                return 0;
        o->is_simple = true;
        o->has_source = a->has_source;
        o->source = a->source;
        o->keep = is_and ? a->keep & b->set : a->keep;
        o->set = is_and ? a->set & b->set : a->set | b->set;
        o->depth = 1;
        if (!o->has_source)
                set_constant(o, o->set, o->is_signed && (int64_t)o->set < 0);
        return 0;
}

static int resolve_comparison(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        const FilterNode *left = &r->filter->nodes[n->left], *right = &r->filter->nodes[n->right];
        bool left_text = r->operands[n->left].is_text, right_text = r->operands[n->right].is_text;

        if (n->kind == FILTER_GLOB && !left_text && r->operands[n->left].field && strchr(r->operands[n->left].field->type, '*'))
                return refuse_address(r, left->position, r->operands[n->left].field);
        if (n->kind == FILTER_GLOB && !left_text)
                return refuse_kind(r, n->left, left->name, "is a number, and ~ compares texts with patterns");
        if (left_text && right_text) {
                if (n->kind == FILTER_EQUAL || n->kind == FILTER_UNEQUAL || n->kind == FILTER_GLOB)
                        return 0;
                return filter_refuse(r->e, n->position, "texts are compared with ==, != and ~, not with %s",
                                     filter_operator(n->kind));
        }
        if (left_text && left->kind == FILTER_NAME)
                return filter_refuse(r->e, r->filter->nodes[right->first].position,
                                     "%s is a text, and this is a number: put a text into quotes",
                                     QUOTE(left->name));
        if (right_text && right->kind == FILTER_NAME)
                return refuse_text(r, n->right, "is a text, and cannot be compared with a number");
        return left_text ? resolve_text(r, n->left) : right_text ? resolve_text(r, n->right) : 0;
}

static int resolve_process(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        uint16_t at = r->operands[n->left].process ? n->left : n->right;
        ProcessAtom atom;

        if (filter_process_atom(r->filter, node, &atom) && atom.part == PROCESS_COMM) {
                at = r->filter->nodes[n->left].kind == FILTER_NAME ? n->left : n->right;
                if (r->operands[at].sample)
                        r->operands[at].process = PROCESS_COMM;
                return 0;
        }
        return r->operands[at].process && !filter_process_atom(r->filter, node, &atom) ? refuse_process(r, at) : 0;
}

/* Whether it is true is found out here and now. */
static int resolve_event(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];
        uint16_t at = r->operands[n->left].is_event ? n->left : n->right, other = at == n->left ? n->right : n->left;

        if (!r->operands[at].is_event || r->filter->nodes[other].kind == FILTER_TEXT)
                return 0;
        return refuse_kind(r, at, r->filter->nodes[at].name, "is the name of the event, and can only be compared with a text in quotes");
}

int filter_check_names(const Filter *f, Explanation *e) {
        static const char prefix[] = "sample.";

        for (uint32_t i = 0; i < f->n_nodes; i++) {
                const FilterNode *n = &f->nodes[i];
                NameList list = { .nearest = NEAREST_NULL };
                const char *name;

                if (n->kind != FILTER_NAME || strncmp(n->name, prefix, strlen(prefix)) != 0 || sample_find(NULL, n->name) ||
                    is_event_part(n->name) || process_part_find(n->name))
                        continue;
                name = n->name + strlen(prefix);
                for (size_t k = 0; k < ARRAY_SIZE(sample_parts); k++)
                        list_add(&list, name, sample_parts[k].name);
                list_add(&list, name, event_part);
                for (ProcessPart p = PROCESS_UID; p < PROCESS_COMM; p++)
                        list_add(&list, name, process_part_name(p));
                (void)refuse(e, REFUSED_NOT_FOUND, "unknown-field", "no sample has %s%s%sIt has, behind 'sample.': %s", QUOTE(n->name),
                             HINT(&list.nearest), list.nearest.word ? " " : ". ", list.text);
                if (e)
                        e->position = n->position + 1;
                return REFUSED_NOT_FOUND;
        }
        return 0;
}

static const char lone[] = "is a text: compare it with a text, as in comm == \"bash\"";

static int resolve_node(const Resolver *r, uint16_t node) {
        const FilterNode *n = &r->filter->nodes[node];

        switch (n->kind) {
        case FILTER_NUMBER:
                set_constant(&r->operands[node], n->number, n->negative);
                return 0;
        case FILTER_TEXT:
                r->operands[node].is_text = true;
                return 0;
        case FILTER_NAME:
                return resolve_name(r, node);
        case FILTER_BIT_AND:
        case FILTER_BIT_OR:
                return resolve_bits(r, node);
        case FILTER_NOT:
        case FILTER_AND:
        case FILTER_OR:
                return resolve_number(r, n->left, lone) ?: resolve_number(r, n->right, lone);
        default:
                return resolve_comparison(r, node) ?: resolve_process(r, node) ?: resolve_event(r, node);
        }
}

static void set_scopes(const Filter *f, uint16_t *scopes) {
        scopes[f->n_nodes - 1] = (uint16_t)(f->n_nodes - 1);
        for (uint32_t i = f->n_nodes; i-- > 0;) {
                const FilterNode *n = &f->nodes[i];
                bool opens = n->kind == FILTER_NOT || n->kind == FILTER_AND || n->kind == FILTER_OR;

                if (filter_is_leaf(n->kind))
                        continue;
                scopes[n->left] = opens ? n->left : scopes[i];
                scopes[n->right] = opens ? n->right : scopes[i];
        }
}

int match_resolve(const Filter *f, const Plan *plan, const char *event, Operand *operands, Explanation *e) {
        _cleanup_free_ uint16_t *scopes = calloc(f->n_nodes, sizeof(*scopes));
        Resolver r = { .filter = f, .plan = plan, .event = event, .operands = operands, .scopes = scopes, .e = e };
        uint16_t root = (uint16_t)(f->n_nodes - 1);
        int k = 0;

        if (!scopes)
                return error_origin(-ENOMEM);
        set_scopes(f, scopes);
        for (uint32_t i = 0; i < f->n_nodes; i++) {
                operands[i] = (Operand){ .is_text = false };
                if (f->nodes[i].kind != FILTER_NAME)
                        continue;
                operands[i].field = plan_find(plan, f->nodes[i].name);
                if (!operands[i].field)
                        operands[i].sample = sample_find(plan, f->nodes[i].name);
                if (!operands[i].field && !operands[i].sample)
                        operands[i].is_event = event && is_event_part(f->nodes[i].name);
                if (!operands[i].field && !operands[i].sample && !operands[i].is_event)
                        operands[i].process = process_part_find(f->nodes[i].name);
        }
        for (uint32_t i = 0; i < f->n_nodes && k == 0; i++)
                k = resolve_node(&r, (uint16_t)i);
        return k ?: resolve_number(&r, root, lone);
}
