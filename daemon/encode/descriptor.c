/*
 * Descriptors are cold: protobuf-c's own structures, each string a copy. A half-built message is freed by the
 * generated code, so that running out of memory in the middle needs no bookkeeping here.
 */
#include "daemon/encode/descriptor.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/error-trail.h"

static void field_descriptor_free(Perfd__V1__FieldDescriptor *d) {
        perfd__v1__field_descriptor__free_unpacked(d, NULL);
}
DEFINE_CLEANUP(Perfd__V1__FieldDescriptor *, field_descriptor_free)

static void event_descriptor_free(Perfd__V1__EventDescriptor *d) {
        perfd__v1__event_descriptor__free_unpacked(d, NULL);
}
DEFINE_CLEANUP(Perfd__V1__EventDescriptor *, event_descriptor_free)

/* NULL and "" stay protobuf-c's static empty string, which its free knows. */
static int set_string(char **to, const char *from) {
        char *copy;

        if (!from || !*from)
                return 0;
        copy = strdup(from);
        if (!copy)
                return error_origin(-ENOMEM);
        *to = copy;
        return 0;
}

static int add_values(Perfd__V1__FieldDescriptor *d, const PlanField *f) {
        if (f->n_values == 0)
                return 0;
        d->values = calloc(f->n_values, sizeof(*d->values));
        if (!d->values)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < f->n_values; i++) {
                Perfd__V1__FieldValue *v = malloc(sizeof(*v));

                if (!v)
                        return error_origin(-ENOMEM);
                perfd__v1__field_value__init(v);
                v->value = f->values[i].value;
                d->values[d->n_values++] = v;
                if (set_string(&v->name, f->values[i].name) < 0)
                        return error_origin(-ENOMEM);
        }
        return 0;
}

/* of_stream: for who gets its samples, and with them the addresses that have a name. */
static int field_descriptor_new(const PlanField *f, bool of_stream, Perfd__V1__FieldDescriptor **ret) {
        _cleanup_(field_descriptor_freep) Perfd__V1__FieldDescriptor *d = malloc(sizeof(*d));

        if (!d)
                return error_origin(-ENOMEM);
        perfd__v1__field_descriptor__init(d);
        d->kind = (Perfd__V1__FieldKind)f->kind; /* model/plan.h numbers them alike */
        d->size = f->element_size;
        d->count = f->count;
        d->flags = f->flags;
        d->hex = f->hex;
        if (set_string(&d->name, f->name) < 0 || set_string(&d->type, f->type) < 0 ||
            set_string(&d->delimiter, f->delimiter) < 0 || ((of_stream || f->kind != FIELD_POINTER) && add_values(d, f) < 0))
                return error_origin(-ENOMEM);
        *ret = TAKE_PTR(d);
        return 0;
}

/* Frees a half-made list and gives back -ENOMEM. */
static int drop_fields(Perfd__V1__FieldDescriptor **list, size_t n) {
        for (size_t i = 0; i < n; i++)
                field_descriptor_free(list[i]);
        free(list);
        return error_origin(-ENOMEM);
}

int field_descriptors_new(const Plan *plan, Perfd__V1__FieldDescriptor ***ret_fields, size_t *ret_n_fields) {
        Perfd__V1__FieldDescriptor **list;
        size_t n = plan ? plan->n_fields : 0;

        list = calloc(n + 1, sizeof(*list));
        if (!list)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                if (field_descriptor_new(&plan->fields[i], false, &list[i]) < 0)
                        return drop_fields(list, i);
        *ret_fields = list;
        *ret_n_fields = n;
        return 0;
}

int event_descriptor_new(const EncodePlan *p, const char *name, const char *event, uint64_t period, uint64_t frequency,
                         const char *unit, Perfd__V1__EventDescriptor **ret) {
        _cleanup_(event_descriptor_freep) Perfd__V1__EventDescriptor *d = malloc(sizeof(*d));

        if (!d)
                return error_origin(-ENOMEM);
        perfd__v1__event_descriptor__init(d);
        d->id = p->event_id;
        d->period = period;
        d->frequency = frequency;
        if (set_string(&d->name, name) < 0 || set_string(&d->event, event) < 0 || set_string(&d->unit, unit) < 0 ||
            set_string(&d->print_format, p->plan ? p->plan->print : NULL) < 0)
                return error_origin(-ENOMEM);
        d->fields = calloc(p->n_fields + 1, sizeof(*d->fields));
        if (!d->fields)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < p->n_fields; i++) {
                if (field_descriptor_new(p->fields[i], true, &d->fields[i]) < 0)
                        return error_origin(-ENOMEM);
                d->n_fields++;
        }
        *ret = TAKE_PTR(d);
        return 0;
}

static void counter_descriptor_free(Perfd__V1__CounterDescriptor *d) {
        perfd__v1__counter_descriptor__free_unpacked(d, NULL);
}
DEFINE_CLEANUP(Perfd__V1__CounterDescriptor *, counter_descriptor_free)

int event_descriptor_add_counter(Perfd__V1__EventDescriptor *d, const char *event, const char *unit, double scale) {
        _cleanup_(counter_descriptor_freep) Perfd__V1__CounterDescriptor *c = malloc(sizeof(*c));
        Perfd__V1__CounterDescriptor **list;

        if (!c)
                return error_origin(-ENOMEM);
        perfd__v1__counter_descriptor__init(c);
        c->scale = scale == 1 ? 0 : scale;
        if (set_string(&c->event, event) < 0 || set_string(&c->unit, unit) < 0)
                return error_origin(-ENOMEM);
        list = reallocarray(d->counters, d->n_counters + 1, sizeof(*list));
        if (!list)
                return error_origin(-ENOMEM);
        d->counters = list;
        d->counters[d->n_counters++] = TAKE_PTR(c);
        return 0;
}
