/*
 * The hot half of the library: a million items a second come through item_decode(). It follows the tags in any order
 * and skips what it does not know, as every protobuf reader has to; what it does not do is to build a tree.
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

static void item_clear(struct perfd_item *item) {
        item->descriptor = NULL;
        item->who = NULL;
        item->record = PERFD_SAMPLE;
        item->time = item->ip = item->address = item->period = 0;
        item->event = item->cpu = item->pid = item->tid = 0;
        item->raw = (perfd_text){ .bytes = "" };
        item->numbers.n = item->kernel_callchain.n = item->user_callchain.n = 0;
        item->n_texts = 0;
        item->parts.has = 0;
        item->places = NULL;
}

/* Lists may come packed or number by number, whatever the .proto says: the protobuf encoding demands both of a reader. */
static int item_set(struct perfd_item *item, const WireField *f) {
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
                return numbers_add_packed_fixed(&item->numbers, f->bytes, f->length);
        case WIRE_KEY(ITEM_NUMBERS, WIRE_FIXED64):
                return numbers_add(&item->numbers, f->number);
        case WIRE_KEY(ITEM_TEXTS, WIRE_BYTES):
                return texts_add(item, f);
        case WIRE_KEY(ITEM_RAW, WIRE_BYTES):
                item->raw = wire_text(f);
                return 0;
        case WIRE_KEY(ITEM_KERNEL_CALLCHAIN, WIRE_BYTES):
                return numbers_add_packed_fixed(&item->kernel_callchain, f->bytes, f->length);
        case WIRE_KEY(ITEM_KERNEL_CALLCHAIN, WIRE_FIXED64):
                return numbers_add(&item->kernel_callchain, f->number);
        case WIRE_KEY(ITEM_USER_CALLCHAIN, WIRE_BYTES):
                return numbers_add_packed_fixed(&item->user_callchain, f->bytes, f->length);
        case WIRE_KEY(ITEM_USER_CALLCHAIN, WIRE_FIXED64):
                return numbers_add(&item->user_callchain, f->number);
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
                return f->key < WIRE_KEY(ITEM_READ_VALUES, 0) ? record_decode(item, f) : parts_decode(&item->parts, f);
        }
}

/* The places behind a dynamic array depend on its length in this item. */
static int item_place_dynamic(struct perfd_item *item) {
        const perfd_event *event = &item->descriptor->event;
        size_t at = 0, texts = 0, count;

        if (item->own_places_room < event->n_fields &&
            list_grow(&item->own_places, &item->own_places_room, event->n_fields, sizeof(FieldPlace)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < event->n_fields; i++) {
                const perfd_field *f = &event->fields[i];

                if (field_is_text(f)) {
                        item->own_places[i] = (FieldPlace){ .first = texts++, .count = 1 };
                        continue;
                }
                count = f->count;
                if (count == 0) {
                        if (at == item->numbers.n || item->numbers.list[at] > item->numbers.n)
                                return PERFD_E_PROTOCOL;
                        count = (size_t)item->numbers.list[at++];
                }
                if (count > item->numbers.n - at)
                        return PERFD_E_PROTOCOL;
                item->own_places[i] = (FieldPlace){ .first = at, .count = count };
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

int item_decode(struct perfd_item *item, Descriptors *descriptors, const uint8_t *bytes, size_t length) {
        Wire w = wire_of(bytes, length);
        WireField f = { .key = 0 };
        int r;

        item_clear(item);
        while (wire_next(&w, &f)) {
                r = item_set(item, &f);
                if (r != 0)
                        return r;
        }
        if (w.malformed)
                return PERFD_E_PROTOCOL;
        if (item->event != 0)
                item->descriptor = descriptors_find(descriptors, item->event);
        return item_place(item);
}

void item_deinit(struct perfd_item *item) {
        free(item->numbers.list);
        free(item->kernel_callchain.list);
        free(item->user_callchain.list);
        free(item->texts);
        free(item->own_places);
        free(item->namespaces);
        parts_deinit(&item->parts);
        *item = (struct perfd_item){ .descriptor = NULL };
}
