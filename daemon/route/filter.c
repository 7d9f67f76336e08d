/*
 * Expressions of subscribers, who may be anyone who may connect: length, terms and depth are bounded before anything
 * is built. & and | bind tighter than comparisons, unlike in C, because nobody who writes `flags & 6 == 2` means
 * flags & 1; and where C and Python differ without such a winner (`!a == b`, `a < b < c`), parentheses are asked for.
 */
#include "daemon/route/filter.h"

#include <stdio.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/route/filter-lex.h"

#define LIKE "~ with a pattern, as in comm ~ \"nginx*\","
#define CONTAINS "~ with a pattern, as in comm ~ \"*nginx*\","

typedef struct Parser {
        Lexer lexer;
        Token token; /* the next one that is not yet part of a node */
        unsigned depth;
        Explanation *e;
} Parser;

static int parse_or(Parser *p, uint16_t *ret);

int filter_refuse(Explanation *e, size_t position, const char *format, ...) {
        char text[sizeof(e->text)];
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        refuse(e, REFUSED_INVALID, "bad-expression", "%s", text);
        if (e)
                e->position = (unsigned)position + 1;
        return REFUSED_INVALID;
}

static int advance(Parser *p) {
        return lexer_next(&p->lexer, &p->token, p->e);
}

static FilterNode *parser_node(Parser *p, uint16_t node) {
        return &p->lexer.filter->nodes[node];
}

/* The token's own operator, or FILTER_NUMBER, which is none. */
static FilterKind parser_operator(const Parser *p) {
        return p->token.kind == TOKEN_OPERATOR ? p->token.node.kind : FILTER_NUMBER;
}

static int unexpected(Parser *p, const char *expected) {
        const Token *t = &p->token;
        char found[64];

        if (t->kind == TOKEN_END)
                return filter_refuse(p->e, t->position, "the expression ends where %s was expected", expected);
        (void)snprintf(found, sizeof(found), "%.*s", (int)t->length, p->lexer.text + t->position); /* cut to be shown */
        return filter_refuse(p->e, t->position, "found %s where %s was expected", QUOTE(found), expected);
}

/* Where only an operator can follow: what other languages write there has a word of its own here. */
static int unexpected_operator(Parser *p, const char *expected) {
        static const char *const words[][2] = {
                { "and", "'&&', not 'and'," }, { "or", "'||', not 'or'," }, { "in", "==, joined by ||," },
                { "like", LIKE }, { "glob", LIKE }, { "matches", LIKE }, { "contains", CONTAINS },
        };
        const Token *t = &p->token;

        for (size_t i = 0; i < ARRAY_SIZE(words) && t->kind == TOKEN_LEAF && t->node.kind == FILTER_NAME; i++)
                if (strcasecmp(t->node.name, words[i][0]) == 0)
                        return unexpected(p, words[i][1]);
        if (parser_operator(p) == FILTER_NOT && p->lexer.text[t->position + 1] == '~')
                return filter_refuse(p->e, t->position, "there is no !~: write != with a pattern, as in comm != \"nginx*\"");
        return unexpected(p, expected);
}

static uint16_t add_node(Parser *p, FilterKind kind, size_t position, uint16_t left, uint16_t right) {
        Filter *f = p->lexer.filter;

        f->nodes[f->n_nodes] = (FilterNode){ .kind = kind, .position = (uint32_t)position, .left = left, .right = right,
                                             .first = f->nodes[left].first };
        return (uint16_t)f->n_nodes++;
}

static int enter(Parser *p) {
        if (++p->depth > FILTER_MAX_DEPTH)
                return filter_refuse(p->e, p->token.position, "more than %d nested ( and !", FILTER_MAX_DEPTH);
        return advance(p);
}

/* NAME [ NUMBER ], where the [ is the next token. */
static int parse_index(Parser *p, FilterNode *name) {
        const FilterNode *n = &p->token.node;
        int k;

        k = advance(p);
        if (k != 0)
                return k;
        if (p->token.kind != TOKEN_LEAF || n->kind != FILTER_NUMBER)
                return unexpected(p, "the number of an element");
        if (n->negative || n->number > UINT16_MAX)
                return filter_refuse(p->e, p->token.position, "elements are numbered from 0 to at most %d", UINT16_MAX);
        name->element = (int32_t)n->number;
        k = advance(p);
        if (k != 0)
                return k;
        if (p->token.kind != TOKEN_INDEX_END)
                return unexpected(p, "the ']' after the number of an element");
        return advance(p);
}

