/*
 * The hot half of the library: a million items a second come through item_index(). Those that are as one before are compared
 * with its layout. Others are walked: the tags are followed in any order, and what is not known is skipped, as every protobuf
 * reader has to; nothing is copied, and no tree is built.
 */
#include "client/item/decode.h"

#include <errno.h>
#include <stdlib.h>

#include "client/item/record.h"
#include "client/item/sample-parts.h"
#include "client/wire/message.h"
#include "client/wire/wire.h"
#include "proto/item-fields.h"

static int texts_add(struct perfd_item *item, const WireField *f) {
        if (list_reserve(&item->texts, &item->texts_room, item->n_texts, sizeof(perfd_text)) < 0)
                return -ENOMEM;
        item->texts[item->n_texts++] = wire_text(f);
        return 0;
}

/* What few samples have. */
static void item_clear_rest(struct perfd_item *item) {
        item->record = PERFD_SAMPLE;
        item->ip = item->address = item->period = 0;
        item->raw = (perfd_text){ .bytes = "" };
        numbers_clear(&item->kernel_callchain);
        numbers_clear(&item->user_callchain);
        numbers_clear(&item->faults);
        item->parts.has = 0;
        item->has_rest = item->has_parts = false;
}

/* What nearly all have. */
static void item_clear_common(struct perfd_item *item) {
        item->descriptor = NULL;
        item->places = NULL;
        item->time = 0;
        item->event = item->cpu = item->pid = item->tid = 0;
        numbers_clear(&item->numbers);
        item->n_texts = 0;
}

/* Lists may come packed or number by number, whatever the .proto says: the protobuf encoding demands both of a reader. */
static int item_set_rest(struct perfd_item *item, const WireField *f) {
        item->has_rest = true;
        switch (f->key) {
        case WIRE_KEY(ITEM_RAW, WIRE_BYTES):
                item->raw = wire_text(f);
                return 0;
        case WIRE_KEY(ITEM_KERNEL_CALLCHAIN, WIRE_BYTES):
                return numbers_add_packed(&item->kernel_callchain, f->bytes, f->length);
        case WIRE_KEY(ITEM_KERNEL_CALLCHAIN, WIRE_FIXED64):
                return numbers_add(&item->kernel_callchain, f->number);
        case WIRE_KEY(ITEM_USER_CALLCHAIN, WIRE_BYTES):
                return numbers_add_packed(&item->user_callchain, f->bytes, f->length);
        case WIRE_KEY(ITEM_USER_CALLCHAIN, WIRE_FIXED64):
                return numbers_add(&item->user_callchain, f->number);
        case WIRE_KEY(ITEM_FAULTS, WIRE_BYTES):
                return numbers_add_packed_fixed(&item->faults, f->bytes, f->length);
        case WIRE_KEY(ITEM_FAULTS, WIRE_FIXED64):
                return numbers_add(&item->faults, f->number);
        case WIRE_KEY(ITEM_IP, WIRE_FIXED64):
                item->ip = f->number;
                return 0;
        case WIRE_KEY(ITEM_ADDRESS, WIRE_FIXED64):
                item->address = f->number;
                return 0;
        case WIRE_KEY(ITEM_PERIOD, WIRE_VARINT):
                item->period = f->number;
                return 0;
        default:
                if (f->key < WIRE_KEY(ITEM_READ_VALUES, 0))
                        return record_decode(item, f);
                item->has_parts = true;
                return 0;
        }
}

static int item_set_field(struct perfd_item *item, const WireField *f) {
        switch (f->key) {
        case WIRE_KEY(ITEM_TIME, WIRE_FIXED64):
                item->time = f->number;
                return 0;
        case WIRE_KEY(ITEM_EVENT, WIRE_FIXED32):
                item->event = (uint32_t)f->number;
                return 0;
        case WIRE_KEY(ITEM_CPU, WIRE_FIXED32):
                item->cpu = (uint32_t)f->number;
                return 0;
        case WIRE_KEY(ITEM_PID, WIRE_FIXED32):
                item->pid = (uint32_t)f->number;
                return 0;
        case WIRE_KEY(ITEM_TID, WIRE_FIXED32):
                item->tid = (uint32_t)f->number;
                return 0;
        case WIRE_KEY(ITEM_NUMBERS, WIRE_BYTES):
                return numbers_add_packed(&item->numbers, f->bytes, f->length);
        case WIRE_KEY(ITEM_NUMBERS, WIRE_FIXED64):
                return numbers_add(&item->numbers, f->number);
        case WIRE_KEY(ITEM_TEXTS, WIRE_BYTES):
                return texts_add(item, f);
        default:
                return item_set_rest(item, f);
        }
}

static uint64_t number_at(const Numbers *numbers, size_t i) {
        return numbers->packed ? wire_get_fixed64(numbers->packed + i * sizeof(uint64_t)) : numbers->list[i];
}

