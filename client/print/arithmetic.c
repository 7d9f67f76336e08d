/*
 * Numbers are those of C: each has a size and a sign, and what two of them give follows the usual arithmetic conversions, for
 * long is 64 bits where perf events are read.
 */
#include "client/print/arithmetic.h"

#include <string.h>

#include "client/print/expression.h"

static uint64_t cut(uint64_t number, PrintType t) {
        unsigned unused;

        if (t.size == 0 || t.size >= 8)
                return number;
        unused = 64 - 8u * t.size;
        return t.is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number << unused >> unused;
}

PrintValue print_number_of(uint64_t number, PrintType t) {
        t.is_pointer = false;
        return (PrintValue){ .number = cut(number, t), .type = t };
}

void print_put_element(char *to, uint64_t number, uint32_t size) {
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

bool print_is_element_size(uint32_t size) {
        return size == 1 || size == 2 || size == 4 || size == 8;
}

bool print_element_at(const PrintValue *array, uint64_t i, PrintValue *ret) {
        size_t size = array->type.size;

        if (!array->is_bytes || !print_is_element_size(array->type.size) || i >= array->length / size)
                return false;
        *ret = print_number_of(get_element(array->bytes + i * size, array->type), array->type);
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
                return print_type_int;
        t.is_signed = (a.size < t.size || a.is_signed) && (b.size < t.size || b.is_signed);
        return t;
}

bool print_calculate(char code, const PrintValue *a, const PrintValue *b, PrintValue *ret) {
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
                t = a->type.size > 0 && a->type.size < 4 ? print_type_int : a->type; /* the right one's does not matter */
                if (!shift(code, a, b->number, &result))
                        return false;
                break;
        default:
                t = print_type_int;
                result = compare(code, x, y, common_type(a->type, b->type).is_signed);
        }
        *ret = print_number_of(result, t);
        return true;
}
