/* As vsnprintf() of the kernel has it: "%#x" of 0 is 0x0 there, which it is not in C. */
#include "client/render/conversion.h"

#include <string.h>

#include "client/render/evaluate.h"
#include "client/render/pointer.h"

#define WIDTH_MAX 256

typedef struct Shape {
        int width, precision; /* -1: none */
        bool left;
} Shape;

static uint64_t cut(uint64_t number, uint8_t size, bool is_signed) {
        unsigned unused = 64 - 8u * size;

        return is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number << unused >> unused;
}

static size_t put_digits(char to[static 32], uint64_t number, unsigned base, bool is_upper) {
        const char *digits = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
        char reversed[32];
        size_t n = 0;

        do
                reversed[n++] = digits[number % base];
        while ((number /= base) > 0);
        for (size_t i = 0; i < n; i++)
                to[i] = reversed[n - 1 - i];
        return n;
}

static void put_zeros(Render *r, int n) {
        while (n-- > 0)
                render_bytes(r, "0", 1);
}

/* Spaces of a width are left out: a value stands behind its name, and not in a column. */
static void put_number(const PrintConversion *c, const Shape *s, uint64_t number, bool has_base, Render *r) {
        bool is_hex = c->code == 'x' || c->code == 'X', is_signed = c->code == 'd';
        unsigned base = is_hex ? 16 : c->code == 'o' ? 8 : 10;
        const char *sign = "";
        char digits[32];
        int n;

        number = cut(number, c->size, is_signed);
        if (is_signed && (int64_t)number < 0) {
                sign = "-";
                number = -number;
        } else if (is_signed)
                sign = c->plus ? "+" : "";
        n = (int)put_digits(digits, number, base, c->code == 'X');
        render_string(r, sign);
        if (is_hex && (has_base || c->alternate))
                render_string(r, "0x");
        else if (base == 8 && (has_base || c->alternate) && number != 0)
                render_string(r, "0");
        if (s->precision >= 0)
                put_zeros(r, s->precision - n);
        else if (c->zeros && !s->left)
                put_zeros(r, s->width - n - (*sign != '\0') - (is_hex && c->alternate ? 2 : 0));
        render_bytes(r, digits, (size_t)n);
}

static bool put_text(const Shape *s, const PrintValue *v, Render *r) {
        size_t n;

        if (!v->is_bytes) {
                if (v->number != 0)
                        return false; /* only the kernel can read what is there */
                render_string(r, "(null)");
                return true;
        }
        n = v->length > 0 ? strnlen(v->bytes, v->length) : 0;
        if (s->precision >= 0 && n > (size_t)s->precision)
                n = (size_t)s->precision;
        if (n > 0)
                render_bytes(r, v->bytes, n);
        return true;
}

static bool get_star(PrintEvaluation *e, const PrintNode *node, int64_t *ret) {
        PrintValue v;

        if (!node || !print_evaluate(e, node, &v) || v.is_bytes)
                return false;
        *ret = (int32_t)v.number;
        return true;
}

static bool get_shape(const PrintConversion *c, PrintEvaluation *e, Shape *ret, int64_t *ret_star) {
        int64_t width = c->width, precision = c->precision;

        *ret_star = -1;
        if ((c->width_is_star && !get_star(e, c->stars[0], &width)) ||
            (c->precision_is_star && !get_star(e, c->stars[c->width_is_star], &precision)))
                return false;
        if (c->width_is_star)
                *ret_star = width;
        ret->left = c->left || width < 0;
        width = width < 0 ? -width : width;
        if (c->code != 'p' && width > WIDTH_MAX)
                return false;
        ret->width = c->code == 'p' ? 0 : (int)width;
        ret->precision = precision < 0 ? -1 : precision > INT32_MAX ? INT32_MAX : (int)precision;
        return c->code == 's' || ret->precision <= WIDTH_MAX;
}

static bool print_conversion(const PrintConversion *c, PrintEvaluation *e, bool has_base, const perfd_symbols *symbols, Render *r) {
        int64_t star;
        PrintValue v;
        Shape shape;
        char one;

        e->n = 0;
        if (!c->argument || !get_shape(c, e, &shape, &star) || !print_evaluate(e, c->argument, &v))
                return false;
        switch (c->code) {
        case 's':
                return put_text(&shape, &v, r);
        case 'p':
                return print_pointer(r, c->letters, c->n_letters, star, &v, symbols);
        case 'c':
                one = (char)v.number;
                if (!v.is_bytes)
                        render_bytes(r, &one, 1);
                return !v.is_bytes;
        default:
                if (!v.is_bytes)
                        put_number(c, &shape, v.number, has_base, r);
                return !v.is_bytes;
        }
}

static bool ends_in_base(const PrintConversion *c) {
        return c->n_literal >= 2 && c->literal[c->n_literal - 2] == '0' && (c->literal[c->n_literal - 1] | 0x20) == 'x';
}

static bool print_anew(const PrintFormat *f, const perfd_item *item, size_t i, const perfd_symbols *symbols, Render *r) {
        const PrintField *shown = &f->fields[i];
        PrintEvaluation e;
        size_t begin = r->length;

        e.item = item;
        for (size_t k = 0; k < shown->n; k++) {
                const PrintConversion *c = &f->conversions[shown->first + k];
                bool has_base = k == 0 && (shown->n == 1 || ends_in_base(c));

                if (k > 0)
                        render_bytes(r, c->literal, c->n_literal);
                if (!print_conversion(c, &e, has_base && !c->alternate, symbols, r)) {
                        r->length = begin;
                        return false;
                }
        }
        return shown->n > 0;
}

/* NULL: no memory. */
static PrintShown *shown_place(const PrintFormat *f, PrintField *field, uint64_t number) {
        if (!field->shown)
                field->shown = arena_push(f->arena, PRINT_SHOWN, sizeof(*field->shown));
        return field->shown ? &field->shown[(number * 0x9E3779B97F4A7C15U >> 32) % PRINT_SHOWN] : NULL;
}

/* States and flags have few values, and many names: what was made of one is kept. */
bool print_field(const PrintFormat *f, const perfd_item *item, size_t i, const perfd_symbols *symbols, Render *r) {
        PrintShown *shown;
        size_t begin = r->length;
        perfd_value v;

        if (f->fields[i].n == 0)
                return false;
        if (!f->fields[i].is_of_number || !perfd_item_get(item, i, &v))
                return print_anew(f, item, i, symbols, r);
        shown = shown_place(f, &f->fields[i], v.numbers[0]);
        if (shown && shown->length > 0 && shown->number == v.numbers[0]) {
                render_bytes(r, shown->text, shown->length);
                return true;
        }
        if (!print_anew(f, item, i, symbols, r))
                return false;
        if (shown && r->length <= r->size && r->length - begin <= sizeof(shown->text)) {
                shown->number = v.numbers[0];
                shown->length = (uint8_t)(r->length - begin);
                memcpy(shown->text, r->to + begin, shown->length);
        }
        return true;
}
