#include "client/perfctl/item/plan.h"

#include <stdlib.h>

#include "client/perfctl/item/chain-texts.h"
#include "client/perfctl/item/known-pieces.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/memory.h"
#include "client/perfctl/base/text.h"

#define ESCAPED_MAX ((size_t)12) /* bytes of JSON that one byte may become: two units of UTF-16 */
#define KEY_AROUND ((size_t)64)  /* around the name of a field or an event, with the piece behind it */
#define ROOM_FIRST ((size_t)64)  /* a power of two */

/* Whether all that is to be written fits into an output that nobody reads from. */
static bool is_short(const perfd_event *e) {
        size_t n = (strlen(e->name) + strlen(e->event)) * ESCAPED_MAX + KEY_AROUND;

        for (size_t i = 0; i < e->n_fields && n < OUTPUT_ROOM / 2; i++)
                n += strlen(e->fields[i].name) * ESCAPED_MAX + KEY_AROUND;
        return n < OUTPUT_ROOM / 2; /* names may have two keys */
}

#define ARRAY_MAX ((uint32_t)64) /* numbers that are written without asking for room between them */

static bool is_text(const perfd_field *f) {
        return f->kind == PERFD_TEXT || f->kind == PERFD_BYTES;
}

/* In JSON numbers are numbers. VALUE_RENDERED: by what writes any value. */
static ValueForm form_of_json(const perfd_field *f) {
        if (f->kind == PERFD_TEXT)
                return VALUE_TEXT;
        if (f->count > ARRAY_MAX)
                return VALUE_RENDERED;
        if (f->kind == PERFD_SIGNED)
                return VALUE_SIGNED;
        return f->kind == PERFD_UNSIGNED || f->kind == PERFD_POINTER ? VALUE_UNSIGNED : VALUE_RENDERED;
}

/* What perfd_item_render() makes of it. */
static ValueForm form_of(const perfd_event *e, size_t i) {
        const perfd_field *f = &e->fields[i];

        if (perfd_event_formats(e, i))
                return VALUE_RENDERED;
        if (f->kind == PERFD_TEXT)
                return VALUE_TEXT;
        if (f->kind == PERFD_BYTES || f->n_values > 0 || f->flags || f->count > ARRAY_MAX)
                return VALUE_RENDERED;
        if (f->kind == PERFD_POINTER || f->hex)
                return VALUE_HEX;
        return f->kind == PERFD_SIGNED ? VALUE_SIGNED : VALUE_UNSIGNED;
}

/* Behind the key. */
static size_t room_of(const PlannedField *f) {
        switch ((ValueForm)f->form) {
        case VALUE_RENDERED:
                return RENDER_ROOM;
        case VALUE_TEXT:
                return TEXT_ROOM;
        default:
                return (f->count + 1) * ELEMENT_ROOM;
        }
}

static uint32_t place_of(const perfd_event *e, size_t i) {
        uint32_t place = 0;

        for (size_t k = 0; k < i; k++)
                if (is_text(&e->fields[k]) == is_text(&e->fields[i]))
                        place += is_text(&e->fields[k]) ? 1 : e->fields[k].count;
        return place;
}

/* Behind ready bytes. */
static void put_piece(Output *o) {
        static const char piece[PLAN_PIECE];

        output_put(o, piece, sizeof(piece));
}

static void plan_add(PlannedField *list, size_t *n, const perfd_event *e, size_t index, ItemForm form, Output *o) {
        const perfd_field *f = &e->fields[index];
        const size_t begin = o->n;

        if (form == ITEM_FORM_JSON) {
                if (*n > 0)
                        output_put_char(o, ',');
                json_quote(o, f->name, strlen(f->name));
                output_put_char(o, ':');
        } else {
                output_put_char(o, *n > 0 ? ' ' : '\t');
                text_put_string(o, f->name);
                output_put_char(o, '=');
        }
        list[(*n)++] = (PlannedField){
                .key = o->bytes + begin,
                .n_key = (uint32_t)(o->n - begin),
                .index = (uint32_t)index,
                .kind = f->kind,
                .is_array = f->count != 1,
                .is_quoted = f->kind == PERFD_TEXT || (f->kind == PERFD_POINTER && f->n_values > 0),
                .form = form == ITEM_FORM_JSON ? form_of_json(f) : form_of(e, index),
                .count = f->count,
                .place = place_of(e, index),
                .mask = f->size > 0 && f->size < 8 ? ((uint64_t)1 << (8 * f->size)) - 1 : UINT64_MAX,
        };
        put_piece(o);
}

