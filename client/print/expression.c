/*
 * A recursive descent with one function for all binary operators, by precedence. What a print format can call is the table of
 * calls; statements in expressions, and functions of the kernel, cannot be evaluated by who has only the record.
 */
#include "client/print/expression.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "client/print/arithmetic.h"
#include "client/print/text.h"
#include "client/print/type.h"

#define DEPTH_MAX 48     /* of brackets and operands */
#define NODES_MAX 4096   /* of one argument */

typedef struct Parser {
        const char *at, *end;
        const perfd_field *fields;
        size_t n_fields, n_nodes;
        unsigned depth;
        Arena *arena;
        bool no_memory;
} Parser;

static PrintNode *parse(Parser *p);
static PrintNode *parse_unary(Parser *p);

static bool is_word(char c) {
        return isalnum((unsigned char)c) || c == '_';
}

static void skip_spaces(Parser *p) {
        while (p->at < p->end && isspace((unsigned char)*p->at))
                p->at++;
}

static bool skip(Parser *p, const char *text) {
        size_t n = strlen(text);

        skip_spaces(p);
        if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0)
                return false;
        p->at += n;
        return true;
}

static PrintNode *add(Parser *p, PrintKind kind, PrintNode *first) {
        PrintNode *node;

        if (p->n_nodes++ == NODES_MAX)
                return NULL;
        node = arena_push(p->arena, 1, sizeof(*node));
        if (!node) {
                p->no_memory = true;
                return NULL;
        }
        node->kind = (uint8_t)kind;
        node->first = first;
        return node;
}

static PrintNode *parse_text(Parser *p) {
        const char *begin = p->at, *behind = p->at;
        PrintNode *node = add(p, PRINT_TEXT, NULL);

        while (p->at < p->end && *p->at == '"') {
                behind = print_quoted_end(p->at, p->end);
                if (!behind)
                        return NULL;
                p->at = behind;
                skip_spaces(p);
        }
        if (!node || !print_text_new(p->arena, begin, behind, &node->text, &node->length))
                return NULL;
        p->no_memory = p->no_memory || !node->text;
        return node->text ? node : NULL;
}

