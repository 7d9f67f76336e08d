/*
 * Values as people read them. Names of flags follow trace_print_flags_seq(): the first name that fits
 * takes its bits, what no name has is left as a number.
 */
#include "client/item/item.h"
#include "client/render/conversion.h"
#include "client/render/render.h"

static const char *field_value_name(const perfd_field *f, uint64_t number) {
        for (size_t i = 0; i < f->n_values; i++)
                if (f->values[i].value == number)
                        return f->values[i].name;
        return NULL;
}

static bool render_flags(Render *r, const perfd_field *f, uint64_t number) {
        uint64_t left = number;

        for (size_t i = 0; i < f->n_values && left != 0; i++) {
                uint64_t bits = f->values[i].value;

                if (bits == 0 || (left & bits) != bits)
                        continue;
                if (left != number)
                        render_string(r, f->delimiter);
                render_string(r, f->values[i].name);
                left &= ~bits;
        }
        if (left == number)
                return false;
        if (left != 0) {
                render_string(r, f->delimiter);
                render_hex(r, left);
        }
        return true;
}

/* The number as its field's size has it: a format names -1 of an int by 64 bits or by 32. */
static uint64_t number_of_size(const perfd_field *f, uint64_t number) {
        return f->size > 0 && f->size < 8 ? number & (((uint64_t)1 << (8 * f->size)) - 1) : number;
}

static bool render_name(Render *r, const perfd_field *f, uint64_t number) {
        const char *name;

        if (f->n_values == 0)
                return false;
        name = field_value_name(f, number);
        if (!name)
                name = field_value_name(f, number_of_size(f, number));
        if (name) {
                render_string(r, name);
                return true;
        }
        return f->flags && render_flags(r, f, number_of_size(f, number));
}

static void render_plain(Render *r, const perfd_field *f, uint64_t number) {
        if (f->kind == PERFD_POINTER || f->hex || (f->flags && number != 0))
                render_hex(r, number_of_size(f, number));
        else if (f->kind == PERFD_SIGNED)
                render_signed(r, (int64_t)number);
        else
                render_unsigned(r, number);
}

static void render_element(Render *r, const perfd_field *f, uint64_t number) {
        if (f->n_values == 0 || !render_name(r, f, number))
                render_plain(r, f, number);
}

size_t perfd_field_render(const perfd_field *field, uint64_t number, char *to, size_t size) {
        Render r = { .to = to, .size = size };

        (void)render_name(&r, field, number); /* no name: no text */
        return render_end(&r);
}

_Static_assert(offsetof(Descriptor, event) == 0, "an event that the library gives is the beginning of its descriptor");

bool perfd_event_formats(const perfd_event *event, size_t i) {
        const Descriptor *d = (const Descriptor *)(const void *)event;

        return i < event->n_fields && d->print && d->print->fields[i].n > 0;
}

size_t perfd_value_render(const perfd_value *value, char *to, size_t size) {
        Render r = { .to = to, .size = size };
        const perfd_field *f = value->field;

        if (value->fault)
                render_string(&r, "(fault)"); /* as print_type_string() of the kernel's trace_probe.c */
        else if (field_is_text(f))
                render_bytes(&r, value->text.bytes, value->text.length);
        else if (f->count == 1)
                render_element(&r, f, value->numbers[0]);
        else {
                render_bytes(&r, "{", 1);
                for (size_t i = 0; i < value->count; i++) {
                        if (i > 0)
                                render_bytes(&r, ",", 1);
                        render_element(&r, f, value->numbers[i]);
                }
                render_bytes(&r, "}", 1);
        }
        return render_end(&r);
}

size_t perfd_item_render(const perfd_item *item, size_t i, const perfd_symbols *symbols, char *to, size_t size) {
        Render r = { .to = to, .size = size };
        perfd_value v;

        if (!perfd_item_get(item, i, &v))
                return render_end(&r);
        if (item->descriptor->print && print_field(item->descriptor->print, item, i, symbols, &r) && r.length > 0)
                return render_end(&r);
        if (v.field->kind != PERFD_BYTES)
                return perfd_value_render(&v, to, size);
        for (size_t k = 0; k < v.text.length; k++) {
                const uint8_t byte = (uint8_t)v.text.bytes[k];

                render_bytes(&r, (const char[2]){ "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15] }, 2);
        }
        return render_end(&r);
}