static void plan_put_name(ItemPlan *plan, ItemForm form, Output *o) {
        if (form == ITEM_FORM_JSON) {
                output_put_string(o, ",\"event\":");
                json_quote(o, plan->event->name, strlen(plan->event->name));
                output_put_string(o, ",\"kernel_event\":");
                json_quote(o, plan->event->event, strlen(plan->event->event));
                output_put_string(o, ",\"cpu\":");
        } else
                text_put_string(o, plan->event->name);
        plan->n_name = o->n;
        put_piece(o);
}

/* False: no output has room for a whole line. */
static bool plan_choose_room(ItemPlan *plan) {
        plan->room = LINE_AROUND + plan->n_name + PLAN_PIECE;
        for (size_t i = 0; i < plan->n_fields; i++)
                plan->room += plan->fields[i].n_key + PLAN_PIECE + room_of(&plan->fields[i]);
        return plan->room <= OUTPUT_ROOM;
}

/* From the output into memory of its own. */
static void plan_keep(ItemPlan *plan, const Output *o) {
        plan->bytes = must_have(malloc(o->n));
        memcpy(plan->bytes, o->bytes, o->n);
        plan->name = plan->bytes;
        for (size_t i = 0; i < plan->n_fields; i++)
                plan->fields[i].key = plan->bytes + (plan->fields[i].key - o->bytes);
        for (size_t i = 0; i < plan->n_names; i++)
                plan->names[i].key = plan->bytes + (plan->names[i].key - o->bytes);
}

static void plan_make(ItemPlan *plan, const perfd_event *event, ItemForm form) {
        Output *o;

        plan->event = event;
        if (!is_short(event))
                return;
        o = must_have(malloc(sizeof(*o)));
        output_init(o, -1);
        plan->fields = must_have(calloc(event->n_fields + 1, sizeof(*plan->fields)));
        plan->names = must_have(calloc(event->n_fields + 1, sizeof(*plan->names)));
        plan_put_name(plan, form, o);
        for (size_t i = 0; i < event->n_fields; i++)
                if (form != ITEM_FORM_TEXT || strncmp(event->fields[i].name, "__", 2) != 0)
                        plan_add(plan->fields, &plan->n_fields, event, i, form, o);
        for (size_t i = 0; i < event->n_fields && form == ITEM_FORM_JSON; i++)
                if (event->fields[i].n_values > 0)
                        plan_add(plan->names, &plan->n_names, event, i, form, o);
        if (plan_choose_room(plan))
                plan_keep(plan, o);
        else
                plan->name = NULL;
        free(o);
}

static void plan_clear(ItemPlan *plan) {
        free(plan->bytes);
        free(plan->fields);
        free(plan->names);
        *plan = (ItemPlan){ .id = plan->id };
}

/* That of an id, or where it is to be put. */
static ItemPlan **plans_place(const ItemPlans *p, uint32_t id) {
        size_t i = id * 0x9E3779B1U;

        while (p->list[i & (p->room - 1)] && p->list[i & (p->room - 1)]->id != id)
                i++;
        return &p->list[i & (p->room - 1)];
}

/* Those that were forgotten are left behind. */
static void plans_grow(ItemPlans *p) {
        ItemPlans old = *p;

        p->room = old.room > 0 ? 2 * old.room : ROOM_FIRST;
        p->list = must_have(calloc(p->room, sizeof(*p->list)));
        p->pieces = p->pieces ? p->pieces : must_have(calloc(1, sizeof(*p->pieces)));
        p->n = 0;
        for (size_t i = 0; i < old.room; i++)
                if (old.list[i] && old.list[i]->event) {
                        *plans_place(p, old.list[i]->id) = old.list[i];
                        p->n++;
                } else
                        free(old.list[i]);
        free(old.list);
        p->last = NULL;
}

const ItemPlan *item_plans_look(ItemPlans *p, const perfd_event *event) {
        ItemPlan **place;

        if (2 * p->n >= p->room)
                plans_grow(p);
        place = plans_place(p, event->id);
        if (!*place) {
                *place = must_have(calloc(1, sizeof(**place)));
                (*place)->id = event->id;
                p->n++;
        }
        if ((*place)->event != event) {
                plan_clear(*place);
                plan_make(*place, event, p->form);
        }
        return p->last = *place;
}

void item_plans_forget(ItemPlans *p, uint32_t id) {
        ItemPlan *plan = p->room > 0 ? *plans_place(p, id) : NULL;

        if (plan)
                plan_clear(plan);
}

void item_plans_deinit(ItemPlans *p) {
        for (size_t i = 0; i < p->room; i++)
                if (p->list[i]) {
                        plan_clear(p->list[i]);
                        free(p->list[i]);
                }
        free(p->list);
        free(p->pieces);
        p->chains = chain_texts_free(p->chains);
        *p = (ItemPlans){ .form = p->form };
}
