/*
 * An expression is evaluated over its tree. What __print_flags() and its like give is as trace_output.c of the kernel makes it:
 * their arguments are evaluated before the text is begun, which therefore lies in one piece at the end of the scratch.
 */
#include "client/render/evaluate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static bool add(PrintEvaluation *e, const char *format, ...) {
        char text[64];
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        return print_scratch_add(e, text, (size_t)n);
}

static bool get_number(PrintEvaluation *e, const PrintNode *node, uint64_t *ret) {
        size_t n = e->n;
        PrintValue v;
        bool is_number;

        if (node->kind == PRINT_NUMBER) { /* the values of names */
                *ret = print_number_of(node->number, node->type).number;
                return true;
        }
        is_number = print_evaluate(e, node, &v) && !v.is_bytes;

        e->n = n;
        *ret = is_number ? v.number : 0;
        return is_number;
}

static bool get_bytes(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        return print_evaluate(e, node, ret) && ret->is_bytes;
}

static bool add_bytes(PrintEvaluation *e, const PrintValue *text) {
        return print_scratch_add(e, text->bytes, text->length);
}

/* trace_print_flags_seq(); with a bit that only a name without a value can have, nothing can be said */
static bool add_flags(PrintEvaluation *e, const PrintNode *node, size_t *ret_begin) {
        const PrintNode *delimiter = node->first->next;
        bool has_unknown = false, is_first = true;
        PrintValue between;
        uint64_t left, bits;

        if (!get_number(e, node->first, &left) || !get_bytes(e, delimiter, &between))
                return false;
        *ret_begin = e->n;
        for (const PrintNode *n = delimiter->next; n && left != 0; n = n->next) {
                const PrintNode *name = n->first->next;

                if (!get_number(e, n->first, &bits)) {
                        has_unknown = true;
                        continue;
                }
                if ((left & bits) != bits)
                        continue;
                if ((!is_first && !add_bytes(e, &between)) || !print_scratch_add(e, name->text, name->length))
                        return false;
                is_first = false;
                left &= ~bits;
        }
        if (left == 0)
                return true;
        return !has_unknown && (is_first || add_bytes(e, &between)) && add(e, "0x%" PRIx64, left);
}

/* trace_print_symbols_seq() */
static bool add_symbolic(PrintEvaluation *e, const PrintNode *node, size_t *ret_begin) {
        bool has_unknown = false;
        uint64_t number, value;

        if (!get_number(e, node->first, &number))
                return false;
        *ret_begin = e->n;
        for (const PrintNode *n = node->first->next; n; n = n->next) {
                if (!get_number(e, n->first, &value))
                        has_unknown = true;
                else if (value == number)
                        return print_scratch_add(e, n->first->next->text, n->first->next->length);
        }
        return !has_unknown && add(e, "0x%" PRIx64, number);
}

static bool add_hex(PrintEvaluation *e, const PrintNode *node, size_t *ret_begin) {
        PrintValue v;
        uint64_t n;

        if (!get_bytes(e, node->first, &v) || !get_number(e, node->first->next, &n) || n > v.length)
                return false;
        *ret_begin = e->n;
        for (size_t i = 0; i < n; i++)
                if (!add(e, "%s%02x", i > 0 && node->kind == PRINT_HEX ? " " : "", (uint8_t)v.bytes[i]))
                        return false;
        return true;
}

static bool add_array(PrintEvaluation *e, const PrintNode *node, size_t *ret_begin) {
        const PrintNode *argument = node->first->next;
        uint64_t n = UINT64_MAX, size;
        PrintValue v;

        if (!get_bytes(e, node->first, &v) || (node->kind == PRINT_ARRAY && !get_number(e, argument, &n)))
                return false;
        if (node->kind == PRINT_ARRAY)
                argument = argument->next;
        if (!get_number(e, argument, &size) || (size != 1 && size != 2 && size != 4 && size != 8))
                return false;
        if (node->kind == PRINT_DYNAMIC_ARRAY)
                n = v.length / size;
        *ret_begin = e->n;
        if (n > v.length / size || !add(e, "{"))
                return false;
        for (size_t i = 0; i < n; i++) {
                uint64_t number = 0;

                for (size_t k = 0; k < size; k++) /* elements are in the order of this machine */
                        ((char *)&number)[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? k : 8 - size + k] = v.bytes[i * size + k];
                if (!add(e, "%s0x%" PRIx64, i > 0 ? "," : "", number))
                        return false;
        }
        return add(e, "}");
}

