/*
 * Fields come as the item has them; arrays are put into bytes again, in the order of this machine, because casts and pointers look
 * at them so.
 */
#include "client/render/field.h"

#include <stdio.h>
#include <string.h>

#include "client/item/descriptor.h"

bool print_scratch_add(PrintEvaluation *e, const char *bytes, size_t n) {
        if (n > sizeof(e->scratch) - e->n)
                return false;
        memcpy(e->scratch + e->n, bytes, n);
        e->n += n;
        return true;
}

static PrintType field_type(const perfd_field *f) {
        return (PrintType){ .size = (uint8_t)f->size, .is_signed = f->kind == PERFD_SIGNED };
}

bool print_evaluate_field(PrintEvaluation *e, size_t i, PrintValue *ret) {
        perfd_value v;
        uint32_t size;

        if (!perfd_item_get(e->item, i, &v))
                return false;
        size = v.field->size;
        if (field_is_text(v.field)) {
                *ret = (PrintValue){ .is_bytes = true, .bytes = v.text.bytes, .length = v.text.length, .type = { .size = 1 } };
                return true;
        }
        if (!print_is_element_size(size))
                return false;
        if (v.field->count == 1) {
                *ret = print_number_of(v.numbers[0], field_type(v.field));
                return true;
        }
        if (v.count > (sizeof(e->scratch) - e->n) / size)
                return false;
        *ret = (PrintValue){ .is_bytes = true, .bytes = e->scratch + e->n, .length = v.count * size, .type = field_type(v.field) };
        for (size_t k = 0; k < v.count; k++, e->n += size)
                print_put_element(e->scratch + e->n, v.numbers[k], size);
        return true;
}

/* As bitmap_string() of lib/vsprintf.c: words of 32 bits, the highest first. */
bool print_evaluate_bitmask(PrintEvaluation *e, size_t i, PrintValue *ret) {
        size_t begin, n;
        PrintValue v;
        char word[16];

        if (!print_evaluate_field(e, i, &v) || !v.is_bytes || v.length % 4 != 0 || v.length == 0)
                return false;
        begin = e->n;
        n = v.length / 4;
        for (size_t k = n; k-- > 0;) {
                uint32_t bits;

                memcpy(&bits, v.bytes + 4 * k, 4);
                (void)snprintf(word, sizeof(word), "%s%08x", k + 1 < n ? "," : "", bits);
                if (!print_scratch_add(e, word, strlen(word)))
                        return false;
        }
        *ret = (PrintValue){ .is_bytes = true, .bytes = e->scratch + begin, .length = e->n - begin, .type = { .size = 1 } };
        return true;
}

bool print_evaluate_length(PrintEvaluation *e, size_t i, PrintValue *ret) {
        PrintValue v;
        size_t n = e->n;

        if (!print_evaluate_field(e, i, &v))
                return false;
        e->n = n;
        *ret = print_number_of(v.is_bytes ? v.length : v.type.size, print_type_int);
        return true;
}
