/* For tests of print formats: an event with a field of each kind, and an item of it that no daemon sent. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/item/item.h"
#include "client/print/format.h"

static const perfd_value_name rig_names[] = { { .value = 1, .name = "ONE" } };

static const perfd_field rig_fields[] = {
        { .name = "dev", .type = "dev_t dev", .kind = PERFD_UNSIGNED, .size = 4, .count = 1, .index = 0 },
        { .name = "n", .type = "int n", .kind = PERFD_SIGNED, .size = 4, .count = 1, .index = 1 },
        { .name = "flags", .type = "u64 flags", .kind = PERFD_UNSIGNED, .size = 8, .count = 1, .values = rig_names, .n_values = 1,
          .delimiter = "", .index = 2 },
        { .name = "fn", .type = "void *fn", .kind = PERFD_POINTER, .size = 8, .count = 1, .index = 3 },
        { .name = "bytes", .type = "u8 bytes[16]", .kind = PERFD_UNSIGNED, .size = 1, .count = 16, .index = 4 },
        { .name = "addr", .type = "u8 addr[28]", .kind = PERFD_UNSIGNED, .size = 1, .count = 28, .index = 5 },
        { .name = "list", .type = "__data_loc u32[] list", .kind = PERFD_UNSIGNED, .size = 4, .count = 3, .index = 6 },
        { .name = "name", .type = "__data_loc char[] name", .kind = PERFD_TEXT, .size = 1, .index = 7 },
        { .name = "raw", .type = "struct raw raw", .kind = PERFD_BYTES, .size = 1, .count = 4, .index = 8 },
};

#define RIG_FIELDS (sizeof(rig_fields) / sizeof(rig_fields[0]))
#define RIG_NUMBERS ((size_t)51)

typedef struct Rig {
        uint64_t numbers[RIG_NUMBERS]; /* dev, n, flags, fn, bytes, addr, list */
        perfd_text texts[2];           /* name, raw */
        Descriptor descriptor;
        struct perfd_item item;
        ValuePlace places[RIG_FIELDS];
} Rig;

/* The format's field by its number, as `symbols` knows it. False: no memory. */
static inline bool rig_init(Rig *rig, const char *print) {
        size_t n_numbers = 0, n_texts = 0;

        rig->descriptor = (Descriptor){ .event = { .fields = rig_fields, .n_fields = RIG_FIELDS } };
        for (size_t i = 0; i < RIG_FIELDS; i++) {
                bool is_text = field_is_text(&rig_fields[i]);
                size_t *n = is_text ? &n_texts : &n_numbers, count = is_text ? 1 : rig_fields[i].count;

                rig->places[i] = (ValuePlace){ .first = *n, .count = count };
                *n += count;
        }
        rig->item = (struct perfd_item){ .descriptor = &rig->descriptor, .numbers = { .list = rig->numbers, .n = RIG_NUMBERS },
                                         .texts = rig->texts, .n_texts = 2, .places = rig->places, .state = ITEM_INDEXED };
        return print_format_new(&rig->descriptor.arena, print, &rig->descriptor.event, &rig->descriptor.print) == 0;
}

static inline void rig_deinit(Rig *rig) {
        arena_deinit(&rig->descriptor.arena);
}