/* The places behind a dynamic array depend on its length in this item. */
static int item_place_dynamic(struct perfd_item *item) {
        const perfd_event *event = &item->descriptor->event;
        size_t at = 0, texts = 0, count;

        if (item->own_places_room < event->n_fields &&
            list_grow(&item->own_places, &item->own_places_room, event->n_fields, sizeof(ValuePlace)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < event->n_fields; i++) {
                const perfd_field *f = &event->fields[i];

                if (field_is_text(f)) {
                        item->own_places[i] = (ValuePlace){ .first = texts++, .count = 1 };
                        continue;
                }
                count = f->count;
                if (count == 0) {
                        if (at == item->numbers.n)
                                return PERFD_E_PROTOCOL;
                        count = (size_t)number_at(&item->numbers, at++);
                }
                if (count > item->numbers.n - at)
                        return PERFD_E_PROTOCOL;
                item->own_places[i] = (ValuePlace){ .first = at, .count = count };
                at += count;
        }
        item->places = item->own_places;
        return at == item->numbers.n && texts == item->n_texts ? 0 : PERFD_E_PROTOCOL;
}

static int item_place(struct perfd_item *item) {
        const Descriptor *d = item->descriptor;

        if (item->record != PERFD_SAMPLE)
                return 0;
        if (!d)
                return PERFD_E_PROTOCOL;
        if (d->dynamic)
                return item_place_dynamic(item);
        item->places = d->places;
        return d->n_numbers == item->numbers.n && d->n_texts == item->n_texts ? 0 : PERFD_E_PROTOCOL;
}

static inline const uint8_t *take_head_number(const uint8_t *at, uint8_t key, uint32_t *to) {
        if (*at != key)
                return at;
        *to = wire_get_fixed32(at + 1);
        return at + 5;
}

#define HEAD_MAX (9 + 4 * 5)

/* Time to tid, as far as they are there, in the order in which perfd writes them; where they end. */
static const uint8_t *item_take_head(struct perfd_item *item) {
        const uint8_t *at = item->bytes;

        if (item->end - at <= HEAD_MAX)
                return at;
        if (*at == WIRE_KEY(ITEM_TIME, WIRE_FIXED64)) {
                item->time = wire_get_fixed64(at + 1);
                at += 9;
        }
        at = take_head_number(at, WIRE_KEY(ITEM_EVENT, WIRE_FIXED32), &item->event);
        at = take_head_number(at, WIRE_KEY(ITEM_CPU, WIRE_FIXED32), &item->cpu);
        at = take_head_number(at, WIRE_KEY(ITEM_PID, WIRE_FIXED32), &item->pid);
        return take_head_number(at, WIRE_KEY(ITEM_TID, WIRE_FIXED32), &item->tid);
}

/* Texts of less than 128 bytes that lie here; where they end. -ENOMEM */
static int item_take_texts(struct perfd_item *item, const uint8_t **at) {
        const uint8_t *p = *at;
        int r = 0;

        while (r == 0 && item->end - p >= 2 && *p == WIRE_KEY(ITEM_TEXTS, WIRE_BYTES)) {
                WireField f = { .bytes = p + 2, .length = wire_load(p + 1) };

                if (f.length >= 0x80 || f.length > (size_t)(item->end - f.bytes))
                        break;
                r = texts_add(item, &f);
                p = f.bytes + f.length;
        }
        *at = p;
        return r;
}

/* The raw bytes of a sample, if they are the next and their length has one byte or two, as nearly always; where they end. */
static const uint8_t *item_take_raw(struct perfd_item *item, const uint8_t *at) {
        const uint8_t *begin = at + 2;
        size_t length;

        if (item->end - at < 3 || *at != WIRE_KEY(ITEM_RAW, WIRE_BYTES))
                return at;
        length = wire_load(at + 1);
        if (length >= 0x80) {
                const size_t high = wire_load(begin++);

                if (high >= 0x80)
                        return at;
                length = (length & 0x7f) | high << 7;
        }
        if (length > (size_t)(item->end - begin))
                return at;
        item->raw = (perfd_text){ .bytes = (const char *)begin, .length = length };
        item->has_rest = true;
        return begin + length;
}

/* Whatever it is. */
static int item_walk(struct perfd_item *item, const uint8_t *at) {
        Wire w = { .at = at, .end = item->end };
        WireField f = { .key = 0 };
        int r = 0;

        while (r == 0 && wire_next(&w, &f))
                r = item_set_field(item, &f);
        return w.malformed ? PERFD_E_PROTOCOL : r;
}

void item_fail(struct perfd_item *item, int error) {
        item_clear_common(item);
        item_clear_rest(item);
        item->record = PERFD_UNKNOWN;
        item->unknown = (perfd_unknown_record){ .bytes = { .bytes = "" } };
        item->has_rest = true;
        item->state = ITEM_WRONG;
        item->error = error;
}

void layouts_learn(Descriptors *d, uint32_t event, uint32_t cpu, uint32_t tid, const uint8_t *item, const uint8_t *end) {
        unsigned has = (cpu ? LAYOUT_HAS_CPU : 0) | (tid ? LAYOUT_HAS_TASK : 0);
        Descriptor *of = descriptors_find(d, event);

        if (!of || of->dynamic || of->n_numbers == 0 || !layout_init(&of->layouts[has], has, event, of->n_numbers, item, end))
                return;
        of->layouts[has].descriptor = of;
        of->layouts[has].whole = of->n_texts == 0 ? of->layouts[has].size : SIZE_MAX;
        d->layout = &of->layouts[has];
}

const ItemLayout *layouts_find(Descriptors *d, const uint8_t *item, const uint8_t *end) {
        const size_t size = (size_t)(end - item), event_at = 9; /* behind the time */
        const Descriptor *of;

        if (size < event_at + 5 || item[event_at] != WIRE_KEY(ITEM_EVENT, WIRE_FIXED32))
                return NULL;
        of = descriptors_find(d, wire_get_fixed32(item + event_at + 1));
        for (int i = LAYOUTS - 1; of && of->n_numbers > 0 && i >= 0; i--) /* without numbers there are none */
                if (layout_matches(&of->layouts[i], item, size))
                        return d->layout = &of->layouts[i];
        return NULL;
}

static inline void item_take_layout(struct perfd_item *item, const ItemLayout *l) {
        const uint8_t *bytes = item->bytes;

        item->descriptor = l->descriptor;
        item->time = wire_get_fixed64(bytes + l->time);
        item->cpu = wire_get_fixed32(bytes + l->cpu) & l->cpu_mask;
        item->pid = wire_get_fixed32(bytes + l->pid) & l->task_mask;
        item->tid = wire_get_fixed32(bytes + l->tid) & l->task_mask;
        item->numbers.packed = bytes + l->numbers;
        item->numbers.n = l->n_numbers;
        item->n_texts = 0;
}

/* Behind what was taken already, at `at`. */
static int item_index_rest(struct perfd_item *item, const uint8_t *at) {
        int r = item_take_texts(item, &at);

        if (r == 0)
                at = item_take_raw(item, at);
        if (r == 0 && at < item->end)
                r = item_walk(item, at);
        if (r == 0 && item->event != 0)
                item->descriptor = descriptors_find(item->descriptors, item->event);
        if (r == 0)
                r = item_place(item);
        return r == 0 ? numbers_make_room(&item->numbers) : r;
}

/* One that is not as the one before, or has texts. */
__attribute__((noinline)) static void item_index_other(struct perfd_item *item, const ItemLayout *l) {
        int r;

        if (!l)
                l = layouts_find(item->descriptors, item->bytes, item->end);
        if (l) {
                item_take_layout(item, l);
                item->event = l->event;
                r = item_index_rest(item, item->bytes + l->size);
        } else {
                item_clear_common(item);
                r = item_index_rest(item, item_take_head(item));
        }
        if (r != 0)
                item_fail(item, r);
        else if (!l && item->places && item->numbers.n > 0)
                layouts_learn(item->descriptors, item->event, item->cpu, item->tid, item->bytes, item->end);
}

void item_index(struct perfd_item *item) {
        const size_t size = (size_t)(item->end - item->bytes);
        const ItemLayout *l = item->descriptors->layout;

        item->state = ITEM_INDEXED;
        if (__builtin_expect(item->has_rest, 0))
                item_clear_rest(item);
        if (l && size == l->whole && layout_has(l, item->bytes) && l->n_numbers <= item->numbers.room) {
                item_take_layout(item, l);
                item->places = l->descriptor->places;
                return;
        }
        item_index_other(item, l && layout_matches(l, item->bytes, size) ? l : NULL);
}

void item_decode_parts(struct perfd_item *item) {
        Wire w = { .at = item->bytes, .end = item->end };
        WireField f = { .key = 0 };
        int r = 0;

        item->has_parts = false;
        while (r == 0 && wire_next(&w, &f))
                if (f.key >= WIRE_KEY(ITEM_READ_VALUES, 0))
                        r = parts_decode(&item->parts, &f);
        if (r != 0)
                item_fail(item, r);
}

void item_deinit(struct perfd_item *item) {
        free(item->numbers.list);
        free(item->kernel_callchain.list);
        free(item->user_callchain.list);
        free(item->faults.list);
        free(item->texts);
        free(item->own_places);
        free(item->namespaces);
        parts_deinit(&item->parts);
        *item = (struct perfd_item){ .descriptor = NULL };
}
