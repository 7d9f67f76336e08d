/*
 * Numbers are those of C: each has a size and a sign, and what two of them give follows the usual arithmetic conversions, for
 * long is 64 bits where perf events are read. Fields come as the item has them; arrays are put into bytes again, in the order of
 * this machine, because casts and pointers look at them so.
 */
#include "client/print-evaluate.h"

#include <stdio.h>
#include <string.h>

#include "client/descriptor.h"

static uint64_t cut(uint64_t number, PrintType t) {
        unsigned unused;

        if (t.size == 0 || t.size >= 8)
                return number;
        unused = 64 - 8u * t.size;
        return t.is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number << unused >> unused;
}

static PrintValue number_of(uint64_t number, PrintType t) {
        t.is_pointer = false;
        return (PrintValue){ .number = cut(number, t), .type = t };
}

static const PrintType type_int = { .size = 4, .is_signed = true };

bool print_scratch_add(PrintEvaluation *e, const char *bytes, size_t n) {
        if (n > sizeof(e->scratch) - e->n)
                return false;
        memcpy(e->scratch + e->n, bytes, n);
        e->n += n;
        return true;
}

static void put_element(char *to, uint64_t number, uint32_t size) {
        uint8_t one = (uint8_t)number;
        uint16_t two = (uint16_t)number;
        uint32_t four = (uint32_t)number;

        if (size == 1)
                memcpy(to, &one, 1);
        else if (size == 2)
                memcpy(to, &two, 2);
        else if (size == 4)
                memcpy(to, &four, 4);
        else
                memcpy(to, &number, 8);
}

static uint64_t get_element(const char *at, PrintType t) {
        uint8_t one;
        uint16_t two;
        uint32_t four;
        uint64_t eight = 0;

        if (t.size == 1)
                return cut((memcpy(&one, at, 1), one), t);
        if (t.size == 2)
                return cut((memcpy(&two, at, 2), two), t);
        if (t.size == 4)
                return cut((memcpy(&four, at, 4), four), t);
        memcpy(&eight, at, 8);
        return eight;
}

static bool is_element_size(uint32_t size) {
        return size == 1 || size == 2 || size == 4 || size == 8;
}

static PrintType field_type(const perfd_field *f) {
        return (PrintType){ .size = (uint8_t)f->size, .is_signed = f->kind == PERFD_SIGNED };
}

static bool evaluate_field(PrintEvaluation *e, size_t i, PrintValue *ret) {
        perfd_value v;
        uint32_t size;

        if (!perfd_item_get(e->item, i, &v))
                return false;
        size = v.field->size;
        if (field_is_text(v.field)) {
                *ret = (PrintValue){ .is_bytes = true, .bytes = v.text.bytes, .length = v.text.length, .type = { .size = 1 } };
                return true;
        }
        if (!is_element_size(size))
                return false;
        if (v.field->count == 1) {
                *ret = number_of(v.numbers[0], field_type(v.field));
                return true;
        }
        if (v.count > (sizeof(e->scratch) - e->n) / size)
                return false;
        *ret = (PrintValue){ .is_bytes = true, .bytes = e->scratch + e->n, .length = v.count * size, .type = field_type(v.field) };
        for (size_t k = 0; k < v.count; k++, e->n += size)
                put_element(e->scratch + e->n, v.numbers[k], size);
        return true;
}

/* As bitmap_string() of lib/vsprintf.c: words of 32 bits, the highest first. */
static bool evaluate_bitmask(PrintEvaluation *e, size_t i, PrintValue *ret) {
        size_t begin, n;
        PrintValue v;
        char word[16];

        if (!evaluate_field(e, i, &v) || !v.is_bytes || v.length % 4 != 0 || v.length == 0)
                return false;
        begin = e->n;
        n = v.length / 4;
        for (size_t k = n; k-- > 0;) {
                uint32_t bits = (uint32_t)get_element(v.bytes + 4 * k, (PrintType){ .size = 4 });

                (void)snprintf(word, sizeof(word), "%s%08x", k + 1 < n ? "," : "", bits);
                if (!print_scratch_add(e, word, strlen(word)))
                        return false;
        }
        *ret = (PrintValue){ .is_bytes = true, .bytes = e->scratch + begin, .length = e->n - begin, .type = { .size = 1 } };
        return true;
}

static bool evaluate_length(PrintEvaluation *e, size_t i, PrintValue *ret) {
        PrintValue v;
        size_t n = e->n;

        if (!evaluate_field(e, i, &v))
                return false;
        e->n = n;
        *ret = number_of(v.is_bytes ? v.length : v.type.size, type_int);
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
                *ret = number_of(ret->number, (PrintType){ .size = 8 });
        else if (node->type.size > 0)
                *ret = number_of(ret->number, node->type);
        return true;
}

