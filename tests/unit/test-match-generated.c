/*
 * Generated expressions, worked out a second time by walking their tree: numbers in 128 bits, so that signs need no
 * thought, and patterns by fnmatch(3). The seed is fixed: each run is the same run.
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/route/match-program.h"
#include "tests/unit/filter-plan.h"

#define N_EXPRESSIONS 20000
#define N_RECORDS 6

static uint64_t random_state = 0x2545F4914F6CDD1D;

static uint64_t random_next(void) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state;
}

static unsigned random_below(unsigned n) {
        return (unsigned)(random_next() >> 33) % n;
}

/* Near where widths and signs change. */
static uint64_t random_number(void) {
        static const uint64_t edges[] = { 0, 1, 0x40, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
                                          UINT32_MAX, INT64_MAX, (uint64_t)1 << 63, UINT64_MAX };
        unsigned k = random_below(20);

        return k < 16 ? edges[k] + random_below(3) - 1 : random_next() >> random_below(64);
}

typedef enum Kind { OR, AND, NOT, COMPARE, TEXT_COMPARE, LONE, BIT_OR, BIT_AND, CONSTANT, FIELD } Kind; /* the loosest first */

typedef struct Node Node;
struct Node {
        Kind kind;
        unsigned relation; /* index into relations */
        Node *left, *right;
        __int128 number;
        unsigned field, element, other_field;
        char pattern[24]; /* TEXT_COMPARE with a constant */
};

static const char *const relations[] = { "==", "!=", "<", "<=", ">", ">=", "~" };

static Node nodes[512];
static unsigned n_nodes;
static char text[8192];

static Node *node_new(Kind k) {
        Node *n = &nodes[n_nodes++];

        assert_true(n_nodes < ARRAY_SIZE(nodes));
        *n = (Node){ .kind = k };
        return n;
}

static bool is_text_field(unsigned i) {
        return filter_plan_fields[i].kind == FIELD_TEXT;
}

static unsigned random_field(bool is_text) {
        unsigned i;

        do
                i = random_below(ARRAY_SIZE(filter_plan_fields));
        while (is_text_field(i) != is_text || filter_plan_fields[i].kind == FIELD_BYTES);
        return i;
}

static Node *make_field(void) {
        Node *n = node_new(FIELD);

        n->field = random_field(false);
        n->element = random_below(filter_plan_fields[n->field].count == 0 ? 4 : (unsigned)filter_plan_fields[n->field].count);
        return n;
}

static Node *make_constant(void) {
        Node *n = node_new(CONSTANT);
        uint64_t number = random_number();

        n->number = random_below(2) ? (__int128)number : (__int128)(int64_t)number;
        return n;
}

static Node *make_number(int depth) {
        Node *n;

        if (depth > 0 && random_below(3) == 0) {
                n = node_new(random_below(2) ? BIT_AND : BIT_OR);
                n->left = make_number(depth - 1);
                n->right = make_number(depth - 1);
                return n;
        }
        return random_below(2) ? make_constant() : make_field();
}

static Node *make_text_comparison(void) {
        static const char *const pieces[] = { "a", "b", "ab", "*", "?", "[ab]", "[!a]", "a", "b", "\\*", "[a-c]*" };
        static const unsigned allowed[] = { 0, 1, 6 };
        Node *n = node_new(TEXT_COMPARE);
        unsigned n_pieces = random_below(5);

        n->relation = allowed[random_below(3)];
        n->field = random_field(true);
        n->other_field = n->relation != 6 && random_below(5) == 0 ? random_field(true) : UINT32_MAX;
        for (unsigned i = 0; i < n_pieces; i++)
                strncat(n->pattern, pieces[random_below(ARRAY_SIZE(pieces))], sizeof(n->pattern) - strlen(n->pattern) - 1);
        if (strchr(n->pattern, '[') && !strchr(strrchr(n->pattern, '['), ']'))
                *strrchr(n->pattern, '[') = '\0'; /* was cut */
        return n;
}

static Node *make_condition(int depth) {
        unsigned k = random_below(depth > 0 ? 8 : 4);
        Node *n;

        if (k == 0)
                return make_text_comparison();
        if (k >= 6 || k < 4) {
                n = node_new(k == 7 ? NOT : k >= 4 ? AND : k == 1 ? LONE : COMPARE);
                if (k == 7)
                        n->left = make_condition(depth - 1);
                else if (k == 6) {
                        n->left = make_condition(depth - 1);
                        n->right = make_condition(depth - 1);
                } else {
                        n->relation = random_below(6);
                        n->left = make_number(2);
                        n->right = k == 1 ? NULL : make_number(2);
                }
                return n;
        }
        n = node_new(k == 4 ? OR : AND);
        n->left = make_condition(depth - 1);
        n->right = make_condition(depth - 1);
        return n;
}

