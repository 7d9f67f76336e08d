/*
 * What is known of all samples of an event, found out once: which fields are sent, in which of the item's two lists,
 * and how long an item can get at most. With that bound one comparison stands for all checks of room.
 */
#include "daemon/encode/item.h"

#include <string.h>

#include "daemon/encode/wire.h"

/*
 * Most bytes of an item's own scalars, with key: time, ip and address 9 each, event, cpu, pid and tid 6 each, period
 * 11, comm 2 + 16; and of the keys and lengths of the item, its numbers, its raw bytes and two callchains.
 */
#define HEAD_BOUND (3 * (size_t)9 + 4 * 6 + 11 + 18 + 5 * (1 + WIRE_LENGTH_MAX))

static bool is_wanted(const char *name, char *const *names, size_t n_names) {
        for (size_t i = 0; i < n_names; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return n_names == 0;
}

size_t encode_number_bound(const PlanField *f) {
        if (f->kind == FIELD_SIGNED)
                return WIRE_VARINT_MAX; /* a negative one is 64 bits wide */
        return f->element_size == 8 ? WIRE_VARINT_MAX : f->element_size == 4 ? 5 : f->element_size == 2 ? 3 : 2;
}

static void encode_plan_add(EncodePlan *p, const PlanField *f) {
        uint32_t end = f->offset + (f->place == PLACE_FIXED ? f->element_size * f->count : sizeof(uint32_t));

        p->fields[p->n_fields++] = f;
        if (end > p->min_size)
                p->min_size = end;
        if (f->place != PLACE_FIXED)
                p->dynamic = true;
        if (field_is_number(f)) {
                p->numbers[p->n_numbers++] = f;
                p->numbers_bound += f->place == PLACE_FIXED ? f->count * encode_number_bound(f) : WIRE_LENGTH_MAX;
        } else {
                p->texts[p->n_texts++] = f;
                p->fixed_bound += 1 + WIRE_LENGTH_MAX + (f->place == PLACE_FIXED ? f->element_size * f->count : 0);
        }
}

EncodePlan *encode_plan_new(Plan *plan, uint32_t event_id, Payload payload, char *const *fields, size_t n_fields) {
        _cleanup_(encode_plan_unrefp) EncodePlan *p = calloc(1, sizeof(*p));
        size_t n = plan && payload != PAYLOAD_RAW ? plan->n_fields : 0;

        if (!p)
                return NULL;
        p->n_refs = 1;
        p->plan = plan_ref(plan);
        p->event_id = event_id;
        p->payload = payload;
        p->fixed_bound = HEAD_BOUND;
        p->fields = calloc(3 * n + 1, sizeof(*p->fields)); /* one block for the three lists */
        if (!p->fields)
                return NULL;
        p->numbers = p->fields + n;
        p->texts = p->numbers + n;
        for (size_t i = 0; i < n; i++)
                if (is_wanted(plan->fields[i].name, fields, n_fields))
                        encode_plan_add(p, &plan->fields[i]);
        p->fixed_bound += p->numbers_bound;
        return TAKE_PTR(p);
}

EncodePlan *encode_plan_ref(EncodePlan *p) {
        if (p)
                atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
        return p;
}

EncodePlan *encode_plan_unref(EncodePlan *p) {
        if (!p || atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        plan_unref(p->plan);
        free(p->fields);
        free(p);
        return NULL;
}
