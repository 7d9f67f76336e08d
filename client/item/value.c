/* Fields of items by their number and by their name. */
#include <string.h>

#include "client/item/decode.h"

static bool is_fault(const struct perfd_item *item, size_t text) {
        for (size_t i = 0; i < item->faults.n; i++)
                if (item->faults.list[i] == text)
                        return true;
        return false;
}

static __attribute__((noinline)) bool item_get_text(struct perfd_item *item, const perfd_field *f, size_t text, perfd_value *ret_value) {
        *ret_value = (perfd_value){ .field = f, .text = item->texts[text], .fault = is_fault(item, text) };
        return true;
}

/* Of an item that has fields. */
static inline bool item_get(struct perfd_item *item, size_t i, perfd_value *ret_value) {
        const perfd_field *f = &item->descriptor->event.fields[i];
        const ValuePlace *place = &item->places[i];
        size_t first = place->first, count = place->count;
        uint64_t *numbers = item->numbers.list + first;
        const uint8_t *packed = item->numbers.packed;

        if (field_is_text(f))
                return item_get_text(item, f, first, ret_value);
        if (packed) {
                packed += first * sizeof(uint64_t);
                if (count == 1)
                        *numbers = wire_get_fixed64(packed);
                else
                        numbers_copy(numbers, packed, count);
        }
        *ret_value = (perfd_value){ .field = f, .numbers = numbers, .count = count };
        return true;
}

static __attribute__((noinline)) bool item_index_and_get(const perfd_item *asked, size_t i, perfd_value *ret_value) {
        struct perfd_item *item = item_indexed(asked);

        return item->places && i < item->descriptor->event.n_fields && item_get(item, i, ret_value);
}

bool perfd_item_get(const perfd_item *asked, size_t i, perfd_value *ret_value) {
        struct perfd_item *item = (struct perfd_item *)(uintptr_t)asked;

        if (!item->places) /* not indexed, or there are none */
                return item_index_and_get(asked, i, ret_value);
        return i < item->descriptor->event.n_fields && item_get(item, i, ret_value);
}

#define PROBES 4

/* Where this address is, or where it is to be put. */
static FoundName *found_place(Descriptor *d, const char *name) {
        uint32_t first = (uint32_t)(uintptr_t)name * 0x9E3779B1U >> 16;

        for (uint32_t i = first; i < first + PROBES; i++) {
                FoundName *found = &d->found[i % DESCRIPTOR_NAMES];

                if (found->name == name || !found->name)
                        return found;
        }
        return &d->found[first % DESCRIPTOR_NAMES];
}

/* A program mostly asks for the same few texts, which are where they were: what was found by them is looked at first. */
bool perfd_item_find(const perfd_item *asked, const char *name, perfd_value *ret_value) {
        struct perfd_item *item = item_indexed(asked);
        const perfd_event *event;
        FoundName *found;

        if (!item->places)
                return false;
        event = &item->descriptor->event;
        found = found_place(item->descriptor, name);
        if (found->name == name && strcmp(event->fields[found->index].name, name) == 0)
                return item_get(item, found->index, ret_value);
        for (size_t i = 0; i < event->n_fields; i++)
                if (strcmp(event->fields[i].name, name) == 0) {
                        *found = (FoundName){ .name = name, .index = i };
                        return item_get(item, i, ret_value);
                }
        return false;
}