/* As most filters are: numbers against constants, all of which must hold. */
static Node *make_conjunction(unsigned n_more) {
        Node *n = node_new(n_more > 0 ? AND : COMPARE);

        if (n_more > 0) {
                n->left = make_conjunction(0);
                n->right = make_conjunction(n_more - 1);
                return n;
        }
        n->relation = random_below(6);
        n->right = make_constant();
        do
                n->left = make_field();
        while (filter_plan_fields[n->left->field].place != PLACE_FIXED);
        if (random_below(4) == 0) {
                Node *field = n->left;

                n->left = node_new(BIT_AND);
                n->left->left = field;
                n->left->right = make_constant();
        }
        return n;
}

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *format, ...) {
        size_t at = strlen(text);
        va_list ap;

        va_start(ap, format);
        assert_true(vsnprintf(text + at, sizeof(text) - at, format, ap) < (int)(sizeof(text) - at));
        va_end(ap);
}

static void put_node(const Node *n);

static void put_operand(const Node *n, const Node *parent) {
        bool parentheses = n->kind != CONSTANT && n->kind != FIELD && (n->kind <= parent->kind || random_below(4) == 0);

        put(parentheses ? "(" : "");
        put_node(n);
        put(parentheses ? ")" : "");
}

static void put_node(const Node *n) {
        static const char *const joins[] = { [OR] = " || ", [AND] = "&& ", [BIT_AND] = "& ", [BIT_OR] = " |" };

        switch (n->kind) {
        case CONSTANT:
                if (n->number < 0)
                        put("%lld", (long long)n->number);
                else
                        put(random_below(2) ? "%llu" : "0x%llx", (unsigned long long)n->number);
                break;
        case FIELD:
                put("%s", filter_plan_fields[n->field].name);
                if (filter_plan_fields[n->field].count != 1)
                        put("[%u]", n->element);
                break;
        case TEXT_COMPARE:
                put("%s %s ", filter_plan_fields[n->field].name, relations[n->relation]);
                if (n->other_field != UINT32_MAX)
                        put("%s", filter_plan_fields[n->other_field].name);
                else
                        put("\"%s\"", n->pattern);
                break;
        case NOT:
                put("!(");
                put_node(n->left);
                put(")");
                break;
        case LONE:
                put("(");
                put_node(n->left);
                put(")");
                break;
        case COMPARE:
                put_operand(n->left, n);
                put("%s", relations[n->relation]);
                put_operand(n->right, n);
                break;
        default:
                put_operand(n->left, n);
                put("%s", joins[n->kind]);
                put_operand(n->right, n);
        }
}

/* The bytes of a field, or of its element; NULL if they are not all in the record. */
static const uint8_t *bytes_of(const Record *r, unsigned field, unsigned element, size_t *ret_size) {
        size_t at = filter_plan_fields[field].offset, size = filter_plan_fields[field].element_size;
        size_t all = size * filter_plan_fields[field].count;

        if (filter_plan_fields[field].place != PLACE_FIXED) {
                uint32_t place;

                memcpy(&place, r->raw + at, 4);
                at = filter_plan_fields[field].place == PLACE_REL_LOC ? at + 4 + (uint16_t)place : (uint16_t)place;
                all = place >> 16;
                if (at + all > r->raw_size || all % size != 0)
                        return NULL;
        }
        if (is_text_field(field)) {
                *ret_size = strnlen((const char *)r->raw + at, all);
                return r->raw + at;
        }
        *ret_size = size;
        return size * (element + 1) <= all ? r->raw + at + size * element : NULL;
}

typedef struct Value {
        __int128 number;
        bool may_be_negative, may_be_wide, is_absent;
} Value;

static Value field_value(const Node *n, const Record *r) {
        FieldKind kind = filter_plan_fields[n->field].kind;
        size_t size = 0;
        const uint8_t *bytes = bytes_of(r, n->field, n->element, &size);
        uint64_t u = 0;

        if (!bytes)
                return (Value){ .is_absent = true };
        memcpy(&u, bytes, size); /* little endian, as are the records below */
        if (kind != FIELD_SIGNED)
                return (Value){ .number = u, .may_be_wide = size == 8 };
        return (Value){ .number = size == 8   ? (int64_t)u
                                  : size == 4 ? (int32_t)u
                                  : size == 2 ? (int16_t)u
                                              : (int8_t)u,
                        .may_be_negative = true };
}

static Value number_value(const Node *n, const Record *r) {
        Value a, b, v;

        if (n->kind == CONSTANT)
                return (Value){ .number = n->number, .may_be_negative = n->number < 0, .may_be_wide = n->number > INT64_MAX };
        if (n->kind == FIELD)
                return field_value(n, r);
        a = number_value(n->left, r);
        b = number_value(n->right, r);
        v.is_absent = a.is_absent || b.is_absent;
        if (n->kind == BIT_AND) {
                v.number = a.number & b.number;
                v.may_be_negative = a.may_be_negative && b.may_be_negative;
                v.may_be_wide = !v.may_be_negative && (a.may_be_wide || a.may_be_negative) && (b.may_be_wide || b.may_be_negative);
                return v;
        }
        v.number = a.number | b.number;
        v.may_be_wide = a.may_be_wide || b.may_be_wide;
        v.may_be_negative = !v.may_be_wide && (a.may_be_negative || b.may_be_negative);
        if (v.may_be_wide)
                v.number = (uint64_t)v.number; /* the documented rule: never negative */
        return v;
}