static bool element_at(const PrintValue *array, uint64_t i, PrintValue *ret) {
        size_t size = array->type.size;

        if (!array->is_bytes || !is_element_size(array->type.size) || i >= array->length / size)
                return false;
        *ret = number_of(get_element(array->bytes + i * size, array->type), array->type);
        return true;
}

static bool evaluate_unary(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        PrintValue v;
        PrintType t;

        if (!print_evaluate(e, node->first, &v))
                return false;
        if (node->code == '*')
                return element_at(&v, 0, ret);
        if (v.is_bytes)
                return false;
        t = v.type.size < 4 ? type_int : v.type;
        *ret = node->code == '!' ? number_of(v.number == 0, type_int) : number_of(node->code == '-' ? -v.number : ~v.number, t);
        return true;
}

static bool compare(char code, uint64_t a, uint64_t b, bool is_signed) {
        bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;

        switch (code) {
        case '<':
                return less;
        case '>':
                return !less && a != b;
        case PRINT_AT_MOST:
                return less || a == b;
        case PRINT_AT_LEAST:
                return !less;
        case PRINT_EQUAL:
                return a == b;
        default:
                return a != b;
        }
}

static bool divide(char code, uint64_t a, uint64_t b, bool is_signed, uint64_t *ret) {
        if (b == 0 || (is_signed && a == (uint64_t)INT64_MIN && b == UINT64_MAX))
                return false;
        if (is_signed)
                *ret = (uint64_t)(code == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
        else
                *ret = code == '/' ? a / b : a % b;
        return true;
}

static bool shift(char code, const PrintValue *a, uint64_t by, uint64_t *ret) {
        unsigned bits = a->type.size < 8 && a->type.size > 0 ? 32 : 64;

        if (by >= bits)
                return false;
        if (code == PRINT_SHIFT_LEFT)
                *ret = a->number << by;
        else
                *ret = a->type.is_signed ? (uint64_t)((int64_t)a->number >> by) : a->number >> by;
        return true;
}

static PrintType common_type(PrintType a, PrintType b) {
        PrintType t = { .size = a.size > b.size ? a.size : b.size };

        if (a.size == 0 || b.size == 0)
                return (PrintType){ .size = 8, .is_signed = (a.size == 0 || a.is_signed) && (b.size == 0 || b.is_signed) };
        if (t.size < 4)
                return type_int;
        t.is_signed = (a.size < t.size || a.is_signed) && (b.size < t.size || b.is_signed);
        return t;
}

static bool calculate(char code, const PrintValue *a, const PrintValue *b, PrintValue *ret) {
        PrintType t = common_type(a->type, b->type);
        uint64_t x = cut(a->number, t), y = cut(b->number, t), result;

        switch (code) {
        case '+':
                result = x + y;
                break;
        case '-':
                result = x - y;
                break;
        case '*':
                result = x * y;
                break;
        case '&':
                result = x & y;
                break;
        case '|':
                result = x | y;
                break;
        case '^':
                result = x ^ y;
                break;
        case '/':
        case '%':
                if (!divide(code, x, y, t.is_signed, &result))
                        return false;
                break;
        case PRINT_SHIFT_LEFT:
        case PRINT_SHIFT_RIGHT:
                t = a->type.size > 0 && a->type.size < 4 ? type_int : a->type; /* the right one's does not matter */
                if (!shift(code, a, b->number, &result))
                        return false;
                break;
        default:
                t = type_int;
                result = compare(code, x, y, common_type(a->type, b->type).is_signed);
        }
        *ret = number_of(result, t);
        return true;
}

static bool evaluate_binary(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        bool is_logic = node->code == PRINT_AND || node->code == PRINT_OR;
        PrintValue a, b;

        if (!print_evaluate(e, node->first, &a) || a.is_bytes)
                return false;
        if (is_logic && (a.number != 0) == (node->code == PRINT_OR)) {
                *ret = number_of(a.number != 0, type_int);
                return true;
        }
        if (!print_evaluate(e, node->first->next, &b) || b.is_bytes)
                return false;
        if (!is_logic)
                return calculate(node->code, &a, &b, ret);
        *ret = number_of(b.number != 0, type_int);
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
               element_at(&array, index.number, ret);
}

bool print_evaluate(PrintEvaluation *e, const PrintNode *node, PrintValue *ret) {
        switch ((PrintKind)node->kind) {
        case PRINT_NUMBER:
                *ret = number_of(node->number, node->type);
                return true;
        case PRINT_TEXT:
                *ret = (PrintValue){ .is_bytes = true, .bytes = node->text, .length = node->length, .type = { .size = 1 } };
                return true;
        case PRINT_FIELD:
                return evaluate_field(e, node->field, ret);
        case PRINT_LENGTH:
                return evaluate_length(e, node->field, ret);
        case PRINT_BITMASK:
                return evaluate_bitmask(e, node->field, ret);
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
                return print_names(e, node, ret);
        }
}