static PrintNode *parse_number(Parser *p) {
        unsigned base = skip(p, "0x") || skip(p, "0X") ? 16 : *p->at == '0' ? 8 : 10;
        const char *begin = p->at;
        bool is_unsigned = false, is_long = false;
        PrintNode *node = add(p, PRINT_NUMBER, NULL);
        uint64_t value = 0;

        for (; node && p->at < p->end && isxdigit((unsigned char)*p->at); p->at++) {
                char c = *p->at;
                unsigned digit = isdigit((unsigned char)c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;

                if (digit >= base)
                        return NULL;
                value = value * base + digit;
        }
        if (!node || p->at == begin)
                return NULL;
        for (; p->at < p->end && strchr("uUlL", *p->at) && *p->at; p->at++) {
                is_unsigned = is_unsigned || (*p->at | 0x20) == 'u';
                is_long = is_long || (*p->at | 0x20) == 'l';
        }
        if (p->at < p->end && is_word(*p->at))
                return NULL;
        node->number = value;
        node->type.size = is_long || value > UINT32_MAX || (value > INT32_MAX && !is_unsigned && base == 10) ? 8 : 4;
        node->type.is_signed = !is_unsigned && value <= (node->type.size == 4 ? (uint64_t)INT32_MAX : (uint64_t)INT64_MAX);
        return node;
}

static PrintNode *parse_character(Parser *p) {
        const char *behind = print_quoted_end(p->at, p->end);
        PrintNode *node = add(p, PRINT_NUMBER, NULL);

        if (!behind || !node || behind - p->at < 3 || behind - p->at > 4 || (behind - p->at == 4) != (p->at[1] == '\\'))
                return NULL;
        node->number = (uint64_t)(int64_t)(behind - p->at == 4 ? print_unescaped(p->at[2]) : p->at[1]);
        node->type = (PrintType){ .size = 4, .is_signed = true };
        p->at = behind;
        return node;
}

/* The word at the front; its length. */
static size_t read_word(Parser *p, const char **ret) {
        skip_spaces(p);
        *ret = p->at;
        while (p->at < p->end && is_word(*p->at))
                p->at++;
        return (size_t)(p->at - *ret);
}

static PrintNode *parse_field(Parser *p, PrintKind kind) {
        const char *word;
        size_t n = read_word(p, &word);

        for (size_t i = 0; n > 0 && i < p->n_fields; i++)
                if (strlen(p->fields[i].name) == n && memcmp(p->fields[i].name, word, n) == 0) {
                        PrintNode *node = add(p, kind, NULL);

                        if (node)
                                node->field = i;
                        return node;
                }
        return NULL;
}

/* sizeof(REC->name), sizeof(type) */
static PrintNode *parse_sizeof(Parser *p) {
        PrintNode *node;
        PrintType type;
        const char *behind;

        if (skip(p, "REC->")) {
                node = parse_field(p, PRINT_LENGTH);
                return skip(p, ")") ? node : NULL;
        }
        behind = print_type_read(p->at, p->end, &type);
        node = add(p, PRINT_NUMBER, NULL);
        if (!behind || !node || (!type.is_pointer && type.size == 0))
                return NULL;
        p->at = behind;
        node->number = type.is_pointer ? 8 : type.size;
        node->type = (PrintType){ .size = 8 };
        return node;
}

/* { VALUE, "NAME" }; a value that is no number is the name of an enum, which stays not known. */
static PrintNode *parse_name(Parser *p) {
        const char *comma = print_argument_end(p->at, p->end);
        PrintNode *value, *name, *node;

        if (!comma || comma == p->end)
                return NULL;
        value = parse(p);
        skip_spaces(p);
        if (!value || p->at != comma) {
                value = p->no_memory ? NULL : add(p, PRINT_UNKNOWN, NULL);
                p->at = comma;
        }
        if (!value || !skip(p, ","))
                return NULL;
        skip_spaces(p);
        name = p->at < p->end && *p->at == '"' ? parse_text(p) : NULL;
        node = name && skip(p, "}") ? add(p, PRINT_NAME, value) : NULL;
        if (node)
                value->next = name;
        return node;
}

/* The end of the kernel's own lists, { 0, NULL }, and an empty one name nothing. */
static bool skip_no_name(Parser *p) {
        const char *before = p->at;

        if (skip(p, "}"))
                return true;
        if ((skip(p, "0") || skip(p, "-1")) && skip(p, ",") && (skip(p, "NULL") || skip(p, "((void *)0)")) && skip(p, "}"))
                return true;
        p->at = before;
        return false;
}

typedef struct CallForm {
        const char *name;
        PrintKind kind;
        uint8_t least, most; /* arguments */
} CallForm;

static const CallForm calls[] = {
        { "__print_flags", PRINT_FLAGS, 2, UINT8_MAX }, { "__print_flags_u64", PRINT_FLAGS, 2, UINT8_MAX },
        { "__print_symbolic", PRINT_SYMBOLIC, 1, UINT8_MAX }, { "__print_symbolic_u64", PRINT_SYMBOLIC, 1, UINT8_MAX },
        { "__print_hex", PRINT_HEX, 2, 2 }, { "__print_hex_str", PRINT_HEX_STRING, 2, 2 }, { "__print_array", PRINT_ARRAY, 3, 3 },
        { "__print_dynamic_array", PRINT_DYNAMIC_ARRAY, 2, 2 }, { "__print_ns_to_secs", PRINT_SECONDS, 1, 1 },
        { "__print_ns_without_secs", PRINT_FRACTION, 1, 1 },
};

static const struct {
        const char *name;
        PrintKind kind;
} getters[] = {
        { "__get_str", PRINT_FIELD }, { "__get_rel_str", PRINT_FIELD }, { "__get_dynamic_array", PRINT_FIELD },
        { "__get_rel_dynamic_array", PRINT_FIELD }, { "__get_sockaddr", PRINT_FIELD }, { "__get_rel_sockaddr", PRINT_FIELD },
        { "__get_dynamic_array_len", PRINT_LENGTH }, { "__get_rel_dynamic_array_len", PRINT_LENGTH },
        { "__get_bitmask", PRINT_BITMASK }, { "__get_rel_bitmask", PRINT_BITMASK }, { "__get_cpumask", PRINT_BITMASK },
        { "__get_rel_cpumask", PRINT_BITMASK },
};

static bool word_equal(const char *word, size_t n, const char *name) {
        return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* Arguments up to the ')'; those that are lists of names have their brackets. */
static PrintNode *parse_arguments(Parser *p, const CallForm *form) {
        PrintNode *node = add(p, form->kind, NULL), **last = node ? &node->first : NULL;
        size_t n = 0;

        if (!node)
                return NULL;
        do {
                PrintNode *argument;

                if (skip(p, "{")) {
                        if (n < form->least || form->most != UINT8_MAX)
                                return NULL;
                        if (skip_no_name(p))
                                continue;
                        argument = parse_name(p);
                } else
                        argument = n < form->least ? parse(p) : NULL;
                if (!argument)
                        return NULL;
                *last = argument;
                last = &argument->next;
                n++;
        } while (skip(p, ","));
        return skip(p, ")") && n >= form->least ? node : NULL;
}

static PrintNode *parse_call(Parser *p, const char *word, size_t n) {
        PrintNode *node;

        if (word_equal(word, n, "sizeof"))
                return parse_sizeof(p);
        for (size_t i = 0; i < sizeof(getters) / sizeof(getters[0]); i++)
                if (word_equal(word, n, getters[i].name)) {
                        node = parse_field(p, getters[i].kind);
                        return skip(p, ")") ? node : NULL;
                }
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                if (word_equal(word, n, calls[i].name))
                        return parse_arguments(p, &calls[i]);
        if (word_equal(word, n, "__builtin_expect")) { /* is its first argument */
                node = parse(p);
                return node && skip(p, ",") && parse(p) && skip(p, ")") ? node : NULL;
        }
        return NULL;
}

static PrintNode *parse_word(Parser *p) {
        const char *word;
        size_t n = read_word(p, &word);

        if (word_equal(word, n, "REC"))
                return skip(p, "->") ? parse_field(p, PRINT_FIELD) : NULL;
        if (word_equal(word, n, "NULL") || word_equal(word, n, "false") || word_equal(word, n, "true")) {
                PrintNode *node = add(p, PRINT_NUMBER, NULL);

                if (node) {
                        node->number = *word == 't';
                        node->type = (PrintType){ .size = 4, .is_signed = true };
                }
                return node;
        }
        return n > 0 && skip(p, "(") ? parse_call(p, word, n) : NULL;
}

static PrintNode *parse_brackets(Parser *p) {
        PrintType type;
        const char *behind = print_type_read(p->at, p->end, &type);
        PrintNode *node;

        if (behind) {
                p->at = behind;
                node = parse_unary(p);
                node = node ? add(p, PRINT_CAST, node) : NULL;
                if (node)
                        node->type = type;
                return node;
        }
        node = parse(p);
        return skip(p, ")") ? node : NULL;
}

static PrintNode *parse_indices(Parser *p, PrintNode *node) {
        while (node && skip(p, "[")) {
                PrintNode *index = parse(p);

                if (!index || !skip(p, "]"))
                        return NULL;
                node->next = index;
                node = add(p, PRINT_INDEX, node);
        }
        return node;
}

static PrintNode *parse_operand(Parser *p) {
        static const char operators[] = "-~!+*&";
        PrintNode *node;
        char c;

        skip_spaces(p);
        if (p->at == p->end)
                return NULL;
        c = *p->at;
        if (c && strchr(operators, c)) {
                p->at++;
                node = parse_unary(p);
                if (!node || c == '+' || (c == '&' && node->kind == PRINT_FIELD))
                        return node;
                node = c == '&' ? NULL : add(p, PRINT_UNARY, node);
                if (node)
                        node->code = c;
                return node;
        }
        if (c == '"')
                return parse_text(p);
        if (c == '\'')
                return parse_character(p);
        if (isdigit((unsigned char)c))
                return parse_number(p);
        return parse_indices(p, skip(p, "(") ? parse_brackets(p) : parse_word(p));
}

static PrintNode *parse_unary(Parser *p) {
        PrintNode *node;

        if (p->depth == DEPTH_MAX)
                return NULL;
        p->depth++;
        node = parse_operand(p);
        p->depth--;
        return node;
}

typedef struct Operator {
        const char *text;
        int precedence;
        char code;
} Operator;

/* Longer ones first. */
static const Operator operators[] = {
        { "<<", 8, PRINT_SHIFT_LEFT }, { ">>", 8, PRINT_SHIFT_RIGHT }, { "<=", 7, PRINT_AT_MOST }, { ">=", 7, PRINT_AT_LEAST },
        { "==", 6, PRINT_EQUAL }, { "!=", 6, PRINT_NOT_EQUAL }, { "&&", 2, PRINT_AND }, { "||", 1, PRINT_OR },
        { "*", 10, '*' }, { "/", 10, '/' }, { "%", 10, '%' }, { "+", 9, '+' }, { "-", 9, '-' }, { "<", 7, '<' }, { ">", 7, '>' },
        { "&", 5, '&' }, { "^", 4, '^' }, { "|", 3, '|' },
};

/* The operator at the front, if it binds at least as strongly; then it is behind it. */
static const Operator *skip_operator(Parser *p, int lowest) {
        const char *before = p->at;

        for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
                if (skip(p, operators[i].text)) {
                        if (operators[i].precedence >= lowest)
                                return &operators[i];
                        p->at = before;
                        return NULL;
                }
        return NULL;
}

/* Of two constants, one, so that no item has to calculate it: masks of formats are long sums. */
static void fold(PrintNode *node) {
        const PrintNode *a = node->first, *b = a->next;
        PrintValue left, right, v;

        if (node->code == PRINT_AND || node->code == PRINT_OR || a->kind != PRINT_NUMBER || b->kind != PRINT_NUMBER)
                return;
        left = print_number_of(a->number, a->type);
        right = print_number_of(b->number, b->type);
        if (!print_calculate(node->code, &left, &right, &v))
                return;
        node->kind = PRINT_NUMBER;
        node->number = v.number;
        node->type = v.type;
        node->first = NULL;
}

static PrintNode *parse_binary(Parser *p, int lowest) {
        PrintNode *left = parse_unary(p), *right;
        const Operator *o;

        while (left && (o = skip_operator(p, lowest))) {
                right = parse_binary(p, o->precedence + 1);
                if (!right)
                        return NULL;
                left->next = right;
                left = add(p, PRINT_BINARY, left);
                if (left) {
                        left->code = o->code;
                        fold(left);
                }
        }
        return left;
}

static PrintNode *parse(Parser *p) {
        PrintNode *node, *yes, *no;

        if (p->depth == DEPTH_MAX)
                return NULL;
        p->depth++;
        node = parse_binary(p, 1);
        if (node && skip(p, "?")) {
                yes = parse(p);
                no = yes && skip(p, ":") ? parse(p) : NULL;
                if (no) {
                        node->next = yes;
                        yes->next = no;
                }
                node = no ? add(p, PRINT_CHOICE, node) : NULL;
        }
        p->depth--;
        return node;
}

static bool is_flat(const PrintNode *node, unsigned depth) {
        for (const PrintNode *n = node->first; n; n = n->next)
                if (depth == PRINT_DEPTH_MAX || !is_flat(n, depth + 1))
                        return false;
        return true;
}

int print_expression_new(Arena *arena, const char *at, const char *end, const perfd_field *fields, size_t n_fields,
                         PrintNode **ret_node) {
        Parser p = { .at = at, .end = end, .fields = fields, .n_fields = n_fields, .arena = arena };
        PrintNode *node = parse(&p);

        skip_spaces(&p);
        if (p.no_memory)
                return -ENOMEM;
        *ret_node = node && p.at == p.end && is_flat(node, 0) ? node : NULL;
        return 0;
}
