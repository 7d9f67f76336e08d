/*
 * Sorted by id and searched by halves: a table by id would let a descriptor with a large id ask for gigabytes, and a
 * stream has few events.
 */
#include "client/item/descriptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/print/format.h"

/* Names are of numbers: whoever shows them reads those of the item, and a text has none. */
static bool field_is_sound(const Perfd__V1__FieldDescriptor *m) {
        const bool is_text = (unsigned)m->kind == PERFD_TEXT || (unsigned)m->kind == PERFD_BYTES;

        return (unsigned)m->kind <= PERFD_BYTES && !(is_text && (m->n_values > 0 || m->flags));
}

static int field_init(perfd_field *f, Arena *arena, const Perfd__V1__FieldDescriptor *m, size_t index) {
        perfd_value_name *values;

        if (!field_is_sound(m))
                return PERFD_E_PROTOCOL;
        values = arena_push(arena, m->n_values, sizeof(*values));
        if (!values)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_values; i++)
                values[i] = (perfd_value_name){ .value = m->values[i]->value, .name = m->values[i]->name };
        *f = (perfd_field){
                .name = m->name,
                .type = m->type,
                .kind = (perfd_kind)m->kind,
                .size = m->size,
                .count = m->count,
                .values = values,
                .n_values = m->n_values,
                .flags = m->flags,
                .delimiter = m->delimiter,
                .hex = m->hex,
                .index = index,
        };
        return 0;
}

int fields_new(Arena *arena, Perfd__V1__FieldDescriptor *const *messages, size_t n, const perfd_field **ret_fields) {
        perfd_field *fields = arena_push(arena, n, sizeof(*fields));

        if (!fields)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                int r = field_init(&fields[i], arena, messages[i], i);

                if (r != 0)
                        return r;
        }
        *ret_fields = fields;
        return 0;
}

static Descriptor *descriptor_free(Descriptor *d) {
        if (!d)
                return NULL;
        arena_deinit(&d->arena);
        perfd__v1__event_descriptor__free_unpacked(d->message, NULL);
        free(d);
        return NULL;
}

static int descriptor_take_counters(Descriptor *d) {
        const Perfd__V1__EventDescriptor *m = d->message;
        perfd_counter *counters = arena_push(&d->arena, m->n_counters, sizeof(*counters));

        if (!counters)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_counters; i++)
                counters[i] = (perfd_counter){
                        .event = m->counters[i]->event,
                        .unit = m->counters[i]->unit,
                        .scale = m->counters[i]->scale != 0 ? m->counters[i]->scale : 1,
                };
        d->event.counters = counters;
        d->event.n_counters = m->n_counters;
        return 0;
}

/* A dynamic array moves all numbers behind it: those places are found item by item. */
static int descriptor_place(Descriptor *d) {
        d->places = arena_push(&d->arena, d->event.n_fields, sizeof(*d->places));
        if (!d->places)
                return -ENOMEM;
        for (size_t i = 0; i < d->event.n_fields; i++) {
                const perfd_field *f = &d->event.fields[i];

                if (field_is_text(f)) {
                        d->places[i] = (ValuePlace){ .first = d->n_texts++, .count = 1 };
                        continue;
                }
                d->places[i] = (ValuePlace){ .first = d->n_numbers, .count = f->count };
                d->n_numbers += f->count;
                d->dynamic = d->dynamic || f->count == 0;
        }
        return 0;
}

static int descriptor_new(Perfd__V1__EventDescriptor *message, Descriptor **ret) {
        Descriptor *d = calloc(1, sizeof(*d));
        int r;

        if (!d) {
                perfd__v1__event_descriptor__free_unpacked(message, NULL);
                return -ENOMEM;
        }
        d->message = message;
        d->event = (perfd_event){
                .id = message->id,
                .name = message->name,
                .event = message->event,
                .n_fields = message->n_fields,
                .period = message->period,
                .frequency = message->frequency,
                .unit = message->unit,
                .interval = message->interval,
        };
        d->is_external = strncmp(message->event, "external:", strlen("external:")) == 0;
        r = fields_new(&d->arena, message->fields, message->n_fields, &d->event.fields);
        if (r == 0)
                r = descriptor_place(d);
        if (r == 0)
                r = descriptor_take_counters(d);
        if (r == 0)
                r = print_format_new(&d->arena, message->print_format, &d->event, &d->print);
        if (r == 0 && message->id == 0) /* that is the host's side records */
                r = PERFD_E_PROTOCOL;
        if (r != 0) {
                descriptor_free(d);
                return r;
        }
        *ret = d;
        return 0;
}

/* The first with this id or a greater one. */
static size_t descriptors_place(const Descriptors *d, uint32_t id) {
        size_t low = 0, high = d->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (d->list[middle]->event.id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool descriptors_is_at(const Descriptors *d, size_t i, uint32_t id) {
        return i < d->n && d->list[i]->event.id == id;
}

static void descriptors_forget_found(Descriptors *d) {
        memset(d->recent, 0, sizeof(d->recent));
        d->layout = NULL;
}

int descriptors_add(Descriptors *d, Perfd__V1__EventDescriptor *message, const perfd_event **ret_event) {
        Descriptor *added, **list;
        size_t i;
        int r;

        r = descriptor_new(message, &added);
        if (r != 0)
                return r;
        i = descriptors_place(d, added->event.id);
        descriptors_forget_found(d);
        if (descriptors_is_at(d, i, added->event.id)) {
                descriptor_free(d->list[i]);
                d->list[i] = added;
        } else {
                list = reallocarray(d->list, d->n + 1, sizeof(*list));
                if (!list) {
                        descriptor_free(added);
                        return -ENOMEM;
                }
                d->list = list;
                memmove(&list[i + 1], &list[i], (d->n - i) * sizeof(*list));
                list[i] = added;
                d->n++;
        }
        *ret_event = &added->event;
        return 0;
}

void descriptors_remove(Descriptors *d, uint32_t id) {
        size_t i = descriptors_place(d, id);

        if (!descriptors_is_at(d, i, id))
                return;
        descriptors_forget_found(d);
        descriptor_free(d->list[i]);
        d->n--;
        memmove(&d->list[i], &d->list[i + 1], (d->n - i) * sizeof(*d->list));
}

Descriptor *descriptors_look(Descriptors *d, uint32_t id) {
        size_t i = descriptors_place(d, id);

        if (!descriptors_is_at(d, i, id))
                return NULL;
        d->recent[id % DESCRIPTORS_RECENT] = d->list[i];
        return d->list[i];
}

void descriptors_deinit(Descriptors *d) {
        for (size_t i = 0; i < d->n; i++)
                descriptor_free(d->list[i]);
        free(d->list);
        *d = DESCRIPTORS_NULL;
}