static int parse_leaf(Parser *p, uint16_t *ret) {
        Filter *f = p->lexer.filter;
        FilterNode *n = &f->nodes[f->n_nodes];
        int k;

        if (f->n_terms++ == FILTER_MAX_TERMS)
                return filter_refuse(p->e, p->token.position, "more than %d names, numbers and texts", FILTER_MAX_TERMS);
        *n = p->token.node;
        n->first = *ret = (uint16_t)f->n_nodes++;
        k = advance(p);
        if (k == 0 && n->kind == FILTER_NAME && p->token.kind == TOKEN_INDEX)
                k = parse_index(p, n);
        return k;
}

static int parse_primary(Parser *p, uint16_t *ret) {
        size_t open = p->token.position;
        int k;

        if (p->token.kind == TOKEN_LEAF)
                return parse_leaf(p, ret);
        if (p->token.kind != TOKEN_OPEN)
                return unexpected(p, "a name, a number, a text in quotes, '!' or '('");
        k = enter(p) ?: parse_or(p, ret);
        if (k != 0)
                return k;
        if (p->token.kind != TOKEN_CLOSE) {
                char expected[64];

                (void)snprintf(expected, sizeof(expected), "an operator or the ')' of the '(' at %zu", open + 1);
                return unexpected_operator(p, expected);
        }
        p->depth--;
        return advance(p);
}

/* An operand of a comparison, of & or |, before or behind the operator at `position`. */
static int check_operand(Parser *p, uint16_t node, FilterKind operator) {
        const FilterNode *n = parser_node(p, node);

        if (filter_is_condition(n->kind))
                return filter_refuse(p->e, parser_node(p, n->first)->position, "a comparison is true or false, and cannot be an "
                        "operand of '%s': combine comparisons with && or ||", filter_operator(operator));
        return 0;
}

/* An operand of && || ! or the whole. */
static int check_condition(Parser *p, uint16_t node) {
        const FilterNode *n = parser_node(p, node);

        if (n->kind == FILTER_TEXT)
                return filter_refuse(p->e, n->position, "a text alone is neither true nor false: compare it with a field");
        return 0;
}

static int parse_bits(Parser *p, FilterKind kind, uint16_t *ret) {
        uint16_t right;
        size_t position;
        int k;

        k = kind == FILTER_BIT_OR ? parse_bits(p, FILTER_BIT_AND, ret) : parse_primary(p, ret);
        while (k == 0 && parser_operator(p) == kind) {
                position = p->token.position;
                k = check_operand(p, *ret, kind) ?: advance(p);
                if (k == 0)
                        k = kind == FILTER_BIT_OR ? parse_bits(p, FILTER_BIT_AND, &right) : parse_primary(p, &right);
                if (k == 0)
                        k = check_operand(p, right, kind);
                if (k == 0)
                        *ret = add_node(p, kind, position, *ret, right);
        }
        return k;
}

/* What is wrong with a comparison whatever the event. */
static int check_comparison(Parser *p, FilterKind kind, size_t position, uint16_t left, uint16_t right) {
        const FilterNode *l = parser_node(p, left), *r = parser_node(p, right), *text;

        if (kind == FILTER_GLOB && r->kind != FILTER_TEXT)
                return filter_refuse(p->e, parser_node(p, r->first)->position, "~ needs a pattern in quotes on its right, as in "
                        "comm ~ \"nginx*\"");
        if (kind == FILTER_GLOB && l->kind != FILTER_NAME)
                return filter_refuse(p->e, parser_node(p, l->first)->position, "~ needs a text field on its left");
        if (l->kind == FILTER_TEXT && r->kind == FILTER_TEXT)
                return filter_refuse(p->e, r->position, "compares two texts, and neither is a field");
        text = l->kind == FILTER_TEXT ? l : r;
        if (text->kind != FILTER_TEXT || text->character)
                return 0;
        if (kind != FILTER_EQUAL && kind != FILTER_UNEQUAL && kind != FILTER_GLOB)
                return filter_refuse(p->e, position, "texts are compared with ==, != and ~, not with %s",
                                     filter_operator(kind));
        if (l->kind == FILTER_NUMBER || r->kind == FILTER_NUMBER)
                return filter_refuse(p->e, text->position, "compares a text with a number");
        return 0;
}

static int parse_comparison(Parser *p, uint16_t *ret) {
        FilterKind kind;
        uint16_t right;
        size_t position;
        int k;

        k = parse_bits(p, FILTER_BIT_OR, ret);
        kind = parser_operator(p);
        if (k != 0 || !filter_is_comparison(kind))
                return k;
        position = p->token.position;
        k = check_operand(p, *ret, kind) ?: advance(p);
        if (k == 0)
                k = parse_bits(p, FILTER_BIT_OR, &right);
        if (k == 0)
                k = check_operand(p, right, kind) ?: check_comparison(p, kind, position, *ret, right);
        if (k != 0)
                return k;
        *ret = add_node(p, kind, position, *ret, right);
        if (filter_is_comparison(parser_operator(p)))
                return filter_refuse(p->e, p->token.position, "comparisons do not chain: write a < b && b < c");
        return 0;
}

