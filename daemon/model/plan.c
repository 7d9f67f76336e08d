/* Plans own all their strings; a plan under construction is a plan with one reference. */
#include "daemon/model/plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/base/error-trail.h"

Plan *plan_new(uint32_t type, const char *group, const char *name) {
        _cleanup_(plan_unrefp) Plan *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        p->n_refs = 1;
        p->type = type;
        p->group = strdup(group);
        p->name = strdup(name);
        if (!p->group || !p->name)
                return NULL;
        return TAKE_PTR(p);
}

Plan *plan_ref(Plan *p) {
        if (p)
                atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
        return p;
}

static void plan_field_deinit(PlanField *f) {
        free(f->name);
        free(f->type);
        free(f->delimiter);
        for (size_t i = 0; i < f->n_values; i++)
                free(f->values[i].name);
        free(f->values);
}

Plan *plan_unref(Plan *p) {
        if (!p || atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        for (size_t i = 0; i < p->n_fields; i++)
                plan_field_deinit(&p->fields[i]);
        free(p->fields);
        free(p->group);
        free(p->name);
        free(p->print);
        free(p);
        return NULL;
}

int plan_set_print(Plan *p, const char *print, size_t n) {
        char *copy = strndup(print, n);

        assert(p->n_refs == 1);
        if (!copy)
                return error_origin(-ENOMEM);
        free(p->print);
        p->print = copy;
        return 0;
}

PlanField *plan_add_field(Plan *p, const char *name, const char *type) {
        PlanField *fields, *f;

        assert(p->n_refs == 1);
        fields = reallocarray(p->fields, p->n_fields + 1, sizeof(*fields));
        if (!fields)
                return NULL;
        p->fields = fields;
        f = &fields[p->n_fields];
        *f = (PlanField){ .element_size = 1, .count = 1, .name = strdup(name), .type = strdup(type) };
        if (!f->name || !f->type) {
                plan_field_deinit(f);
                return NULL;
        }
        p->n_fields++;
        return f;
}

int plan_field_add_value(PlanField *f, uint64_t value, const char *name) {
        FieldValueName *values = reallocarray(f->values, f->n_values + 1, sizeof(*values));

        if (!values)
                return error_origin(-ENOMEM);
        f->values = values;
        values[f->n_values] = (FieldValueName){ .value = value, .name = strdup(name) };
        if (!values[f->n_values].name)
                return error_origin(-ENOMEM);
        f->n_values++;
        return 0;
}

const PlanField *plan_find(const Plan *p, const char *name) {
        for (size_t i = 0; p && i < p->n_fields; i++)
                if (strcmp(p->fields[i].name, name) == 0)
                        return &p->fields[i];
        return NULL;
}