static bool is_related(unsigned relation, __int128 a, __int128 b) {
        return relation == 0 ? a == b : relation == 1 ? a != b : relation == 2 ? a < b : relation == 3 ? a <= b : relation == 4 ? a > b : a >= b;
}

static bool text_is_true(const Node *n, const Record *r) {
        size_t size = 0, other_size = 0;
        const uint8_t *bytes = bytes_of(r, n->field, 0, &size), *other;
        char copy[256] = "";

        if (!bytes)
                return false;
        if (n->other_field != UINT32_MAX) {
                other = bytes_of(r, n->other_field, 0, &other_size);
                return other && (size == other_size && memcmp(bytes, other, size) == 0) == (n->relation == 0);
        }
        memcpy(copy, bytes, size);
        return (fnmatch(n->pattern, copy, 0) == 0) == (n->relation != 1);
}

static bool is_true(const Node *n, const Record *r) {
        Value a, b = { .number = 0 };

        switch (n->kind) {
        case OR:
                return is_true(n->left, r) || is_true(n->right, r);
        case AND:
                return is_true(n->left, r) && is_true(n->right, r);
        case NOT:
                return !is_true(n->left, r);
        case TEXT_COMPARE:
                return text_is_true(n, r);
        default:
                a = number_value(n->left, r);
                if (n->right)
                        b = number_value(n->right, r);
                return !a.is_absent && !b.is_absent && is_related(n->right ? n->relation : 1, a.number, b.number);
        }
}

static void random_text(char *to, size_t size) {
        size_t n = random_below((unsigned)size + 1);

        memset(to, 0, size);
        for (size_t i = 0; i < n; i++)
                to[i] = "abc*"[random_below(16) ? random_below(2) : random_below(4)];
}

/* Every field random, dynamic places mostly inside. */
static void random_sample(SampleBytes *b) {
        uint8_t *raw = (uint8_t *)b;

        for (size_t i = 0; i < sizeof(*b); i++)
                raw[i] = (uint8_t)random_next();
        random_text((char *)b->rest, 40);
        random_text(b->prev_comm, random_below(2) ? 4 : sizeof(b->prev_comm));
        random_text(b->next_comm, random_below(2) ? 4 : sizeof(b->next_comm));
        for (size_t i = 0; i < ARRAY_SIZE(filter_plan_fields); i++)
                if (filter_plan_fields[i].kind < FIELD_TEXT && filter_plan_fields[i].count == 1 && random_below(4)) {
                        uint64_t number = random_number();

                        memcpy(raw + filter_plan_fields[i].offset, &number, filter_plan_fields[i].element_size);
                }
        if (random_below(8))
                b->filename = sample_data_loc(random_below(8), random_below(20));
        if (random_below(8))
                b->path = sample_rel_loc(offsetof(SampleBytes, path), random_below(8), random_below(20));
        if (random_below(8))
                b->list = sample_data_loc(40 + random_below(8), random_below(16) ? 4 * random_below(4) : 7);
        if (random_below(8))
                b->longs = sample_rel_loc(offsetof(SampleBytes, longs), 40 + random_below(8), 8 * random_below(4));
}

static void test_generated(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        unsigned n_true = 0, n_ranges[MATCH_RANGES + 1] = { 0 };

        for (unsigned i = 0; i < N_EXPRESSIONS; i++) {
                _cleanup_(match_program_unrefp) MatchProgram *program = NULL;
                _cleanup_(filter_freep) Filter *filter = NULL;
                Explanation e = EXPLANATION_NULL;
                Node *root;

                n_nodes = 0;
                text[0] = '\0';
                root = random_below(4) ? make_condition(3) : make_conjunction(random_below(8));
                put_node(root);
                if (filter_parse(text, &filter, &e) != 0 || filter_compile(filter, plan, NULL, &program, &e) != 0)
                        fail_msg("%s: %u: %s", text, e.position, e.text);
                n_ranges[program->n_ranges]++;
                for (unsigned k = 0; k < N_RECORDS; k++) {
                        SampleBytes b;
                        Record r = sample_record(&b);
                        bool expected;

                        random_sample(&b);
                        r.raw_size = random_below(4) ? sizeof(b) : (uint32_t)offsetof(SampleBytes, rest) + random_below(80);
                        expected = is_true(root, &r);
                        n_true += expected;
                        if (match_run(program, &r) != expected)
                                fail_msg("expression %u, record %u: %s is not %s", i, k, text, expected ? "true" : "false");
                        if (match_ask(program, &r) != expected)
                                fail_msg("expression %u, record %u: readers find that %s is not %s", i, k, text,
                                         expected ? "true" : "false");
                }
        }
        /* neither everything nor nothing: the comparison means something */
        assert_in_range(n_true, N_EXPRESSIONS * N_RECORDS / 4, N_EXPRESSIONS * N_RECORDS * 3 / 4);
        for (unsigned i = 0; i <= MATCH_RANGES; i++)
                assert_true(n_ranges[i] > 200); /* each way of asking was taken */
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_generated) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