static int parse_not(Parser *p, uint16_t *ret) {
        size_t position = p->token.position;
        FilterKind next;
        int k;

        if (parser_operator(p) != FILTER_NOT)
                return parse_comparison(p, ret);
        k = enter(p);
        if (k == 0)
                k = parser_operator(p) == FILTER_NOT ? parse_not(p, ret) : parse_primary(p, ret);
        if (k != 0)
                return k;
        p->depth--;
        next = parser_operator(p);
        if (filter_is_comparison(next) || next == FILTER_BIT_AND || next == FILTER_BIT_OR)
                return filter_refuse(p->e, position, "this '!' is ambiguous: write !(... %s ...) to negate all of it",
                                     filter_operator(next));
        k = check_condition(p, *ret);
        if (k == 0)
                *ret = add_node(p, FILTER_NOT, position, *ret, *ret);
        return k;
}

static int parse_conditions(Parser *p, FilterKind kind, uint16_t *ret) {
        uint16_t right;
        size_t position;
        int k;

        k = kind == FILTER_OR ? parse_conditions(p, FILTER_AND, ret) : parse_not(p, ret);
        while (k == 0 && parser_operator(p) == kind) {
                position = p->token.position;
                k = check_condition(p, *ret) ?: advance(p);
                if (k == 0)
                        k = kind == FILTER_OR ? parse_conditions(p, FILTER_AND, &right) : parse_not(p, &right);
                if (k == 0)
                        k = check_condition(p, right);
                if (k == 0)
                        *ret = add_node(p, kind, position, *ret, right);
        }
        return k;
}

static int parse_or(Parser *p, uint16_t *ret) {
        return parse_conditions(p, FILTER_OR, ret);
}

/* Something stands behind a whole expression. */
static int parse_rest(Parser *p) {
        const FilterNode *n = &p->token.node;

        if (p->token.kind == TOKEN_END)
                return 0;
        if (p->token.kind == TOKEN_LEAF && n->kind == FILTER_NUMBER && p->lexer.text[p->token.position] == '-')
                return filter_refuse(p->e, p->token.position, "found '-', but there is no arithmetic: only & and | work "
                                     "on numbers");
        if (p->token.kind == TOKEN_CLOSE)
                return unexpected(p, "an operator or the end, because no '(' is open,");
        return unexpected_operator(p, "an operator (== != < <= > >= ~ & | && ||) or the end");
}

static int filter_new(size_t length, Filter **ret) {
        _cleanup_(filter_freep) Filter *f = calloc(1, sizeof(*f));

        if (!f)
                return error_origin(-ENOMEM);
        f->nodes = calloc(length, sizeof(*f->nodes)); /* a token is at least one byte, and makes at most one node */
        f->names = calloc(length + 1, 1);             /* another byte always stands between two names */
        f->units = calloc(length, sizeof(*f->units));
        f->sets = calloc(length / 3 + 1, sizeof(*f->sets)); /* [a] */
        if (!f->nodes || !f->names || !f->units || !f->sets)
                return error_origin(-ENOMEM);
        *ret = TAKE_PTR(f);
        return 0;
}

int filter_parse(const char *text, Filter **ret, Explanation *e) {
        _cleanup_(filter_freep) Filter *f = NULL;
        size_t length = strnlen(text, FILTER_MAX_TEXT + 1);
        Parser p = { .lexer = { .text = text }, .e = e };
        FilterNode *nodes;
        uint16_t root;
        int k;

        if (length > FILTER_MAX_TEXT)
                return filter_refuse(e, FILTER_MAX_TEXT, "an expression has at most %d bytes", FILTER_MAX_TEXT);
        k = filter_new(length + 1, &f);
        if (k != 0)
                return k;
        p.lexer.filter = f;
        k = advance(&p);
        if (k == 0)
                k = parse_or(&p, &root);
        if (k == 0)
                k = parse_rest(&p);
        if (k == 0)
                k = check_condition(&p, root);
        if (k != 0)
                return k;
        nodes = reallocarray(f->nodes, f->n_nodes, sizeof(*nodes));
        if (nodes)
                f->nodes = nodes;
        *ret = TAKE_PTR(f);
        return 0;
}

Filter *filter_free(Filter *f) {
        if (!f)
                return NULL;
        free(f->nodes);
        free(f->names);
        free(f->units);
        free(f->sets);
        free(f);
        return NULL;
}
