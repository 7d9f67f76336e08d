/*
 * What is known of all samples of an event, found out once: which fields are sent, in which of the item's two lists,
 * and how long an item can get at most. With that bound one comparison stands for all checks of room. Numbers are as wide
 * on the wire as in memory, so that fields that lie behind one another are copied as one.
 */
#include "daemon/encode/item.h"

#include <endian.h>
#include <string.h>

#include "daemon/encode/item-head.h"
#include "daemon/encode/wire.h"

/* Bytes of time, event, cpu, pid and tid, each with its key. */
#define HEAD_SIZE ((size_t)9 + 4 * 5)
/* Most bytes of the other scalars: ip, address, period; and of keys and lengths of the item, its numbers, its raw bytes and
 * two callchains. */
#define REST_BOUND (2 * (size_t)9 + 11 + 5 * (1 + WIRE_LENGTH_MAX))

/* Its key of two bytes, and a value that is never 0. */
#define ZERO_TID_SIZE ((size_t)3)

_Static_assert(_HEADS == 2 * HEAD_WITHOUT_TASK, "those without a task are the last ones");

static bool is_wanted(const char *name, char *const *names, size_t n_names) {
        for (size_t i = 0; i < n_names; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return n_names == 0;
}

/* Whether a fixed number field goes on where the run ends: of 8 bytes it does not matter whether they have a sign. */
static bool run_goes_on(const NumberRun *r, const PlanField *f) {
        return !r->dynamic && r->element_size == f->element_size && r->offset + r->n * r->element_size == f->offset &&
               (r->is_signed == (f->kind == FIELD_SIGNED) || f->element_size == sizeof(uint64_t));
}

bool encode_is_comm(const PlanField *f) {
        return f->kind == FIELD_TEXT && f->place == PLACE_FIXED && f->count == COMM_SIZE;
}

/* Of the field that was added last. */
static void encode_plan_add_numbers(EncodePlan *p, const PlanField *f) {
        bool is_fixed = f->place == PLACE_FIXED;

        p->numbers_size += (is_fixed ? f->count : 1) * sizeof(uint64_t);
        if (is_fixed && p->n_runs > 0 && run_goes_on(&p->runs[p->n_runs - 1], f))
                p->runs[p->n_runs - 1].n += f->count;
        else
                p->runs[p->n_runs++] = (NumberRun){ .offset = f->offset, .n = is_fixed ? f->count : 0,
                                                    .element_size = (uint8_t)f->element_size,
                                                    .is_signed = f->kind == FIELD_SIGNED,
                                                    .dynamic = is_fixed ? 0 : (uint16_t)p->n_fields };
}

static void encode_plan_add_text(EncodePlan *p, const PlanField *f) {
        size_t most = f->place == PLACE_FIXED ? f->element_size * f->count : 0;

        p->texts[p->n_texts++] = f;
        p->room += (uint32_t)(1 + WIRE_LENGTH_MAX + most);
        if (p->plan->has_faults && f->kind == FIELD_TEXT && f->place != PLACE_FIXED) {
                p->room += (uint32_t)(sizeof(uint64_t) + (p->has_faults ? 0 : 1 + WIRE_LENGTH_MAX));
                p->has_faults = true;
        }
        p->fixed_size += 2 + most / 2;
}

static void encode_plan_add(EncodePlan *p, const PlanField *f) {
        uint32_t end = f->offset + (f->place == PLACE_FIXED ? f->element_size * f->count : sizeof(uint32_t));

        p->fields[p->n_fields++] = f;
        if (end > p->min_size)
                p->min_size = end;
        if (f->place != PLACE_FIXED)
                p->dynamic = true;
        if (field_is_number(f))
                encode_plan_add_numbers(p, f);
        else
                encode_plan_add_text(p, f);
}

/* As item.c would write it, with ones where values go. */
static void encode_plan_make_head(EncodePlan *p, unsigned which) {
        const Record one = { .time = 1, .cpu = !(which & HEAD_WITHOUT_CPU), .pid = !(which & HEAD_WITHOUT_TASK),
                             .tid = !(which & HEAD_WITHOUT_TASK) };
        ItemHead *h = &p->heads[which];
        uint8_t *content, *begin, *at;

        h->length = (uint32_t)p->fixed_size - (which & HEAD_WITHOUT_CPU ? 5 : 0) - (which & HEAD_WITHOUT_TASK ? 10 : 0);
        begin = wire_begin(h->bytes, PACKET_ITEMS, h->length, &content);
        wire_put_length(begin, h->length);
        at = item_put_head(content, one.time, p->event_id, one.cpu);
        h->content = (uint8_t)(content - h->bytes);
        h->time = (uint8_t)(h->content + 1);
        h->cpu = (uint8_t)(at - h->bytes - 4);
        at = item_put_who(at, &one);
        h->pid = (uint8_t)(at - h->bytes - 9);
        h->tid = (uint8_t)(at - h->bytes - 4);
        if (p->numbers_size > 0 && !p->dynamic)
                at = wire_put_varint(wire_put_key(at, WIRE_KEY(ITEM_NUMBERS, WIRE_BYTES)), p->numbers_size);
        h->size = (uint8_t)(at - h->bytes);
}

/* All null, with room for so many runs. */
static EncodePlan *encode_plan_alloc(size_t n_runs) {
        size_t more = n_runs > ENCODE_RUNS_NEAR ? n_runs - ENCODE_RUNS_NEAR : 0;
        size_t size = (sizeof(EncodePlan) + more * sizeof(NumberRun) + 63) / 64 * 64;
        EncodePlan *p = aligned_alloc(64, size);

        return p ? memset(p, 0, size) : NULL;
}

/* Offsets of all texts, if there are few and each is the name of a thread. */
static bool encode_plan_find_comms(EncodePlan *p) {
        if (p->n_texts > ITEM_COMMS)
                return false;
        for (size_t i = 0; i < p->n_texts; i++) {
                if (!encode_is_comm(p->texts[i]) || p->texts[i]->offset > UINT16_MAX)
                        return false;
                p->comms[i] = (uint16_t)p->texts[i]->offset;
        }
        return true;
}

static uint8_t encode_plan_find_encoding(EncodePlan *p) {
        if (p->dynamic || !encode_plan_find_comms(p))
                return ITEM_VARIABLE;
        if (p->n_texts > 0 || p->payload != PAYLOAD_FIELDS || p->n_runs != 1 || p->runs->element_size != sizeof(uint64_t) ||
            __BYTE_ORDER != __LITTLE_ENDIAN)
                return ITEM_FIXED;
        return ITEM_ONE_COPY;
}

EncodePlan *encode_plan_new(Plan *plan, uint32_t event_id, Payload payload, char *const *fields, size_t n_fields) {
        size_t n = plan && payload != PAYLOAD_RAW ? plan->n_fields : 0;
        _cleanup_(encode_plan_unrefp) EncodePlan *p = encode_plan_alloc(n);

        if (!p)
                return NULL;
        p->n_refs = 1;
        p->plan = plan_ref(plan);
        p->event_id = event_id;
        p->payload = (uint8_t)payload;
        p->fields = calloc(2 * n + 1, sizeof(*p->fields)); /* one block for both lists */
        if (!p->fields)
                return NULL;
        p->texts = p->fields + n;
        for (size_t i = 0; i < n; i++)
                if (is_wanted(plan->fields[i].name, fields, n_fields))
                        encode_plan_add(p, &plan->fields[i]);
        if (payload != PAYLOAD_FIELDS && plan && !p->dynamic) { /* the kernel pads them: size and bytes together */
                uint32_t raw_size = (plan->min_size + 4 + 7) / 8 * 8 - 4;

                p->fixed_size += 1 + wire_varint_size(raw_size) + raw_size;
        }
        p->fixed_size += HEAD_SIZE + p->numbers_size + (p->numbers_size > 0 ? 1 + wire_varint_size(p->numbers_size) : 0);
        p->room += (uint32_t)(HEAD_SIZE + p->numbers_size + REST_BOUND + WIRE_SLACK);
        p->encoding = encode_plan_find_encoding(p);
        for (unsigned which = 0; which < _HEADS; which++)
                encode_plan_make_head(p, which);
        return TAKE_PTR(p);
}

void encode_plan_tell_zero_tid(EncodePlan *p) {
        p->room += (uint32_t)ZERO_TID_SIZE;
        for (unsigned which = HEAD_WITHOUT_TASK; which < _HEADS; which++)
                p->heads[which].tells_zero_tid = true;
}

bool encode_plan_equals(const EncodePlan *a, const EncodePlan *b) {
        return a->plan == b->plan && a->event_id == b->event_id && a->payload == b->payload && a->n_fields == b->n_fields &&
               (a->n_fields == 0 || memcmp(a->fields, b->fields, a->n_fields * sizeof(*a->fields)) == 0);
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