static bool add_time(PrintEvaluation *e, const PrintNode *node, size_t *ret_begin) {
        uint64_t ns;

        if (!get_number(e, node->first, &ns))
                return false;
        *ret_begin = e->n;
        if (node->kind == PRINT_SECONDS)
                return add(e, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
        return add(e, "%" PRIu64, ns % 1000000000);
}

static bool add_any(PrintEvaluation *e, const PrintNode *node, size_t *ret_begin) {
        switch ((PrintKind)node->kind) {
        case PRINT_FLAGS:
                return add_flags(e, node, ret_begin);
        case PRINT_SYMBOLIC:
                return add_symbolic(e, node, ret_begin);
        case PRINT_HEX:
        case PRINT_HEX_STRING:
                return add_hex(e, node, ret_begin);
        case PRINT_ARRAY:
        case PRINT_DYNAMIC_ARRAY:
                return add_array(e, node, ret_begin);
        case PRINT_SECONDS:
        case PRINT_FRACTION:
                return add_time(e, node, ret_begin);
        default:
                return false;
        }
}

static bool evaluate_names(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        size_t begin = 0;

        if (!add_any(e, node, &begin))
                return false;
        *ret = (PrintValue){ .is_bytes = true, .bytes = e->scratch + begin, .length = e->n - begin, .type = { .size = 1 } };
        return true;
}

static bool evaluate_cast(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        if (!print_evaluate(e, node->first, ret))
                return false;
        if (ret->is_bytes) {
                if (!node->type.is_pointer)
                        return node->type.size == 0; /* the address of a place in the record means nothing here */
                if (node->type.size > 0)
                        ret->type = node->type;
                return true;
        }
        if (node->type.is_pointer)
                *ret = print_number_of(ret->number, (PrintType){ .size = 8 });
        else if (node->type.size > 0)
                *ret = print_number_of(ret->number, node->type);
        return true;
}

static bool evaluate_unary(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        PrintValue v;
        PrintType t;

        if (!print_evaluate(e, node->first, &v))
                return false;
        if (node->code == '*')
                return print_element_at(&v, 0, ret);
        if (v.is_bytes)
                return false;
        t = v.type.size < 4 ? print_type_int : v.type;
        *ret = node->code == '!' ? print_number_of(v.number == 0, print_type_int) : print_number_of(node->code == '-' ? -v.number : ~v.number, t);
        return true;
}

static bool evaluate_binary(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        bool is_logic = node->code == PRINT_AND || node->code == PRINT_OR;
        PrintValue a, b;

        if (!print_evaluate(e, node->first, &a) || a.is_bytes)
                return false;
        if (is_logic && (a.number != 0) == (node->code == PRINT_OR)) {
                *ret = print_number_of(a.number != 0, print_type_int);
                return true;
        }
        if (!print_evaluate(e, node->first->next, &b) || b.is_bytes)
                return false;
        if (!is_logic)
                return print_calculate(node->code, &a, &b, ret);
        *ret = print_number_of(b.number != 0, print_type_int);
        return true;
}

static bool evaluate_choice(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        const PrintNode *yes = node->first->next;
        PrintValue condition;

        if (!print_evaluate(e, node->first, &condition) || condition.is_bytes)
                return false;
        return print_evaluate(e, condition.number != 0 ? yes : yes->next, ret);
}

static bool evaluate_index(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        PrintValue array, index;

        return print_evaluate(e, node->first, &array) && print_evaluate(e, node->first->next, &index) && !index.is_bytes &&
               print_element_at(&array, index.number, ret);
}

bool print_evaluate(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        switch ((PrintKind)node->kind) {
        case PRINT_NUMBER:
                *ret = print_number_of(node->number, node->type);
                return true;
        case PRINT_TEXT:
                *ret = (PrintValue){ .is_bytes = true, .bytes = node->text, .length = node->length, .type = { .size = 1 } };
                return true;
        case PRINT_FIELD:
                return print_evaluate_field(e, node->field, ret);
        case PRINT_LENGTH:
                return print_evaluate_length(e, node->field, ret);
        case PRINT_BITMASK:
                return print_evaluate_bitmask(e, node->field, ret);
        case PRINT_CAST:
                return evaluate_cast(e, node, ret);
        case PRINT_UNARY:
                return evaluate_unary(e, node, ret);
        case PRINT_BINARY:
                return evaluate_binary(e, node, ret);
        case PRINT_CHOICE:
                return evaluate_choice(e, node, ret);
        case PRINT_INDEX:
                return evaluate_index(e, node, ret);
        case PRINT_NAME:
        case PRINT_UNKNOWN:
                return false;
        default:
                return evaluate_names(e, node, ret);
        }
}
